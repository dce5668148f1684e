/* How a job's whole tree comes to its end: by itself, when stopped, when its shepherd or daemon dies. */
#include "launch_fixture.h"

#include <pthread.h>

LAUNCH_TEST(test_double_fork)
{
    f->request.grace_ns = 60 * NS_PER_SEC; /* it heeds SIGTERM, so this is not waited for */
    /* its parent is gone (setsid forks in a group's leader), it names no job, and leaves its control group if it may */
    assert_exits(
        f,
        "(setsid env -i sh -c 'while read _ at type _; do [ $type != cgroup2 ] || echo 0 >$at/cgroup.procs; done"
        " </proc/mounts; echo $$ >orphan; exec sleep 100' &); while [ ! -s orphan ]; do sleep 0.01; done; exit 5",
        5);
    assert_true(gone(pid_of(f, "orphan")));
}

LAUNCH_TEST(test_descendant_ignores_sigterm)
{
    run(f, "(trap '' TERM; sh -c 'echo $$ >orphan; exec sleep 100' &) ; while [ ! -s orphan ]; do sleep 0.01; done",
        LAUNCH_ENDED);
    assert_true(gone(pid_of(f, "orphan")));
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
}

LAUNCH_TEST(test_fork_chain)
{
    /* every process forks the next and ends: none lives long, and none hears SIGTERM */
    f->request.grace_ns = 50 * NS_PER_MS;
    assert_ends(f, "echo 'trap \"\" TERM; sh hop & exit' >hop; for i in 1 2 3 4 5; do sh hop; done; exit 0",
                EXIT_COMPLETED);
}

/* Many of them, where no control group ends them all at once. */
LAUNCH_TEST(test_runaway_forks)
{
    f->request.grace_ns = 50 * NS_PER_MS;
    setenv("CARMA_CGROUP_ROOT", "/nonexistent", 1);
    start_and_await_line(f, "echo 'trap \"\" TERM; sh hop & exit' >hop; i=0;"
                            "while [ $i -lt 20 ]; do sh hop; i=$((i + 1)); done; echo ready; sleep 100");
    unsetenv("CARMA_CGROUP_ROOT");
    await_phase(f, LAUNCH_RUNNING);
    assert_string_equal(f->status.cgroup, "");
    stop(f, LAUNCH_ENDED);
}

LAUNCH_TEST(test_stop)
{
    f->request.grace_ns = 60 * NS_PER_SEC; /* all of the tree hears SIGTERM, so this is not waited for */
    start_and_await_line(f, "sleep 100 & echo ready; wait; echo unreachable");
    await_phase(f, LAUNCH_RUNNING);
    assert_true(f->status.process > 0);
    assert_int_equal(launch_stop(f->shepherd, f->ticks + 1, &trouble), -ESRCH); /* another process with this pid */
    assert_true(launch_alive(f->shepherd, f->ticks));
    stop(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.signal, SIGTERM);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_string_equal(contents(f->output), "ready\n");
    assert_int_equal(launch_stop(f->shepherd, f->ticks, &trouble), -ESRCH);
}

LAUNCH_TEST(test_who_hears_it_and_who_does_not)
{
    f->request.grace_ns = 60 * NS_PER_SEC;
    start_and_await_line(f, "trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done");
    stop(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
    assert_string_equal(contents(f->output), "ready\nsaved\n");
    f->request.grace_ns = 300 * NS_PER_MS;
    unlink(f->output); /* relaunches append */
    start_and_await_line(f, "trap '' TERM; echo ready; while :; do sleep 0.02; done");
    stop(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.signal, SIGKILL);
}

LAUNCH_TEST(test_stop_the_stopped)
{
    struct proc_stat stat = {0};

    f->request.grace_ns = 60 * NS_PER_SEC;
    start_and_run(f, "trap 'exit 7' TERM; kill -STOP $$");
    for (int i = 0; i < 1000 && stat.state != 'T'; i++) {
        assert_int_equal(proc_read_stat(f->status.process, &stat), 0);
        pause_ms(2);
    }
    assert_int_equal(stat.state, 'T');
    stop(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 7);
}

LAUNCH_TEST(test_stop_at_once)
{
    for (int i = 0; i < 5; i++) {
        command(f, "sleep 100");
        start(f);
        assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0); /* it may not even run its main() yet */
        for (int j = 0; j < PATIENCE_MS / 5 && launch_alive(f->shepherd, f->ticks); j++)
            pause_ms(5);
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
        assert_true(f->status.stopped);
        assert_true(f->status.phase == LAUNCH_ENDED || f->status.phase == LAUNCH_FAILED);
    }
}

/* The launch can be stopped in every step before the command is run. */
LAUNCH_TEST(test_stop_before_the_command)
{
    slow_profile(f, "exec sleep 100");
    command(f, "echo unreachable");
    start(f);
    await_phase(f, LAUNCH_STARTING);
    pause_ms(50);
    assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    assert_int_equal(f->status.phase, LAUNCH_STARTING);
    stop(f, LAUNCH_FAILED);
    assert_true(f->status.stopped);
    assert_string_equal(f->status.message, "stopped before the command was run");
}

/* A failure of the disk delays the last status, but does not lose it. */
LAUNCH_TEST(test_last_status_is_retried)
{
    char path[200];

    start_and_run(f, "while [ ! -e go ]; do sleep 0.01; done; exit 6");
    snprintf(path, sizeof path, "%s/status", f->run);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* which no file can replace */
    snprintf(path, sizeof path, "%s/go", f->work);
    fclose(fopen(path, "w"));
    pause_ms(200);
    assert_true(launch_alive(f->shepherd, f->ticks));
    snprintf(path, sizeof path, "%s/status", f->run);
    assert_int_equal(rmdir(path), 0);
    await_phase(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 6);
    while (launch_alive(f->shepherd, f->ticks))
        pause_ms(5);
    snprintf(path, sizeof path, "%s/shepherd.log", f->run);
    assert_has(contents(path), "carma-shepherd: cannot write '");
}

LAUNCH_TEST(test_daemon_dies)
{
    command(f, "sleep 0.1; echo survived; exit 9");
    pid_t daemon = fork();
    if (daemon == 0) {
        start(f);
        kill(0 - getpid(), SIGHUP); /* nothing: it leads no group */
        kill(getpid(), SIGKILL);
    }
    f->launches = 1;
    snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);
    await_phase(f, LAUNCH_RUNNING);
    f->shepherd = f->status.shepherd;
    f->ticks = f->status.shepherd_start_ticks;
    assert_true(launch_alive(f->shepherd, f->ticks));
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 9);
    assert_string_equal(contents(f->output), "survived\n");
}

LAUNCH_TEST(test_settle)
{
    struct launch_status status;
    char directory[200];

    run(f, "true", LAUNCH_ENDED);
    assert_int_equal(launch_settle(f->run, &status, &trouble), 0);
    assert_int_equal(status.phase, LAUNCH_ENDED);
    snprintf(directory, sizeof directory, "%s/runs/43.1", f->root);
    assert_int_equal(launch_settle(directory, &status, &trouble), 0); /* never begun */
    assert_int_equal(status.phase, LAUNCH_FAILED);
    /* begun, but no status yet: from now on a shepherd cannot make one */
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(launch_settle(directory, &status, &trouble), 0);
    assert_int_equal(status.phase, LAUNCH_FAILED);
    assert_int_equal(launch_read_status(directory, &status, &trouble), 0);
    assert_has(status.message, "given up");
}

/* Many times a settling daemon against a beginning shepherd: either the job ran and is known, or it never runs. */
LAUNCH_TEST(test_settle_race)
{
    int ran = 0, given_up = 0;

    for (int i = 0; i < 20; i++) {
        command(f, "echo x >>count");
        start(f);
        if (i % 4)
            pause_ms(i % 4 - 1);
        assert_int_equal(launch_settle(f->run, &f->status, NULL), 0);
        given_up += f->status.phase == LAUNCH_FAILED;
        ran += f->status.phase != LAUNCH_FAILED;
        while (launch_alive(f->shepherd, f->ticks))
            pause_ms(2);
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
        assert_true(f->status.phase == LAUNCH_ENDED || f->status.phase == LAUNCH_FAILED);
    }
    assert_int_equal(ran + given_up, 20);
    {
        char path[200];
        snprintf(path, sizeof path, "%s/count", f->work);
        assert_int_equal(strlen(contents(path)), 2 * ran);
    }
}

LAUNCH_TEST(test_sweep)
{
    pid_t stray, bare;
    int left = 1;

    /* one that left the session, one that dropped the environment */
    start_and_run(f,
                  "(setsid sh -c 'echo $$ >stray; exec sleep 100' &); (env -i sh -c 'echo $$ >bare; exec sleep 100' &);"
                  "sleep 100");
    stray = pid_of(f, "stray");
    bare = pid_of(f, "bare");
    assert_int_equal(kill(f->shepherd, SIGKILL), 0);
    while (launch_alive(f->shepherd, f->ticks))
        pause_ms(2);
    assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    assert_int_equal(f->status.phase, LAUNCH_RUNNING);
    assert_false(gone(stray));
    for (int i = 0; i < 1000 && !gone(f->status.process); i++) /* goes with its shepherd by itself */
        pause_ms(5);
    assert_true(gone(f->status.process));
    for (int i = 0; i < 1000 && (left = sweep(f)) > 0; i++)
        pause_ms(5);
    assert_int_equal(left, 0);
    assert_true(gone(stray));
    assert_true(gone(bare));
}

static void *wait_for_ever(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

/* The number of an ended session may lead another by now. A process whose main thread has ended has not ended. */
LAUNCH_TEST(test_sweep_spares_others)
{
    struct proc_stat stat = {0};
    pid_t other = fork();

    if (other == 0) {
        pthread_t thread;
        setsid();
        pthread_create(&thread, NULL, wait_for_ever, NULL);
        pthread_exit(NULL);
    }
    while (stat.session != other || stat.state != 'Z')
        assert_int_equal(proc_read_stat(other, &stat), 0);
    f->status.process = other;
    f->status.process_start_ticks = stat.start_ticks - 1;
    assert_int_equal(launch_sweep(&f->status, geteuid(), SIGKILL), 0);
    f->status.process_start_ticks = stat.start_ticks;
    assert_int_equal(launch_sweep(&f->status, geteuid() + 1, SIGKILL), 0); /* another user's */
    assert_int_equal(launch_sweep(&f->status, geteuid(), SIGKILL), 1);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

RUN_LAUNCH_TESTS
