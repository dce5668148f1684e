/* carma-monitor as the program that it is. */
#include "unit.h"

#include <sys/prctl.h>

#include "gpu/frame.h"
#include "gpu/nvml/nvml.h"

struct run {
    pid_t pid;
    int out, errors;
    struct gpu_frame_decoder decoder; /* of its frames */
};

#define ARGS(...)                                                                                                      \
    (const char *[])                                                                                                   \
    {                                                                                                                  \
        "carma-monitor", __VA_ARGS__, NULL                                                                             \
    }

static struct gpu_node_reading reading;

static struct run start(const char *words, const char *const args[])
{
    int out[2], errors[2];
    struct run run = {0};

    assert_int_equal(pipe2(out, O_CLOEXEC) | pipe2(errors, O_CLOEXEC), 0);
    run.pid = fork();
    assert_true(run.pid >= 0);
    if (run.pid == 0) {
        setenv("FAKE_NVML", words, 1);
        dup2(out[1], STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        execv(CARMA_MONITOR, (char *const *)args);
        _exit(99);
    }
    close(out[1]);
    close(errors[1]);
    run.out = out[0];
    run.errors = errors[0];
    return run;
}

/* A busy machine and sanitizers slow it down, a bug must not hang the test. */
#define PATIENCE_MS 30000

/* Whether it exits by itself; its status. */
static int finish(struct run *run)
{
    int status;

    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        if (waitpid(run->pid, &status, WNOHANG) == run->pid) {
            close_fd(&run->out);
            close_fd(&run->errors);
            gpu_frame_decoder_release(&run->decoder);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        }
        usleep(10000);
    }
    kill(run->pid, SIGKILL);
    waitpid(run->pid, &status, 0);
    fail_msg("carma-monitor did not end");
    return -1;
}

/* It ends once nobody reads any more. */
static void leave(struct run *run)
{
    close_fd(&run->out);
    assert_int_equal(finish(run), 0);
}

static size_t read_text(int fd, char *text, size_t room)
{
    size_t used = 0;
    ssize_t count;

    while (used + 1 < room && (count = read(fd, text + used, room - 1 - used)) > 0)
        used += (size_t)count;
    text[used] = '\0';
    return used;
}

/* Reads the next frame, with patience; false at the end of the stream. */
static bool next_frame(struct run *run)
{
    for (;;) {
        char byte; /* one by one, so that nothing of the next frame is taken */
        const void *from = &byte;
        size_t left = 1;
        struct pollfd poll_fd = {.fd = run->out, .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        if (read(run->out, &byte, 1) != 1)
            return false;
        int rc = gpu_frame_decode(&run->decoder, &from, &left, &reading, &trouble);
        fail_if(rc < 0, trouble);
        if (rc == 1)
            return true;
    }
}

/* Reads until SM activity of this GPU has the source: a metric needs two looks, which a busy machine delays. */
static void await_source(struct run *run, uint32_t gpu, uint32_t source)
{
    for (int i = 0; i < 200; i++) {
        assert_true(next_frame(run));
        if (reading.gpus[gpu].metrics[GPU_SM_ACTIVITY].source == source)
            return;
    }
    fail_msg("the source of SM activity is %u, not %u", reading.gpus[gpu].metrics[GPU_SM_ACTIVITY].source, source);
}

TEST(test_frames_decode_and_the_end_of_the_reader_ends_it)
{
    /* a driver's prints must not get between the frames */
    CLEANUP(leave) struct run run = start("noisy", ARGS("--library", FAKE_NEW, "--period-ms", "20"));
    int64_t first_ns = 0, last_ns = 0;
    bool activity = false;

    for (int i = 0; i < 10; i++) {
        assert_true(next_frame(&run));
        assert_int_equal(reading.count, 2);
        assert_int_equal(reading.gpus[0].used_bytes, 1024 * MIB);
        assert_true(reading.at_ns > last_ns);
        activity |= reading.gpus[0].metrics[GPU_SM_ACTIVITY].source != 0;
        last_ns = reading.at_ns;
        first_ns = first_ns ? first_ns : last_ns;
    }
    assert_true(activity);
    assert_true(last_ns - first_ns > 120 * NS_PER_MS); /* 180, had the first not been late */
}

/* Without a next frame to write it still sees that nobody reads. */
TEST(test_the_end_of_the_reader_wakes_it)
{
    CLEANUP(leave) struct run run = start("", ARGS("--library", FAKE_NEW, "--period-ms", "3600000"));

    assert_true(next_frame(&run));
}

TEST(test_the_end_of_the_parent_ends_it)
{
    const char *args[] = {"carma-monitor", "--library", FAKE_NEW, "--period-ms", "20", NULL};
    int out[2], status;
    pid_t child = 0;
    char bytes[4096];

    assert_int_equal(pipe2(out, 0), 0);
    pid_t parent = fork();
    if (parent == 0) {
        pid_t monitor;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        monitor = fork();
        if (monitor == 0) {
            setenv("FAKE_NVML", "hang=2", 1); /* a driver that hangs: only the signal can end it */
            dup2(out[1], STDOUT_FILENO);
            execv(CARMA_MONITOR, (char *const *)args);
            _exit(99);
        }
        if (write(out[1], &monitor, sizeof monitor) != sizeof monitor)
            _exit(98);
        pause();
    }
    close(out[1]);
    assert_int_equal(read(out[0], &child, sizeof child), sizeof child);
    struct pollfd poll_fd = (struct pollfd){.fd = out[0], .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1); /* its first frame: it has set itself up */
    kill(parent, SIGKILL);
    waitpid(parent, &status, 0);
    for (int i = 0; i < 500; i++) { /* all holders of the pipe's other end are gone */
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        if (read(out[0], bytes, sizeof bytes) == 0) {
            close(out[0]);
            return;
        }
    }
    kill(child, SIGKILL);
    fail_msg("carma-monitor outlived its parent");
}

/* One source alone may be asked: after a few looks SM activity has `source`, and none that is better. */
static void expect_source(const char *only, const char *words, uint32_t source)
{
    struct run run =
        start(words, ARGS("--library", FAKE_NEW, "--period-ms", "120", "--dcgm", FAKE_DCGM, "--only", only));

    await_source(&run, 0, source);
    for (int i = 0; i < 3; i++) {
        assert_true(next_frame(&run));
        uint32_t now = reading.gpus[0].metrics[GPU_SM_ACTIVITY].source;
        /* the substitute when a look is late */
        if (now != source && now != GPU_SOURCE_NONE && now != GPU_SOURCE_UTILIZATION)
            fail_msg("with %s only, SM activity has source %u", only, now);
    }
    leave(&run);
}

TEST(test_one_source_alone)
{
    expect_source("gpm", "busy=80", GPU_SOURCE_GPM);
    expect_source("gpm", "busy=80,no-gpm", GPU_SOURCE_UTILIZATION);
    expect_source("dcgm", "busy=80", GPU_SOURCE_DCGM);
    expect_source("utilization", "busy=80", GPU_SOURCE_UTILIZATION);
}

/* Nothing is sent of a node with a missing driver; the supervisor starts the program anew. */
TEST(test_a_driver_that_is_gone_ends_it)
{
    struct run run = start("gone-later=18", ARGS("--library", FAKE_NEW, "--period-ms", "20"));
    char text[2000];

    assert_true(next_frame(&run));
    assert_false(next_frame(&run));
    read_text(run.errors, text, sizeof text);
    assert_int_equal(finish(&run), 1);
    assert_non_null(strstr(text, "lost its driver: Some Error (18)"));
}

static void complains(const char *const args[], int status, const char *why)
{
    struct run run = start("", args);
    char text[2000];
    size_t length = read_text(run.errors, text, sizeof text);

    if (finish(&run) != status || !strstr(text, why))
        fail_msg("'%s' is not about '%s'", text, why);
    assert_true(length > 0 && strchr(text, '\n') == text + length - 1); /* one line */
}

TEST(test_complaints)
{
    complains(ARGS("--library", "/nonexistent/nvml.so"), 1, "/nonexistent/nvml.so");
    complains(ARGS("--library", FAKE_EMPTY), 1, "lacks NVML's basic functions");
    complains(ARGS("--period-ms", "0"), 2, "--period-ms");
    complains(ARGS("--only", "nvml"), 2, "'nvml' is not utilization, gpm or dcgm");
    complains(ARGS("extra"), 2, "extra");
    setenv("CARMA_TIME_SCALE", "fast", 1);
    complains(ARGS("--library", FAKE_NEW), 1, "CARMA_TIME_SCALE");
    unsetenv("CARMA_TIME_SCALE");
}

/* The period is node time: ten seconds of it take far less on the wall, and no period is cut short. */
TEST(test_the_period_is_node_time)
{
    CLEANUP(leave) struct run run;

    setenv("CARMA_TIME_SCALE", "50", 1);
    run = start("no-gpm", ARGS("--library", FAKE_NEW, "--period-ms", "1000"));
    unsetenv("CARMA_TIME_SCALE");
    assert_true(next_frame(&run));
    int64_t began_ns = nodetime_monotonic_wall_ns();
    int64_t first_ns = reading.at_ns;
    for (int i = 0; i < 10; i++)
        assert_true(next_frame(&run));
    assert_true(nodetime_monotonic_wall_ns() - began_ns < 5 * NS_PER_SEC); /* 0.2 s, if the machine is idle */
    assert_true(reading.at_ns - first_ns > 9 * NS_PER_SEC - NS_PER_SEC / 2);
}

int main(void)
{
    unsetenv("CARMA_TIME_SCALE");
    unsetenv(GPU_NVML_LIBRARY_ENV);
    return unit_tests_run("tests", NULL, NULL);
}
