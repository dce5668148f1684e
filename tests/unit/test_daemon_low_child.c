/* A child of lowest priority: its limits, and the reports of its end. */
#include "unit.h"

#include "daemon/low_child.h"

static struct {
    bool ended;
    int rc;
    char output[64];
    struct error err;
} seen;

static void on_ended(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    assert_false(seen.ended);
    seen.ended = true;
    seen.rc = rc;
    assert_true(length < sizeof seen.output);
    memcpy(seen.output, output, length + 1);
    seen.err = *err;
    assert_string_equal(user, "user");
}

static void run_with(const char *script, const char *input, struct low_child_limits limits)
{
    char shell[] = "/bin/sh", option[] = "-c", user[] = "user";
    CLEANUP(free_ptr) char *text = xstrdup(script);
    char *argv[] = {shell, option, text, NULL};
    struct low_child *child;
    uv_loop_t loop;

    memset(&seen, 0, sizeof seen);
    uv_loop_init(&loop);
    fail_if(low_child_start(&loop, argv, input, &limits, on_ended, user, &child, &trouble), trouble);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_true(seen.ended);
}

#define PLENTY                                                                                                         \
    (struct low_child_limits)                                                                                          \
    {                                                                                                                  \
        .what = "simulation", .too_long = "ask about less", .too_large = "try again", .time_s = 600,                   \
        .memory_bytes = INT64_C(1) << 40, .output_bytes = 40                                                           \
    }

static void run(const char *script, struct low_child_limits limits)
{
    run_with(script, NULL, limits);
}

static void assert_failed(const char *words)
{
    assert_true(seen.rc < 0);
    assert_has(seen.err.text, words);
}

TEST(test_its_words)
{
    run("echo one; echo said >&2; exec >&-; echo more >&2", PLENTY);
    assert_int_equal(seen.rc, 0);
    assert_string_equal(seen.output, "one\n");
    run("printf '%040d' 0", PLENTY);
    assert_int_equal(seen.rc, 0);
    run("printf '%041d' 0", PLENTY);
    assert_failed("more than 40 bytes");
    run("yes", PLENTY);
    assert_failed("more than 40 bytes");
}

/* More than a pipe holds, too; and nobody has to read it. */
TEST(test_its_input)
{
    char large[200001];

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    run_with("cat", "a request", PLENTY);
    assert_int_equal(seen.rc, 0);
    assert_string_equal(seen.output, "a request");
    run_with("wc -c", large, PLENTY);
    assert_int_equal(atoi(seen.output), 200000);
    run_with("exec <&-; echo one", large, PLENTY);
    assert_string_equal(seen.output, "one\n");
}

TEST(test_its_end)
{
    struct low_child_limits limits = PLENTY;

    run("echo one; echo carma: first >&2; printf 'carma: the\\tlast' >&2; exit 3", PLENTY);
    assert_failed("the?last");
    assert_memory_equal(seen.err.text, "the", 3);
    run("exit 3", PLENTY);
    assert_failed("does not say why");
    limits.status = 3; /* an answer, too */
    run("echo one; exit 3", limits);
    assert_int_equal(seen.rc, 0);
    assert_string_equal(seen.output, "one\n");
    run("exit 4", limits);
    assert_failed("does not say why");
    run("kill -SEGV $$", PLENTY);
    assert_failed("ended by signal 11");
}

TEST(test_its_limits)
{
    struct low_child_limits limits = PLENTY;

    limits.time_s = 1;
    run("exec sleep 1000", limits);
    assert_failed("longer than 1 s");
    limits = PLENTY;
    limits.memory_bytes = 64 << 20;
    run("exec python3 -c 'import time; x = bytearray(200000000); time.sleep(1000)'", limits);
    assert_failed("more than 64 MiB of memory");
}

TEST(test_it_is_left)
{
    char sleep[] = "/bin/sleep", long_time[] = "1000", none[] = "/nonexistent/program";
    char *argv[] = {sleep, long_time, NULL}, *missing[] = {none, NULL};
    struct low_child *child;
    uv_loop_t loop;

    memset(&seen, 0, sizeof seen);
    uv_loop_init(&loop);
    assert_int_equal(low_child_start(&loop, argv, NULL, &PLENTY, on_ended, NULL, &child, &trouble), 0);
    low_child_free(child);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it has been reaped */
    assert_true(low_child_start(&loop, missing, NULL, &PLENTY, on_ended, NULL, &child, &trouble) < 0);
    assert_non_null(strstr(trouble.text, none));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_false(seen.ended);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as in the daemon */
    return unit_tests_run("tests", NULL, NULL);
}
