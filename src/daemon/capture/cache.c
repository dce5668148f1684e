#include "daemon/capture/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/capture_answer.h"
#include "api/spec.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/units.h"

#define FORMAT     2
#define SIZE_LIMIT (SPEC_MAX_CAPTURE + (2 << 20)) /* with its line of JSON */

/* Of the shell or its terminal, not of the work: a new login would else be another environment. */
static const char *const of_the_shell[] = {"_=",
                                           "SHLVL=",
                                           "PWD=",
                                           "OLDPWD=",
                                           "TERM",
                                           "COLORTERM=",
                                           "COLUMNS=",
                                           "LINES=",
                                           "SSH_",
                                           "XDG_",
                                           "TMUX",
                                           "STY=",
                                           "WINDOW",
                                           "DISPLAY=",
                                           "WAYLAND_",
                                           "DBUS_",
                                           "GPG_",
                                           "PS1=",
                                           "PROMPT",
                                           "HIST",
                                           "VSCODE_",
                                           "KRB5CCNAME=",
                                           "MAIL=",
                                           "INVOCATION_ID=",
                                           "JOURNAL_STREAM=",
                                           "CARMA_SOCKET=",
                                           "LS_COLORS="};

void capture_cache_release(struct cached_capture *cached)
{
    json_decref(cached->digests);
    free(cached->text);
    free(cached->said);
    *cached = (struct cached_capture){0};
}

static uint64_t mix(uint64_t digest, const char *text)
{
    return text ? digest_add(digest, text, strlen(text) + 1) : digest_add(digest, "\1", 2);
}

static bool is_of_the_shell(const char *variable)
{
    for (size_t i = 0; i < array_size(of_the_shell); i++)
        if (strncmp(variable, of_the_shell[i], strlen(of_the_shell[i])) == 0)
            return true;
    return false;
}

/* In whatever order they are. */
static uint64_t digest_of_environment(const struct spec_strings *environment)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < environment->count; i++)
        if (!is_of_the_shell(environment->items[i]))
            sum += digest_of_text(environment->items[i]);
    return sum;
}

uint64_t capture_cache_key(const struct job_spec *spec)
{
    uint64_t digest = mix(DIGEST_EMPTY, CARMA_VERSION), environment = digest_of_environment(&spec->environment);

    digest = mix(digest, spec->directory);
    digest = mix(digest, spec->conda_environment);
    digest = mix(digest, spec->script);
    for (size_t i = 0; i < spec->command.count; i++)
        digest = mix(digest, spec->command.items[i]);
    digest = digest_add(digest, &spec->gpus, sizeof spec->gpus);
    return digest_add(digest, &environment, sizeof environment);
}

static char *folder_of(const char *state_directory, uid_t uid)
{
    return xasprintf("%s/captures/%u", state_directory, uid);
}

static char *file_of(const char *state_directory, uid_t uid, uint64_t key)
{
    return xasprintf("%s/captures/%u/%016" PRIx64, state_directory, uid, key);
}

/* ---- One ---- */

static bool is_in_time(const json_t *header)
{
    int64_t age_s = time(NULL) - json_integer_value(json_object_get(header, "made_s"));

    /* A clock that was set back tells no age. */
    return age_s >= 0 && age_s < (json_is_true(json_object_get(header, "capture")) ? CACHE_AGE_S : CACHE_FAILURE_AGE_S);
}

bool capture_cache_load(const char *state_directory, uid_t uid, uint64_t key, struct cached_capture *cached)
{
    CLEANUP(free_ptr) char *path = file_of(state_directory, uid, key);
    CLEANUP(free_ptr) char *bytes = NULL;
    const char *line_end, *said = NULL;
    json_t *header = NULL, *digests = NULL;
    json_int_t format = 0, job = 0;
    size_t length;
    bool good;

    *cached = (struct cached_capture){0};
    if (file_read(path, SIZE_LIMIT, &bytes, &length, NULL) < 0)
        return false;
    line_end = memchr(bytes, '\n', length);
    if (line_end)
        json_read(bytes, (size_t)(line_end - bytes), 0, &(struct json_bounds)CAPTURE_HEADER_BOUNDS, &header, NULL);
    good = json_unpack(header, "{s:I, s:I, s:s, s:o}", "format", &format, "job", &job, "said", &said, "digests",
                       &digests) == 0 &&
           format == FORMAT && is_in_time(header);
    if (good) {
        *cached = (struct cached_capture){.job = (uint64_t)job, .digests = json_incref(digests), .said = xstrdup(said)};
        if (json_is_true(json_object_get(header, "capture")))
            cached->text = xstrndup(line_end + 1, length - (size_t)(line_end + 1 - bytes));
        utimensat(AT_FDCWD, path, NULL, 0);
    }
    json_decref(header);
    return good;
}

/* ---- Bounds ---- */

struct aged {
    char *name; /* owned */
    int64_t used_ns;
    off_t bytes;
};

static int by_latest_use(const void *a, const void *b)
{
    int64_t one = ((const struct aged *)a)->used_ns, other = ((const struct aged *)b)->used_ns;

    return (one < other) - (one > other);
}

static void prune_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    struct aged *all = NULL;
    size_t count = 0, capacity = 0;
    off_t bytes = 0;
    struct stat st;

    while (entries && (entry = readdir(entries)))
        if (fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            array_reserve(all, capacity, count + 1);
            all[count++] =
                (struct aged){xstrdup(entry->d_name), st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec, st.st_size};
        }
    if (count)
        qsort(all, count, sizeof *all, by_latest_use);
    for (size_t i = 0; i < count; i++) {
        bytes += all[i].bytes;
        if (i >= CACHE_MOST || bytes > CACHE_BYTES || all[i].used_ns / NS_PER_SEC + CACHE_AGE_S < time(NULL))
            unlinkat(dirfd(entries), all[i].name, 0);
        free(all[i].name);
    }
    free(all);
    if (entries)
        closedir(entries);
}

int capture_cache_store(const char *state_directory, uid_t uid, uint64_t key, const struct cached_capture *cached,
                        struct error *err)
{
    CLEANUP(free_ptr) char *folder = folder_of(state_directory, uid);
    CLEANUP(free_ptr) char *path = file_of(state_directory, uid, key);
    json_t *header = json_pack("{s:i, s:I, s:I, s:b, s:s, s:O?}", "format", FORMAT, "job", (json_int_t)cached->job,
                               "made_s", (json_int_t)time(NULL), "capture", cached->text != NULL, "said", cached->said,
                               "digests", cached->digests);
    CLEANUP(free_ptr) char *line = header ? json_dumps(header, JSON_COMPACT) : NULL;
    CLEANUP(free_ptr) char *bytes = line ? xasprintf("%s\n%s", line, cached->text ? cached->text : "") : NULL;
    int rc = bytes ? file_make_dirs(folder, 0700, err) : error_set(err, EINVAL, "it is not UTF-8");

    json_decref(header);
    unlink(path);
    if (rc == 0 && cached->digests)
        rc = file_write_atomic(path, bytes, strlen(bytes), 0600, err);
    prune_folder(folder);
    return rc;
}

void capture_cache_prune(const char *state_directory)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/captures", state_directory);
    DIR *entries = opendir(path);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries)))
        if (entry->d_name[0] != '.') {
            CLEANUP(free_ptr) char *folder = xasprintf("%s/%s", path, entry->d_name);
            prune_folder(folder);
            rmdir(folder); /* where it is empty */
        }
    if (entries)
        closedir(entries);
}
