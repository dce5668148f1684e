/* For tests of the reader of summaries: the files of tests/golden/summaries, whole and changed. */
#ifndef CARMA_TESTS_SUMMARY_FIXTURE_H
#define CARMA_TESTS_SUMMARY_FIXTURE_H

#include "unit.h"

#include "estimate/summary/read.h"

#define MAX_FILE ((size_t)1 << 20)

static inline char *load(const char *name, size_t *length)
{
    char *path = xasprintf("%s/%s", CARMA_SUMMARIES, name), *text;
    struct error err;

    fail_if(file_read(path, MAX_FILE, &text, length, &err), err);
    free(path);
    return text;
}

/* What was read last. */
static struct summary summary;

static inline int release_summary(void **state)
{
    summary_release(&summary);
    return 0;
}

#define SUMMARY_TEST(name) TEST_BETWEEN(name, NULL, release_summary)

static inline void read_ok(const char *name, const char *text, size_t length)
{
    struct error err;

    summary_release(&summary);
    fail_if(summary_read(&summary, name, text, length, &err), err);
}

/* Takes the text. */
static inline void read_own(char *text)
{
    read_ok("m.txt", text, strlen(text));
    free(text);
}

static inline void read_fixture(const char *name)
{
    size_t length;
    char *text = load(name, &length);

    read_ok(name, text, length);
    free(text);
}

static inline void assert_refused(const char *text, size_t length, const char *expected)
{
    struct summary refused;
    struct error err = {{0}};
    int rc = summary_read(&refused, "m.txt", text, length, &err);

    if (rc != -EINVAL && rc != -EBADMSG)
        fail_msg("accepted, instead of: %s", expected);
    assert_null(refused.layers.items);
    assert_int_equal(strncmp(err.text, "m.txt:", 6), 0);
    assert_null(strchr(err.text, '\n'));
    assert_has(err.text, expected);
}

/* The file's text with `from` replaced, which must be there once or more: its first occurrence. */
static inline char *replaced(const char *name, const char *from, const char *to)
{
    size_t length, before;
    char *text = load(name, &length), *changed;

    if (!strstr(text, from))
        fail_msg("%s has no '%s'", name, from);
    before = (size_t)(strstr(text, from) - text);
    changed = xasprintf("%.*s%s%s", (int)before, text, to, text + before + strlen(from));
    free(text);
    return changed;
}

static inline void fixtures(glob_t *files)
{
    assert_int_equal(glob(CARMA_SUMMARIES "/*.txt", 0, NULL, files), 0);
    assert_true(files->gl_pathc > 40);
}

static inline const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

#endif
