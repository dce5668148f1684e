/* Captures that are kept: for which jobs, for how long, how many; and the marks of the files that they went by. */
#include "unit.h"

#include "api/spec.h"
#include "daemon/capture/cache.h"
#include "daemon/capture/digests.h"

#define DIGEST "9b140b47773e945cffa3cefff7340604cd822d20811158b78b44825f51fe76b9"

static bool has(uid_t uid, uint64_t key)
{
    struct cached_capture cached;
    bool found = capture_cache_load(folder, uid, key, &cached);

    capture_cache_release(&cached);
    return found;
}

static void store(uid_t uid, uint64_t key, const char *text, bool marked)
{
    CLEANUP(capture_cache_release)
    struct cached_capture cached = {.job = 7,
                                    .text = xstrdup(text),
                                    .said = xstrdup("an automatic capture"),
                                    .digests = marked ? json_pack("[[s, s]]", "/home/ada/train.py", DIGEST) : NULL};
    struct error err = {0};

    fail_if(capture_cache_store(folder, uid, key, &cached, &err) != 0, err);
}

TEST(test_is_the_users_own)
{
    struct cached_capture cached;

    store(1, 2, "a capture\n", true);
    assert_true(capture_cache_load(folder, 1, 2, &cached));
    assert_int_equal(cached.job, 7);
    assert_string_equal(cached.text, "a capture\n");
    assert_string_equal(cached.said, "an automatic capture");
    assert_string_equal(digests_path(cached.digests, 0), "/home/ada/train.py");
    capture_cache_release(&cached);
    assert_false(has(3, 2));
    assert_false(has(1, 3));
}

/* It is in nobody's way, and the older one is gone: a job's result stands for equal jobs that waited for it. */
TEST(test_without_marks_is_not_kept)
{
    store(1, 4, "a capture\n", true);
    store(1, 4, "another\n", false);
    assert_false(has(1, 4));
}

static void make_older(uid_t uid, uint64_t key, int64_t by_s)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/captures/%u/%016lx", folder, uid, (unsigned long)key);
    CLEANUP(free_ptr) char *text = file_text(path), *changed = NULL;
    struct error err;

    CLEANUP(free_ptr) char *line = xstrndup(text, (size_t)(strchr(text, '\n') - text));
    json_t *header = json_loads(line, 0, NULL);
    json_object_set_new(header, "made_s", json_integer(time(NULL) - by_s));
    free(line);
    line = json_dumps(header, 0);
    json_decref(header);
    changed = xasprintf("%s\n%s", line, strchr(text, '\n') + 1);
    assert_int_equal(file_write_atomic(path, changed, strlen(changed), 0600, &err), 0);
}

TEST(test_does_not_last)
{
    store(1, 5, "a capture\n", true);
    make_older(1, 5, CACHE_AGE_S - 60);
    assert_true(has(1, 5));
    make_older(1, 5, CACHE_AGE_S);
    assert_false(has(1, 5));
    make_older(1, 5, -60);
    assert_false(has(1, 5));
    store(1, 6, NULL, true);
    make_older(1, 6, CACHE_FAILURE_AGE_S - 60);
    assert_true(has(1, 6));
    make_older(1, 6, CACHE_FAILURE_AGE_S);
    assert_false(has(1, 6));
}

static size_t count_of(uid_t uid, uint64_t from, uint64_t count)
{
    size_t cached = 0;

    for (uint64_t key = from; key < from + count; key++)
        cached += has(uid, key);
    return cached;
}

TEST(test_are_not_too_many)
{
    CLEANUP(free_ptr) char *large = xcalloc(1, CACHE_BYTES / 4 + 1);

    for (uint64_t key = 0; key < CACHE_MOST + 5; key++)
        store(8, key, "a capture\n", true);
    assert_int_equal(count_of(8, 0, CACHE_MOST + 5), CACHE_MOST);
    memset(large, 'x', CACHE_BYTES / 4);
    for (uint64_t key = 0; key < 6; key++)
        store(9, key, large, true);
    assert_int_equal(count_of(9, 0, 6), 3); /* four would exceed it by their lines */
    assert_int_equal(count_of(8, 0, CACHE_MOST + 5), CACHE_MOST);
}

TEST(test_unused_ones_go)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/captures/10", folder);
    const struct timespec old[2] = {{.tv_sec = time(NULL) - CACHE_AGE_S - 60},
                                    {.tv_sec = time(NULL) - CACHE_AGE_S - 60}};
    struct stat st;

    store(10, 1, "a capture\n", true);
    capture_cache_prune(folder);
    assert_true(has(10, 1));
    CLEANUP(free_ptr) char *file = xasprintf("%s/0000000000000001", path);
    assert_int_equal(utimensat(-1, file, old, 0), 0);
    capture_cache_prune(folder);
    assert_int_not_equal(stat(path, &st), 0);
}

/* ---- Keys ---- */

static uint64_t key_of(const char *directory_of_job, const char *argument, const char *variable)
{
    struct job_spec spec;

    job_spec_init(&spec);
    spec.directory = xstrdup(directory_of_job);
    spec_strings_add(&spec.command, "python3");
    spec_strings_add(&spec.command, argument);
    spec_strings_add(&spec.environment, "HOME=/home/ada");
    spec_strings_add(&spec.environment, variable);
    uint64_t key = capture_cache_key(&spec);
    job_spec_release(&spec);
    return key;
}

TEST(test_keys)
{
    uint64_t key = key_of("/home/ada", "train.py", "SHLVL=1");

    assert_int_equal(key_of("/home/ada", "train.py", "SHLVL=2"), key);
    assert_int_equal(key_of("/home/ada", "train.py", "SSH_TTY=/dev/pts/3"), key);
    assert_int_not_equal(key_of("/home/ada", "train.py", "BATCH=2"), key);
    assert_int_not_equal(key_of("/home/ada", "other.py", "SHLVL=1"), key);
    assert_int_not_equal(key_of("/home/bob", "train.py", "SHLVL=1"), key);
}

/* ---- Marks ---- */

TEST(test_words)
{
    CLEANUP(job_spec_release) struct job_spec spec;

    job_spec_init(&spec);
    spec.directory = xstrdup("/home/ada");
    for (size_t i = 0; i < 4; i++)
        spec_strings_add(&spec.command, (const char *const[]){"python3", "-u", "train.py", "/data/x"}[i]);
    json_t *digests = digests_of_words(&spec);
    assert_int_equal(json_array_size(digests), 3);
    assert_string_equal(digests_path(digests, 1), "/home/ada/train.py");
    assert_string_equal(digests_path(digests, 2), "/data/x");
    json_decref(digests);
}

/* The job's user wrote it. */
static const struct {
    const char *header;
    int count; /* -1: is not taken */
} answers[] = {
    {"{}", 0},
    {"{\"files\": [[\"/a.py\", \"" DIGEST "\"]], \"packages\": [[\"/p\", \"" DIGEST "\"]]}", 2},
    {"{\"files\": [[\"/tmp/carma-capture-7/job.py\", \"" DIGEST "\"]]}", 0}, /* inside only: it is in the key */
    {"{\"files\": [[\"a.py\", \"" DIGEST "\"]]}", -1},
    {"{\"files\": [[\"/a.py\", \"" DIGEST "0\"]]}", -1},
    {"{\"files\": [[\"/a.py\", \"x\"]]}", -1},
    {"{\"files\": [[\"/a.py\"]]}", -1},
    {"{\"files\": [7, {}]}", -1},
    {"{\"files\": 7}", 0},
};

TEST(test_answers)
{
    for (size_t i = 0; i < array_size(answers); i++) {
        json_t *header = json_loads(answers[i].header, 0, NULL), *digests = digests_of_answer(header);
        int count = digests ? (int)json_array_size(digests) : -1;
        if (count != answers[i].count)
            fail_msg("answer %zu: %d digests", i, count);
        json_decref(digests);
        json_decref(header);
    }
}

TEST(test_too_many_files)
{
    json_t *header = json_pack("{s:[]}", "files"), *files = json_object_get(header, "files");

    for (size_t i = 0; i < 1001; i++)
        json_array_append_new(files, json_pack("[s, s]", "/a", DIGEST));
    assert_null(digests_of_answer(header));
    json_array_remove(files, 0);
    json_t *digests = digests_of_answer(header);
    assert_int_equal(json_array_size(digests), 1000);
    json_decref(header);
    json_decref(digests);
}

TEST(test_read)
{
    static const char good[] = DIGEST "\n-\n";
    json_t *asked = json_pack("[[s, s], [s, s]]", "/a", "-", "/b", "-");
    json_t *seen = digests_read(asked, good, strlen(good)),
           *wanted = json_pack("[[s, s], [s, s]]", "/a", DIGEST, "/b", "-");

    assert_true(json_equal(seen, wanted));
    assert_null(digests_read(asked, good, strlen(good) - 1));
    assert_null(digests_read(asked, DIGEST "\n", sizeof DIGEST));
    assert_null(digests_read(asked, "x\n-\n", 4));
    json_decref(seen);
    json_decref(wanted);
    json_decref(asked);
}

RUN_TESTS(make_folder, remove_folder)
