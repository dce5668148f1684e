/* The daemon's side: readings come, and a child that dies, hangs, or talks nonsense is told of once and replaced. */
#include "unit.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "gpu/monitor/monitor.h"
#include "gpu/nvml/abi.h"

/* Children that no signal ends, as many as are wanted, each for as long as the directory is there. */
static char stuck_dir[32];

static void get_stuck(const char *times)
{
    int status;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t tracer = fork();
    if (tracer == 0)
        _exit(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) == 0 ? 0 : errno);
    assert_int_equal(waitpid(tracer, &status, 0), tracer);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        print_message("processes may not be traced here: no child that cannot be killed can be made\n");
        skip();
    }
    strcpy(stuck_dir, "/tmp/carma-test-XXXXXX");
    assert_non_null(mkdtemp(stuck_dir));
    setenv("STUCK_WHILE", stuck_dir, 1);
    setenv("STUCK_TIMES", times, 1);
}

/* Removes the directory; how many children were started. */
static int get_loose(void)
{
    char path[64];
    int started = 0;

    if (!stuck_dir[0])
        return 0;
    do
        snprintf(path, sizeof path, "%s/%d", stuck_dir, ++started);
    while (unlink(path) == 0);
    rmdir(stuck_dir);
    stuck_dir[0] = '\0';
    return started - 1;
}

struct watcher {
    uv_loop_t loop;
    uv_timer_t guard;
    struct gpu_monitor *monitor;
    int readings, problems;
    int readings_wanted, problems_wanted; /* the monitor is freed once both have come */
    uint64_t after_problem_ms;            /* or so long after a problem, where that is not 0 */
    int started_before_loose;             /* hanging ones are let loose above this number; 0: never */
    unsigned stall_us;                    /* how long the loop is held up by each reading */
    int first_gpu_error;                  /* in the latest reading */
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
    watcher->first_gpu_error = reading->gpus[0].error;
    usleep(watcher->stall_us);
    check_done(watcher);
}

static void on_guard(uv_timer_t *timer)
{
    struct watcher *watcher = timer->data;

    watcher->late = true;
    if (watcher->monitor)
        free_monitor(watcher);
}

static void on_problem(void *user, const char *text)
{
    struct watcher *watcher = user;

    assert_null(strchr(text, '\n'));
    snprintf(watcher->last_problem, sizeof watcher->last_problem, "%s", text);
    watcher->problems++;
    if (watcher->started_before_loose && strstr(text, "of them hang"))
        assert_int_equal(get_loose(), watcher->started_before_loose);
    if (watcher->after_problem_ms)
        uv_timer_start(&watcher->guard, on_guard, watcher->after_problem_ms, 0);
    check_done(watcher);
}

/* Runs a monitor until the event for `watcher` has come, or for 10 s; then until it is closed. */
static void watch(struct watcher *watcher, const char *words, const char *program, const char *library,
                  int64_t silence_ms)
{
    struct gpu_monitor_options options = {
        .program = program,
        .library = library,
        .period_ns = 10 * NS_PER_MS,
        .silence_wall_ns = silence_ms * NS_PER_MS,
        .restart_wall_ns = 10 * NS_PER_MS,
        .on_reading = on_reading,
        .on_problem = on_problem,
        .user = watcher,
    };

    setenv("FAKE_NVML", words, 1);
    assert_int_equal(uv_loop_init(&watcher->loop), 0);
    uv_timer_init(&watcher->loop, &watcher->guard);
    watcher->guard.data = watcher;
    uv_timer_start(&watcher->guard, on_guard, 10000, 0);
    watcher->monitor = gpu_monitor_new(&watcher->loop, &options);
    check_done(watcher);
    assert_int_equal(uv_run(&watcher->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&watcher->loop), 0);
    assert_int_equal(watcher->late, watcher->after_problem_ms != 0);
    if (!getenv("STUCK_WHILE"))
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
}

TEST(test_readings_come)
{
    struct watcher watcher = {.readings_wanted = 5};

    watch(&watcher, "noisy", CARMA_MONITOR, FAKE_NEW, 2000);
    assert_int_equal(watcher.readings, 5); /* none after the free */
    assert_int_equal(watcher.problems, 0);
    watcher = (struct watcher){0};
    watch(&watcher, "", CARMA_MONITOR, FAKE_NEW, 2000); /* freed at once */
    assert_int_equal(watcher.readings, 0);
    gpu_monitor_free(NULL);
}

TEST(test_a_killed_child_is_replaced)
{
    struct watcher watcher = {.readings_wanted = 5, .problems_wanted = 2};

    watch(&watcher, "crash=3", CARMA_MONITOR, FAKE_NEW, 2000);
    assert_non_null(strstr(watcher.last_problem, "signal 9"));
    assert_non_null(strstr(watcher.last_problem, CARMA_MONITOR));
}

TEST(test_a_hung_child_is_replaced)
{
    struct watcher watcher = {.readings_wanted = 3, .problems_wanted = 1};

    watch(&watcher, "hang=3", CARMA_MONITOR, FAKE_NEW, 250);
    assert_int_equal(watcher.readings, 3); /* two of the first child, then one of the next */
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "silent"));
}

/* Where it is one GPU's calls that hang, the others are seen again. */
TEST(test_a_gpu_whose_calls_hang_is_left_out)
{
    struct watcher watcher = {.readings_wanted = 3, .problems_wanted = 2};

    watch(&watcher, "hang=1", CARMA_MONITOR, FAKE_NEW, 120);
    assert_int_equal(watcher.problems, 2);
    assert_non_null(strstr(watcher.last_problem, "the GPU with index 0 hangs"));
    assert_int_equal(watcher.first_gpu_error, NVML_ERROR_TIMEOUT);
    assert_int_equal(watcher.readings, 3);
}

/* The loop itself is held up for longer than the allowed silence: that is not the child's fault. */
TEST(test_a_stall_of_the_daemon_kills_nobody)
{
    struct watcher watcher = {.readings_wanted = 2, .stall_us = 300000};

    watch(&watcher, "", CARMA_MONITOR, FAKE_NEW, 200);
    assert_int_equal(watcher.problems, 0);
}

/* The reason is the child's own last line, and it is said once, however often it is retried. */
TEST(test_a_missing_library_or_program_is_told_once)
{
    struct watcher watcher = {.problems_wanted = 2, .after_problem_ms = 300};

    watch(&watcher, "", CARMA_MONITOR, "/nonexistent/libnvidia-ml.so.1", 2000);
    assert_int_equal(watcher.readings, 0);
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "status 1"));
    assert_non_null(strstr(watcher.last_problem, "/nonexistent/libnvidia-ml.so.1"));
    watcher = (struct watcher){.problems_wanted = 2, .after_problem_ms = 100};
    watch(&watcher, "", "/nonexistent/carma-monitor", NULL, 2000);
    assert_int_equal(watcher.problems, 1);
    assert_non_null(strstr(watcher.last_problem, "/nonexistent/carma-monitor"));
}

/* Programs that are not carma-monitor at all. */
TEST(test_impostors)
{
    static const struct {
        const char *script;
        int64_t silence_ms;
        const char *why;
    } impostors[] = {
        {"#!/bin/sh\necho this is not a frame at all\nexec sleep 30\n", 2000, "not a GPU frame"},
        {"#!/bin/sh\nexec >&-\nexec sleep 30\n", 50, "silent"},
        {"#!/bin/sh\nexit 0\n", 2000, "status 0"},
        {"#!/bin/sh\nprintf 'one\\ntwo\\nth\\tree' >&2\nexit 3\n", 2000, "status 3: th?ree;"},
        /* its pipes stay open in a process that it leaves behind */
        {"#!/bin/sh\nsleep 1 &\nexit 4\n", 50, "silent"},
    };
    char dir[] = "/tmp/carma-test-XXXXXX";

    assert_non_null(mkdtemp(dir));
    CLEANUP(free_ptr) char *program = xasprintf("%s/impostor", dir);
    for (size_t i = 0; i < array_size(impostors); i++) {
        struct watcher watcher = {.problems_wanted = 1};
        assert_int_equal(file_write_atomic(program, impostors[i].script, strlen(impostors[i].script), 0755, &trouble),
                         0);
        watch(&watcher, "", program, NULL, impostors[i].silence_ms);
        assert_has(watcher.last_problem, impostors[i].why);
    }
    unlink(program);
    rmdir(dir);
}

/* After every test: hanging ones end with it. */
AROUND(end_stuck)
{
    get_loose();
    while (waitpid(-1, NULL, 0) > 0)
        ;
    unsetenv("STUCK_WHILE");
}

TEST_BETWEEN(test_a_child_that_cannot_be_killed_is_replaced, NULL, end_stuck)
{
    struct watcher watcher = {.readings_wanted = 1, .problems_wanted = 2};

    get_stuck("2");
    watch(&watcher, "", STUCK_MONITOR, FAKE_NEW, 120);
    assert_int_equal(watcher.readings, 1);
    assert_int_equal(watcher.problems, 2); /* that it fell silent and that it was left behind: once for two children */
    assert_non_null(strstr(watcher.last_problem, "does not end though it was killed"));
    assert_true(get_loose() >= 3);
}

/* A few at most are left behind; the daemon goes on without readings, and can be ended and started again. */
TEST_BETWEEN(test_no_more_than_a_few_are_left_behind, NULL, end_stuck)
{
    struct watcher watcher = {.problems_wanted = 3, .readings_wanted = 1}, next = {.readings_wanted = 1};

    get_stuck("9");
    watcher.after_problem_ms = 1200; /* the last problem comes after the third, and no fourth is started after it */
    watch(&watcher, "", STUCK_MONITOR, FAKE_NEW, 40);
    assert_int_equal(watcher.readings, 0);
    assert_int_equal(watcher.problems, 3);
    assert_non_null(strstr(watcher.last_problem, "3 of them hang"));
    setenv("STUCK_TIMES", "0", 1);
    watch(&next, "", STUCK_MONITOR, FAKE_NEW, 2000); /* a daemon that was restarted */
    assert_int_equal(next.problems, 0);
    assert_int_equal(get_loose(), 4);
}

/* Once the driver lets go of them, it goes on by itself. */
TEST_BETWEEN(test_the_end_of_one_left_behind_lets_it_go_on, NULL, end_stuck)
{
    struct watcher watcher = {.readings_wanted = 1, .started_before_loose = 3};

    get_stuck("9");
    watch(&watcher, "", STUCK_MONITOR, FAKE_NEW, 120);
    assert_int_equal(watcher.readings, 1);
}

int main(void)
{
    unsetenv("CARMA_TIME_SCALE");
    return unit_tests_run("tests", NULL, NULL);
}
