/* The status file: its format (tests/golden/launch-status.txt), files that are not one, and the right to create it. */
#include "unit.h"

#include "launch/status.h"

static const struct launch_status sample = {
    .phase = LAUNCH_ENDED,
    .job = 12,
    .launch = 2,
    .boot = "0e5ac8fd-5bb3-4f6e-a8a3-2b0a5f0c1d77",
    .shepherd = 4242,
    .shepherd_start_ticks = 991234,
    .process = 4243,
    .process_start_ticks = 991235,
    .started_ns = INT64_C(1700000000000000001),
    .ended_ns = INT64_C(1700000060000000002),
    .exit_status = 1,
    .cause = EXIT_GPU_OOM,
    .output = OUTPUT_GPU_OOM,
    .requested_bytes = INT64_C(2147483648),
    .free_bytes = 1105199104,
    .tenant_count = 2,
    .tenants = {{4711, 1073741824}, {4712, INT64_C(5368709120)}},
    .cgroup = "/carma.slice/job-12",
    .left_count = 3,
    .left = "sleep, yes",
    .progress = {.step = 370, .total = 1000, .done = 3370, .at_ns = INT64_C(1700000050000000000)},
    .message = "CUDA out of memory. Tried to allocate 2.00 GiB.",
};

static void assert_same(const struct launch_status *a, const struct launch_status *b)
{
    assert_int_equal(a->phase, b->phase);
    assert_true(a->job == b->job && a->launch == b->launch);
    assert_true(a->shepherd == b->shepherd && a->shepherd_start_ticks == b->shepherd_start_ticks);
    assert_true(a->process == b->process && a->process_start_ticks == b->process_start_ticks);
    assert_true(a->started_ns == b->started_ns && a->ended_ns == b->ended_ns);
    assert_true(a->exit_status == b->exit_status && a->signal == b->signal && a->cause == b->cause);
    assert_true(a->requested_bytes == b->requested_bytes && a->free_bytes == b->free_bytes);
    assert_true(a->progress.step == b->progress.step && a->progress.total == b->progress.total &&
                a->progress.done == b->progress.done && a->progress.at_ns == b->progress.at_ns);
    assert_int_equal(a->stopped, b->stopped);
    assert_int_equal(a->timed_out, b->timed_out);
    assert_int_equal(a->idle, b->idle);
    assert_int_equal(a->host_oom_kill, b->host_oom_kill);
    assert_int_equal(a->host_oom_own, b->host_oom_own);
    assert_int_equal(a->warned, b->warned);
    assert_int_equal(a->output, b->output);
    assert_int_equal(a->tenant_count, b->tenant_count);
    for (uint32_t i = 0; i < a->tenant_count; i++) /* one by one: between the members there is padding */
        assert_true(a->tenants[i].pid == b->tenants[i].pid && a->tenants[i].used_bytes == b->tenants[i].used_bytes);
    assert_string_equal(a->boot, b->boot);
    assert_string_equal(a->cgroup, b->cgroup);
    assert_string_equal(a->message, b->message);
}

static int make_directory(void **state)
{
    char *directory = xstrdup("/tmp/carma-status-XXXXXX");

    *state = directory;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    CLEANUP(free_ptr) char *directory = *state;
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", directory);

    unlink(path);
    return rmdir(directory); /* fails where a temporary file was left behind */
}

TEST_BETWEEN(test_golden, make_directory, remove_directory)
{
    const char *directory = *state;
    CLEANUP(free_ptr) char *path = xasprintf("%s/status", directory);
    struct launch_status status;

    assert_int_equal(status_write(directory, &sample, STATUS_LAST, &trouble), 0);
    CLEANUP(free_ptr) char *text = file_text(path);
    expect_file(CARMA_GOLDEN "/launch-status.txt", text);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_same(&status, &sample);
}

TEST_BETWEEN(test_first_is_exclusive, make_directory, remove_directory)
{
    const char *directory = *state;
    struct launch_status first, status;

    status_init(&first);
    first.job = 7;
    first.warned = first.stopped = first.timed_out = first.idle = first.host_oom_kill = first.host_oom_own = true;
    assert_int_equal(launch_read_status(directory, &status, &trouble), -ENOENT);
    assert_int_equal(status_write(directory, &first, STATUS_EXCLUSIVE, &trouble), 0);
    assert_int_equal(status_write(directory, &sample, STATUS_EXCLUSIVE, &trouble), -EEXIST);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_same(&status, &first);
    assert_int_equal(status_write(directory, &sample, STATUS_REPLACE, &trouble), 0);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_same(&status, &sample);
}

TEST(test_parse)
{
    static const char later[] = "carma-launch 1\nphase running\nfuture 1 2 3\nmessage \nend\n";
    static const char *const bad[] = {
        "",
        "\n",
        "carma-launch 1\n",
        "carma-launch 1\nend",
        "carma-launch 2\nphase running\nend\n",
        "carma-launch 1\nphase flying\nend\n",
        "carma-launch 1\nphase running\njob x\nend\n",
        "carma-launch 1\nshepherd 5\nend\n",
        "carma-launch 1\nphase\nend\n",
        "carma-launch 1\ncause bad luck\nend\n",
        "carma-launch 1\nphase ended\nstopped",
        "end\n",
        "\nend\n",
    };
    struct launch_status status;

    assert_int_equal(status_parse("x", later, sizeof later - 1, &status, &trouble), 0);
    assert_int_equal(status.phase, LAUNCH_RUNNING);
    assert_true(status.requested_bytes == -1 && status.exit_status == -1);
    for (size_t i = 0; i < array_size(bad); i++) {
        if (status_parse("the/file", bad[i], strlen(bad[i]), &status, &trouble) != -EINVAL)
            fail_msg("taken for a status: %s", bad[i]);
        assert_non_null(strstr(trouble.text, "the/file"));
    }
    assert_int_equal(status_parse("x", "carma-launch 1\nphase running\0\nend\n", 34, &status, &trouble), -EINVAL);
}

/* The same pid and start time are another process's after a reboot. How a launch ended stays known. */
TEST(test_other_boot)
{
    static const char now[] = "7d8fdc1a-92a0-4c87-8a2d-1d3a1f6f2f10";
    struct launch_status status = sample;

    status_forget_other_boot(&status, now);
    assert_same(&status, &sample);
    assert_false(status.rebooted);
    for (int phase = LAUNCH_STARTING; phase <= LAUNCH_RUNNING; phase++) {
        status = sample;
        status.phase = (enum launch_phase)phase;
        status_forget_other_boot(&status, now);
        assert_true(status.rebooted);
        assert_true(status.shepherd == 0 && status.shepherd_start_ticks == 0);
        assert_true(status.process == 0 && status.process_start_ticks == 0);
        assert_string_equal(status.cgroup, "");
        assert_false(launch_alive(status.shepherd, status.shepherd_start_ticks));
        assert_int_equal(launch_sweep(&status, geteuid(), SIGKILL), 0);
    }
    assert_int_equal(strlen(proc_boot()), strlen(now));
}

/* A status as another boot of this machine left it, read from its file. */
TEST_BETWEEN(test_file_of_other_boot, make_directory, remove_directory)
{
    const char *directory = *state;
    struct launch_status status = sample;

    status.phase = LAUNCH_RUNNING;
    assert_int_equal(status_write(directory, &status, STATUS_EXCLUSIVE, &trouble), 0);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_true(status.rebooted && status.shepherd == 0);
    status = sample;
    status.phase = LAUNCH_RUNNING;
    snprintf(status.boot, sizeof status.boot, "%s", proc_boot());
    assert_int_equal(status_write(directory, &status, STATUS_REPLACE, &trouble), 0);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_true(!status.rebooted && status.shepherd == 4242);
}

TEST(test_message)
{
    struct launch_status status;
    char text[1000];

    status_set_message(&status, "one\x1b[31m\ttwo\nthree", 19);
    assert_string_equal(status.message, "one?[31m?two");
    status_set_message(&status, "cut here", 3);
    assert_string_equal(status.message, "cut");
    status_set_message(&status, "d\xc3\xa9j\xc3\xa0", 6);
    assert_string_equal(status.message, "d\xc3\xa9j\xc3\xa0");
    for (size_t i = 0; i < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    status_set_message(&status, text, sizeof text); /* whole characters only: 127 of them fit into 255 bytes */
    assert_int_equal(strlen(status.message), 254);
}

TEST(test_output_path)
{
    static const char *const cases[][3] = {
        {"/a/b", "/a/b", "/a/b"},      {"%j", "12", "12"},          {"/x-%j/%j.log", "/x-12/12.log", "/x-12/12.log"},
        {"/%A_%a", "/12_%a", "/10_4"}, {"/100%", "/100%", "/100%"}, {"/%%j", "/%12", "/%12"},
        {"/%J", "/%J", "/%J"}};

    for (size_t i = 0; i < array_size(cases); i++) {
        CLEANUP(free_ptr) char *path = launch_output_path(cases[i][0], 12, &(struct launch_array){0});
        CLEANUP(free_ptr)
        char *of_array = launch_output_path(cases[i][0], 12, &(struct launch_array){.id = 10, .index = 4});
        assert_string_equal(path, cases[i][1]);
        assert_string_equal(of_array, cases[i][2]);
    }
}
