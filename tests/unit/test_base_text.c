/* Errors, growable strings, the last line of a stream, and memory. */
#include "unit.h"

#include "base/text/last_line.h"
#include "base/text/printable.h"

TEST(an_error_is_a_negative_errno_with_a_sentence)
{
    assert_int_equal(error_set(&trouble, EINVAL, "bad %s: %d", "value", 7), -EINVAL);
    assert_string_equal(trouble.text, "bad value: 7");
    assert_int_equal(error_set(&trouble, -ENOENT, "gone"), -ENOENT);
    assert_string_equal(trouble.text, "gone");
    assert_int_equal(error_set(NULL, EPERM, "nobody listens"), -EPERM);
}

TEST(context_goes_before_an_error)
{
    error_set(&trouble, EINVAL, "not a size");
    error_prefix(&trouble, "%s:%d", "jobs.rad", 3);
    assert_string_equal(trouble.text, "jobs.rad:3: not a size");
    error_prefix(NULL, "nobody listens");
}

TEST(a_long_error_is_cut_not_overrun)
{
    char huge[2 * sizeof trouble.text];

    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    error_set(&trouble, EINVAL, "%s", huge);
    assert_int_equal(strlen(trouble.text), sizeof trouble.text - 1);
    error_prefix(&trouble, "context");
    assert_int_equal(strncmp(trouble.text, "context: xxx", 12), 0);
    assert_int_equal(strlen(trouble.text), sizeof trouble.text - 1);
    error_prefix(&trouble, "%s", huge);
    assert_int_equal(strlen(trouble.text), sizeof trouble.text - 1);
}

TEST(a_string_grows)
{
    struct strbuf buf = {0};

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
    char *stolen = strbuf_steal(&buf);
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

TEST(cleared_before_it_grew_is_fine)
{
    CLEANUP(strbuf_release) struct strbuf buf = {0};

    strbuf_clear(&buf);
    strbuf_append(&buf, NULL, 0);
    assert_string_equal(buf.text, "");
}

TEST(strings_are_copied)
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

TEST(ownership_leaves_a_scope)
{
    CLEANUP(free_ptr) char *out = NULL;

    {
        CLEANUP(free_ptr) char *inner = xstrdup("kept");
        out = steal_ptr(&inner);
        assert_null(inner);
    }
    assert_string_equal(out, "kept");
}

TEST(arrays_grow_by_doubling)
{
    size_t capacity = 0;
    CLEANUP(free_ptr) int *items = NULL;

    array_reserve(items, capacity, 1);
    assert_int_equal(capacity, 8);
    items[7] = 7;
    array_reserve(items, capacity, 8);
    assert_int_equal(capacity, 8);
    array_reserve(items, capacity, 17);
    assert_int_equal(capacity, 32);
    assert_int_equal(items[7], 7);
    items[31] = 1;
}

/* The program must stop with one line, not go on with a small block. */
TEST(an_overflowing_size_aborts)
{
    int status;
    char text[64] = "";
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
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

TEST(the_last_line_of_a_stream_is_kept)
{
    struct last_line line = {0};

    assert_string_equal(line.text, "");
    add(&line, "first\nsec");
    assert_string_equal(line.text, "sec");
    add(&line, "ond\t\033[1m\177\xc2");
    add(&line, "\x9b");
    add(&line, "\n\n");
    assert_string_equal(last_line_text(&line), "second??[1m??"); /* until another begins */
    add(&line, "third");
    assert_string_equal(last_line_text(&line), "third");
}

/* A text, and its form for a line, in its own place, and in JSON. */
TEST(text_of_others_is_made_printable)
{
    static const char *const rows[][4] = {
        {"plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80",
         "plain \xc3\xa9 \xf0\x9f\x98\x80"},
        {"\033[2J\n", "\\x1b[2J\\x0a", "?[2J?", "\033[2J\n"}, /* jansson has escaped them */
        {"\x7f", "\\x7f", "?", "\\u007f"},
        {"a\xc2\x9b"
         "b",
         "a\\xc2\\x9b"
         "b",
         "a?b", "a\\u009bb"},
        {"\xd8\x9c\xe2\x80\xae\xe2\x81\xa9", "\\xd8\\x9c\\xe2\\x80\\xae\\xe2\\x81\\xa9", "???",
         "\\u061c\\u202e\\u2069"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9", "??", "\\u2028\\u2029"},
        {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81", "?", "\\udb40\\udc41"},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(strbuf_release) struct strbuf line = {0};
        CLEANUP(free_ptr) char *own = xstrdup(rows[i][0]);
        CLEANUP(free_ptr) char *json = printable_json(xstrdup(rows[i][0]));

        printable_append(&line, rows[i][0]);
        printable_replace(own);
        assert_string_equal(line.text, rows[i][1]);
        assert_string_equal(own, rows[i][2]);
        assert_string_equal(json, rows[i][3]);
    }
}

TEST(a_long_last_line_is_cut)
{
    struct last_line line = {0};

    for (int i = 0; i < 100; i++)
        add(&line, "0123456789");
    assert_int_equal(strlen(line.text), sizeof line.text - 1);
    assert_int_equal(strncmp(line.text, "01234567890", 11), 0);
    add(&line, "\nnext");
    assert_string_equal(line.text, "next");
}

TEST(closing_keeps_errno)
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
