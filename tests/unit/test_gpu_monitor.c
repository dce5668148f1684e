/* The daemon's side: readings come, and a child that dies, hangs, or talks nonsense is told of once and replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/units.h"
#include "gpu/monitor.h"

struct watcher {
    uv_loop_t loop;
    uv_timer_t guard;
    struct gpu_monitor *monitor;
    int readings, problems;
    int readings_wanted, problems_wanted; /* the monitor is freed once both have come */
    char last_problem[700];
    bool late;
};

static void free_monitor(struct watcher *watcher)
{
    gpu_monitor_free(watcher->monitor);
    watcher->monitor = NULL;
    uv_close((uv_handle_t *)&watcher->guard, NULL);
}

static void check_done(struct watcher *watcher)
{
    if (watcher->monitor && watcher->readings >= watcher->readings_wanted &&
        watcher->problems >= watcher->problems_wanted)
        free_monitor(watcher); /* from within a callback, as a daemon may */
}

static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct watcher *watcher = user;

    assert_non_null(watcher->monitor);
    assert_int_equal(reading->count, 2);
    watcher->readings++;
    check_done(watcher);
}

static void on_problem(void *user, const char *text)
{
    struct watcher *watcher = user;

    assert_null(strchr(text, '\n'));
    snprintf(watcher->last_problem, sizeof watcher->last_problem, "%s", text);
    watcher->problems++;
    check_done(watcher);
}

static void on_guard(uv_timer_t *timer)
{
    struct watcher *watcher = timer->data;

    watcher->late = true;
    if (watcher->monitor)
        free_monitor(watcher);
}

/* Runs a monitor until the wanted readings and problems have come, or for guard_ms; then until it is closed. */
static void watch(struct watcher *watcher, const char *words, const char *program, const char *library, int readings,
                  int problems, uint64_t guard_ms)
{
    struct gpu_monitor_options options = {
        .program = program,
        .library = library,
        .period_ns = 10 * NS_PER_MS,
        .silence_wall_ns = 250 * NS_PER_MS,
        .restart_wall_ns = 10 * NS_PER_MS,
        .on_reading = on_reading,
        .on_problem = on_problem,
        .user = watcher,
    };

    setenv("FAKE_NVML", words, 1);
    *watcher = (struct watcher){.readings_wanted = readings, .problems_wanted = problems};
    assert_int_equal(uv_loop_init(&watcher->loop), 0);
    uv_timer_init(&watcher->loop, &watcher->guard);
    watcher->guard.data = watcher;
    uv_timer_start(&watcher->guard, on_guard, guard_ms, 0);
    watcher->monitor = gpu_monitor_new(&watcher->loop, &options);
    check_done(watcher);
    assert_int_equal(uv_run(&watcher->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&watcher->loop), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
}

static void test_readings_come(void **state)
{
    struct watcher watcher;

    watch(&watcher, "noisy", CARMA_MONITOR, FAKE_NEW, 5, 0, 5000);
    assert_int_equal(watcher.readings, 5); /* none after the free */
    assert_int_equal(watcher.problems, 0);
    assert_false(watcher.late);
}

static void test_a_killed_child_is_replaced(void **state)
{
    struct watcher watcher;

    watch(&watcher, "crash=3", CARMA_MONITOR, FAKE_NEW, 5, 2, 8000);
    assert_false(watcher.late);
    assert_non_null(strstr(watcher.last_problem, "signal 9"));
    assert_non_null(strstr(watcher.last_problem, CARMA_MONITOR));
}

static void test_a_hung_child_is_replaced(void **state)
{
    struct watcher watcher;

    watch(&watcher, "hang=3", CARMA_MONITOR, FAKE_NEW, 3, 1, 8000);
    assert_false(watcher.late);
    assert_int_equal(watcher.readings, 4 - 1); /* two of the first child, then one of the next */
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "silent"));
}

/* The reason is the child's own last line, and it is said once, however often it is tried again. */
static void test_a_missing_library_is_told_once(void **state)
{
    struct watcher watcher;

    watch(&watcher, "", CARMA_MONITOR, "/nonexistent/libnvidia-ml.so.1", 1, 0, 700);
    assert_true(watcher.late);
    assert_int_equal(watcher.readings, 0);
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "status 1"));
    assert_non_null(strstr(watcher.last_problem, "/nonexistent/libnvidia-ml.so.1"));
}

static void test_a_missing_program_is_told_once(void **state)
{
    struct watcher watcher;

    watch(&watcher, "", "/nonexistent/carma-monitor", NULL, 1, 0, 200);
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "/nonexistent/carma-monitor"));
}

/* Programs that are not carma-monitor at all. */
static void test_impostors(void **state)
{
    static const struct {
        const char *script, *why;
    } impostors[] = {
        {"#!/bin/sh\necho this is not a frame at all\nsleep 30\n", "not a GPU frame"},
        {"#!/bin/sh\nexec >&-\nexec sleep 30\n", "silent"},
        {"#!/bin/sh\nexit 0\n", "status 0"},
        {"#!/bin/sh\nprintf 'one\\ntwo\\nth\\tree' >&2\nexit 3\n", "status 3: th?ree;"},
        /* its pipes stay open in a process that it leaves behind */
        {"#!/bin/sh\nsleep 2 &\nexit 4\n", "silent"},
    };
    char dir[] = "/tmp/carma-test-XXXXXX";
    CLEANUP(free_ptr) char *program = NULL;

    assert_non_null(mkdtemp(dir));
    program = xasprintf("%s/impostor", dir);
    for (size_t i = 0; i < array_size(impostors); i++) {
        struct watcher watcher;
        struct error err;
        assert_int_equal(file_write_atomic(program, impostors[i].script, strlen(impostors[i].script), 0755, &err), 0);
        watch(&watcher, "", program, NULL, 0, 1, 8000);
        assert_false(watcher.late);
        if (!strstr(watcher.last_problem, impostors[i].why))
            fail_msg("'%s' is not about '%s'", watcher.last_problem, impostors[i].why);
    }
    unlink(program);
    rmdir(dir);
}

static void test_free_at_once(void **state)
{
    struct watcher watcher;

    watch(&watcher, "", CARMA_MONITOR, FAKE_NEW, 0, 0, 5000);
    assert_false(watcher.late);
    assert_int_equal(watcher.readings, 0);
    gpu_monitor_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readings_come),
        cmocka_unit_test(test_a_killed_child_is_replaced),
        cmocka_unit_test(test_a_hung_child_is_replaced),
        cmocka_unit_test(test_a_missing_library_is_told_once),
        cmocka_unit_test(test_a_missing_program_is_told_once),
        cmocka_unit_test(test_impostors),
        cmocka_unit_test(test_free_at_once),
    };

    unsetenv("CARMA_TIME_SCALE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
