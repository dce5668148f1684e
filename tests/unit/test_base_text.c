/* Errors, growable strings, the last line of a stream, and memory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/last_line.h"
#include "base/memory.h"
#include "base/strbuf.h"

static void an_error_is_a_negative_errno_with_a_sentence(void **state)
{
    struct error err;

    assert_int_equal(error_set(&err, EINVAL, "bad %s: %d", "value", 7), -EINVAL);
    assert_string_equal(err.text, "bad value: 7");
    assert_int_equal(error_set(&err, -ENOENT, "gone"), -ENOENT);
    assert_string_equal(err.text, "gone");
    assert_int_equal(error_set(NULL, EPERM, "nobody listens"), -EPERM);
}

static void context_goes_before_an_error(void **state)
{
    struct error err;

    error_set(&err, EINVAL, "not a size");
    error_prefix(&err, "%s:%d", "jobs.rad", 3);
    assert_string_equal(err.text, "jobs.rad:3: not a size");
    error_prefix(NULL, "nobody listens");
}

static void a_long_error_is_cut_not_overrun(void **state)
{
    struct error err;
    char huge[2 * sizeof err.text];

    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    error_set(&err, EINVAL, "%s", huge);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    error_prefix(&err, "context");
    assert_int_equal(strncmp(err.text, "context: xxx", 12), 0);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    error_prefix(&err, "%s", huge);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void a_string_grows(void **state)
{
    struct strbuf buf = {0};
    char *stolen;

    strbuf_puts(&buf, "");
    assert_string_equal(buf.text, "");
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&buf, "%d,", i);
    assert_int_equal(buf.length, 3890);
    assert_int_equal(strlen(buf.text), buf.length);
    assert_string_equal(buf.text + buf.length - 8, "998,999,");
    strbuf_append(&buf, "a\0b", 3);
    assert_int_equal(buf.length, 3893);
    assert_memory_equal(buf.text + 3890, "a\0b", 4);
    strbuf_clear(&buf);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf.text, "");
    strbuf_puts(&buf, "again");
    stolen = strbuf_steal(&buf);
    assert_string_equal(stolen, "again");
    assert_null(buf.text);
    assert_int_equal(buf.capacity, 0);
    free(stolen);
    stolen = strbuf_steal(&buf);
    assert_string_equal(stolen, "");
    free(stolen);
    strbuf_puts(&buf, "released");
    strbuf_release(&buf);
    assert_null(buf.text);
    assert_int_equal(buf.length, 0);
}

static void cleared_before_it_grew_is_fine(void **state)
{
    struct strbuf buf = {0};

    strbuf_clear(&buf);
    strbuf_append(&buf, NULL, 0);
    assert_string_equal(buf.text, "");
    strbuf_release(&buf);
}

static void strings_are_copied(void **state)
{
    char *whole = xstrdup("carma"), *part = xstrndup("carma", 3), *made = xasprintf("%s-%d", "gpu", 3);

    assert_string_equal(whole, "carma");
    assert_string_equal(part, "car");
    assert_string_equal(made, "gpu-3");
    assert_null(xstrdup(NULL));
    free_ptr(&whole);
    assert_null(whole);
    free_ptr(&whole);
    free(part);
    free(made);
}

static void ownership_leaves_a_scope(void **state)
{
    char *out;

    {
        CLEANUP(free_ptr) char *inner = xstrdup("kept");
        out = steal_ptr(&inner);
        assert_null(inner);
    }
    assert_string_equal(out, "kept");
    free(out);
}

static void arrays_grow_by_doubling(void **state)
{
    size_t capacity = 0;
    int *items = NULL;

    array_reserve(items, capacity, 1);
    assert_int_equal(capacity, 8);
    items[7] = 7;
    array_reserve(items, capacity, 8);
    assert_int_equal(capacity, 8);
    array_reserve(items, capacity, 17);
    assert_int_equal(capacity, 32);
    assert_int_equal(items[7], 7);
    items[31] = 1;
    free(items);
}

/* The program must stop with one line, not go on with a small block. */
static void an_overflowing_size_aborts(void **state)
{
    int status;
    char text[64] = "";
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        xrealloc(NULL, SIZE_MAX / 2, 3);
        _exit(0);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(text, "carma: out of memory\n");
}

static void add(struct last_line *line, const char *text)
{
    last_line_add(line, text, strlen(text));
}

static void the_last_line_of_a_stream_is_kept(void **state)
{
    struct last_line line = {0};

    assert_string_equal(line.text, "");
    add(&line, "first\nsec");
    assert_string_equal(line.text, "sec");
    add(&line, "ond\t\033[1m\177");
    assert_string_equal(line.text, "second??[1m?");
    add(&line, "\n\n");
    assert_string_equal(line.text, "second??[1m?"); /* until another begins */
    add(&line, "third");
    assert_string_equal(line.text, "third");
}

static void a_long_last_line_is_cut(void **state)
{
    struct last_line line = {0};

    for (int i = 0; i < 100; i++)
        add(&line, "0123456789");
    assert_int_equal(strlen(line.text), sizeof line.text - 1);
    assert_int_equal(strncmp(line.text, "01234567890", 11), 0);
    add(&line, "\nnext");
    assert_string_equal(line.text, "next");
}

static void closing_keeps_errno(void **state)
{
    int fd = open("/dev/null", O_RDONLY), copy = fd;

    errno = EDOM;
    close_fd(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(copy, F_GETFD), -1);
    errno = EDOM;
    close_fd(&fd);
    assert_int_equal(errno, EDOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_a_negative_errno_with_a_sentence),
        cmocka_unit_test(context_goes_before_an_error),
        cmocka_unit_test(a_long_error_is_cut_not_overrun),
        cmocka_unit_test(a_string_grows),
        cmocka_unit_test(cleared_before_it_grew_is_fine),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(ownership_leaves_a_scope),
        cmocka_unit_test(arrays_grow_by_doubling),
        cmocka_unit_test(an_overflowing_size_aborts),
        cmocka_unit_test(the_last_line_of_a_stream_is_kept),
        cmocka_unit_test(a_long_last_line_is_cut),
        cmocka_unit_test(closing_keeps_errno),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
