/* A job's inheritance, and its limits: its time, the signal before that is up, and nothing of the daemon's. */
#include "launch_fixture.h"

#include <grp.h>

#include "launch/orders.h"

LAUNCH_TEST(test_time_limit)
{
    f->request.time_limit_ns = 200 * NS_PER_MS;
    f->request.grace_ns = 60 * NS_PER_SEC;
    assert_ends(f, "sleep 100", EXIT_TIMEOUT);
    assert_true(f->status.stopped && f->status.timed_out);
    assert_true(f->status.ended_ns - f->status.started_ns >= f->request.time_limit_ns);
    assert_has(f->status.message, "time limit of 0:00 reached");
    assert_ends(f, "trap 'exit 0' TERM; while :; do sleep 0.02; done", EXIT_TIMEOUT);
    assert_int_equal(f->status.exit_status, 0);
    f->request.time_limit_ns = 60 * NS_PER_SEC;
    assert_ends(f, "exit 4", EXIT_FAILED);
    assert_false(f->status.stopped || f->status.timed_out);
}

/* The limit is of node time, as the job's other times are. */
LAUNCH_TEST(test_time_limit_is_node_time)
{
    f->request.time_limit_ns = 60 * NS_PER_SEC;
    setenv("CARMA_TIME_SCALE", "300", 1);
    run(f, "sleep 5", LAUNCH_ENDED);
    unsetenv("CARMA_TIME_SCALE");
    assert_int_equal(f->status.cause, EXIT_TIMEOUT);
    assert_true(f->status.ended_ns - f->status.started_ns >= f->request.time_limit_ns);
    assert_string_equal(f->status.message, "time limit of 1:00 reached");
}

/* The time for which it is suspended is not its own. */
LAUNCH_TEST(test_time_limit_of_one_that_stood_still)
{
    f->request.time_limit_ns = 3 * NS_PER_SEC;
    start_and_run(f, "exec sleep 100");
    assert_int_equal(orders_add(f->run, f->shepherd, f->ticks, "suspend", NULL), 0);
    pause_ms(1000);
    assert_int_equal(orders_add(f->run, f->shepherd, f->ticks, "resume", NULL), 0);
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_TIMEOUT);
    assert_true(f->status.ended_ns - f->status.started_ns >= f->request.time_limit_ns + 800 * NS_PER_MS);
}

/* While its time is running out the job is still there, and a reader of the status knows. */
LAUNCH_TEST(test_status_at_the_limit)
{
    f->request.time_limit_ns = 100 * NS_PER_MS;
    f->request.grace_ns = 60 * NS_PER_SEC;
    start_and_run(f, "trap 'while [ ! -e go ]; do sleep 0.01; done; exit 0' TERM; while :; do sleep 0.02; done");
    for (int i = 0; i < PATIENCE_MS / 5 && !f->status.timed_out; i++) {
        pause_ms(5);
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    }
    assert_true(f->status.timed_out && f->status.stopped);
    assert_int_equal(f->status.phase, LAUNCH_RUNNING);
    {
        CLEANUP(free_ptr) char *go = xasprintf("%s/go", f->work);
        fclose(fopen(go, "w"));
    }
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_TIMEOUT);
}

/* Runs a job that prints its reaction to SIGUSR2, which comes as many seconds after its begin as it needs to be
 * ready for it: a sooner one is lost, and how soon is the machine's affair. The script has the seconds in $patience. */
static void expect_of_signal(struct fixture *f, const char *script, const char *expected)
{
    static const int leads_s[] = {1, 5, 25};

    f->request.time_limit_ns = 600 * NS_PER_SEC;
    f->request.signal = SIGUSR2;
    for (size_t i = 0; i < sizeof leads_s / sizeof *leads_s; i++) {
        CLEANUP(free_ptr) char *patient = xasprintf("patience=%d; %s", leads_s[i] + 2, script);

        f->request.signal_before_ns = f->request.time_limit_ns - leads_s[i] * NS_PER_SEC;
        fclose(fopen(f->output, "w"));
        run(f, patient, LAUNCH_ENDED);
        if (strcmp(contents(f->output), expected) == 0)
            break;
    }
    assert_string_equal(contents(f->output), expected);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
}

/* The sleeper does not catch it, and is there after it. */
LAUNCH_TEST(test_signal_before)
{
    expect_of_signal(f,
                     "sleep 100 & child=$!; trap 'kill $child && echo saved; exit 0' USR2;"
                     "for i in $(seq ${patience}0); do sleep 0.1; done; exit 1",
                     "saved\n");
    assert_string_equal(contents(f->error), "");
}

/* A grandchild in another session gets it, and who blocks it to ask or wait for it instead of catching it. */
LAUNCH_TEST(test_signal_reaches_all_who_heed)
{
    expect_of_signal(f,
                     "exec python3 -c 'import signal, sys\n"
                     "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
                     "got = signal.sigtimedwait([signal.SIGUSR2], int(sys.argv[1]))\n"
                     "print(signal.Signals(got.si_signo).name)' $patience",
                     "SIGUSR2\n");
    expect_of_signal(f,
                     "exec python3 -c 'import signal, sys, time\n"
                     "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n"
                     "for i in range(int(sys.argv[1]) * 100):\n"
                     "    time.sleep(0.01)\n"
                     "    if signal.sigpending(): break\n"
                     "print(signal.sigpending().pop().name)' $patience",
                     "SIGUSR2\n");
    expect_of_signal(f,
                     "setsid sh -c 'trap \"echo far; exit\" USR2; for i in $(seq '$patience'0); do sleep 0.1; done' & "
                     "for i in $(seq ${patience}0); do ! grep -q far out || exit 0; sleep 0.1; done; exit 1",
                     "far\n");
}

/* Nobody catches it: nobody is ended by it. */
LAUNCH_TEST(test_signal_that_nobody_heeds)
{
    f->request.time_limit_ns = 400 * NS_PER_MS;
    f->request.signal_before_ns = 300 * NS_PER_MS;
    f->request.signal = SIGUSR1;
    assert_ends(f, "exec sleep 100", EXIT_TIMEOUT);
    assert_int_equal(f->status.signal, SIGTERM);
}

/* Runs a job that leaves with this status once it is told of its time: as soon as it needs to be ready for that. */
static void leave_when_told(struct fixture *f, int exit_status)
{
    static const int leads_s[] = {1, 5, 15};

    f->request.time_limit_ns = 600 * NS_PER_SEC;
    f->request.signal = SIGUSR1;
    for (size_t i = 0; i < sizeof leads_s / sizeof *leads_s; i++) {
        CLEANUP(free_ptr)
        char *script = xasprintf("trap 'exit %d' USR1; for i in $(seq %d); do sleep 0.02; done; exit 4", exit_status,
                                 (leads_s[i] + 2) * 50);

        f->request.signal_before_ns = f->request.time_limit_ns - leads_s[i] * NS_PER_SEC;
        run(f, script, LAUNCH_ENDED);
        if (f->status.exit_status != 4)
            break;
    }
    assert_int_equal(f->status.exit_status, exit_status);
    assert_true(f->status.warned && !f->status.stopped);
}

/* A job that leaves then has not completed, where it asked to come back. */
LAUNCH_TEST(test_leaving_after_the_signal)
{
    f->request.requeue = true;
    leave_when_told(f, 3);
    assert_int_equal(f->status.cause, EXIT_TIMEOUT);
    assert_string_equal(f->status.message, "it ended after the signal before its time limit of 10:00");
    leave_when_told(f, 0);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
    f->request.requeue = false;
    leave_when_told(f, 3);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    f->request.requeue = true; /* a signal that nobody heeds has told nobody */
    f->request.signal_before_ns = 599 * NS_PER_SEC + 900 * NS_PER_MS;
    assert_ends(f, "sleep 1; exit 3", EXIT_FAILED);
    assert_false(f->status.warned);
}

/* The signals that it waits for lie in a file of a file system of its own (FUSE), which never answers readers. */
LAUNCH_TEST(test_memory_that_hangs)
{
    f->request.time_limit_ns = 6 * NS_PER_SEC;
    f->request.signal_before_ns = 3 * NS_PER_SEC;
    f->request.signal = SIGUSR2;
    run(f,
        "exec python3 -c 'import ctypes, mmap, os, platform, signal, struct, sys, threading, time\n"
        "libc, page, void = ctypes.CDLL(None), mmap.PAGESIZE, ctypes.c_void_p\n"
        "def serve(fuse):\n"
        "    times = struct.pack(\"=QIIQQQ24x12x\", 9, 0, 0, 1, page, 8)\n"
        "    answers = {26: struct.pack(\"=IIIIHHIIHHI28x\", 7, 31, page, 0, 1, 1, page, 1, 1, 0, 0), 14: bytes(16),\n"
        "        3: times + struct.pack(\"=IIIIIII\", 0o100644, 1, 0, 0, 0, page, 0)}\n"
        "    while True:\n"
        "        asked = os.read(fuse, 1 << 18)\n"
        "        opcode, unique = struct.unpack_from(\"=IQ\", asked, 4)\n"
        "        answer = answers.get(opcode, b\"\")\n"
        "        if opcode != 15:\n"
        "            os.write(fuse, struct.pack(\"=IiQ\", 16 + len(answer), 0 if answer else -38, unique) + answer)\n"
        "try: fuse = os.open(\"/dev/fuse\", os.O_RDWR)\n"
        "except OSError: sys.exit(print(\"none\"))\n"
        "open(\"hangs\", \"w\").close()\n"
        "if libc.unshare(0x20000) or libc.mount(None, b\"/\", None, 0x44000, None): sys.exit(print(\"none\"))\n"
        "if libc.mount(b\"fuse\", b\"hangs\", b\"fuse\", 0, b\"fd=%d,rootmode=100000,user_id=0,group_id=0\" % fuse):\n"
        "    sys.exit(print(\"none\"))\n"
        "served = os.fork()\n"
        "signal.alarm(40)\n"
        "if not served: serve(fuse)\n"
        "os.close(fuse)\n"
        "file = os.open(\"hangs\", os.O_RDONLY)\n"
        "os.fstat(file)\n"
        "libc.mmap.restype = void\n"
        "start = libc.mmap(None, page, 3, 0x22, -1, 0)\n"
        "ctypes.memmove(start, struct.pack(\"=Q\", 1 << signal.SIGUSR1 - 1), 8)\n"
        "def lose():\n"
        "    time.sleep(0.2)\n"
        "    libc.mmap(void(start), page, 1, 0x12, file, 0)\n"
        "threading.Thread(target=lose).start()\n"
        "libc.syscall({\"x86_64\": 128, \"aarch64\": 137}[platform.machine()], void(start), None, None, "
        "ctypes.c_size_t(8))'",
        LAUNCH_ENDED);
    if (strcmp(contents(f->output), "none\n") == 0)
        skip(); /* this user, or this machine, cannot mount one */
    assert_string_equal(contents(f->error), "");
    assert_int_equal(f->status.cause, EXIT_TIMEOUT);
    assert_int_equal(f->status.signal, SIGTERM);
}

/* A job's saved files are there for its next launch, and after it; a directory in which it saved nothing is not. */
LAUNCH_TEST(test_carried_over)
{
    CLEANUP(free_ptr) char *checkpoint = xasprintf("%s/carma-42.ckpt", f->work);
    char expected[300];

    f->env[1] = mutable("CARMA_CHECKPOINT_DIR=/of/the/job/that/submitted/this");
    f->request.environment_count = 2;
    f->launches = 1;
    run(f,
        "echo $CARMA_RESTART_COUNT $CARMA_CHECKPOINT_DIR; ls $CARMA_CHECKPOINT_DIR; echo 7 >$CARMA_CHECKPOINT_DIR/step",
        LAUNCH_ENDED);
    run(f, "echo $CARMA_RESTART_COUNT $CARMA_CHECKPOINT_DIR; cat $CARMA_CHECKPOINT_DIR/step", LAUNCH_ENDED);
    snprintf(expected, sizeof expected, "1 %s\n2 %s\n7\n", checkpoint, checkpoint);
    assert_string_equal(contents(f->output), expected);
    assert_string_equal(contents(f->error), "");
    assert_int_equal(access(checkpoint, F_OK), 0);
    assert_exits(f, "rm $CARMA_CHECKPOINT_DIR/step", 0);
    assert_int_equal(access(checkpoint, F_OK), -1);
}

/* Without a place for its saved files, a job that wants to come back is not begun, and other jobs are told of none. */
LAUNCH_TEST(test_no_checkpoint_directory)
{
    CLEANUP(free_ptr) char *checkpoint = xasprintf("%s/carma-42.ckpt", f->work);

    f->env[1] = mutable("CARMA_CHECKPOINT_DIR=/of/the/job/that/submitted/this");
    f->env[2] = mutable("HOME=/nonexistent/home"); /* a user without a home is one as well */
    f->request.environment_count = 3;
    fclose(fopen(checkpoint, "w"));
    run(f, "echo ${CARMA_CHECKPOINT_DIR-none} $HOME", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "none /nonexistent/home\n");
    f->request.requeue = true;
    assert_fails(f, "cannot make the checkpoint directory '");
    assert_has(f->status.message, "a file of that name is there");
    assert_int_equal(access(checkpoint, F_OK), 0);
}

/* ---- Nothing of the daemon's ---- */

LAUNCH_TEST(test_only_three_descriptors)
{
    int leaked = open("/dev/zero", O_RDONLY), high = fcntl(leaked, F_DUPFD, 200);

    run(f,
        "exec python3 -c 'import os\n"
        "for fd in range(3, 4096):\n"
        "    try: print(fd, os.fstat(fd))\n"
        "    except OSError: pass\n"
        "os.fstat(0), os.fstat(1), os.fstat(2)'",
        LAUNCH_ENDED);
    close(leaked);
    close(high);
    assert_string_equal(contents(f->output), "");
    assert_int_equal(f->status.exit_status, 0);
}

static int own_oom_score(void)
{
    return atoi(contents("/proc/self/oom_score_adj"));
}

LAUNCH_TEST(test_victim_before_the_daemon)
{
    int own = own_oom_score();
    char expected[32];

    run(f, "cat /proc/self/oom_score_adj", LAUNCH_ENDED);
    snprintf(expected, sizeof expected, "%d\n", (own > 0 ? own : 0) + 200 < 1000 ? (own > 0 ? own : 0) + 200 : 1000);
    assert_string_equal(contents(f->output), expected);
    assert_int_equal(own_oom_score(), own);
}

/* Limits that somebody gave a root daemon, for its own sake. */
LAUNCH_TEST(test_daemon_limits)
{
    static const char ask[] = "ulimit -S -n; ulimit -S -c; umask; nice";
    struct rlimit old_files, old_cores;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_files), 0);
    assert_int_equal(getrlimit(RLIMIT_CORE, &old_cores), 0);
    struct rlimit files = old_files;
    struct rlimit cores = old_cores;
    files.rlim_cur = files.rlim_max < 3000 ? files.rlim_max : 3000;
    cores.rlim_cur = cores.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(setrlimit(RLIMIT_CORE, &cores), 0);
    mode_t mask = umask(0077);
    if (geteuid() == 0)
        setpriority(PRIO_PROCESS, 0, 3);
    run(f, ask, LAUNCH_ENDED);
    umask(mask);
    if (geteuid() == 0)
        setpriority(PRIO_PROCESS, 0, 0);
    setrlimit(RLIMIT_NOFILE, &old_files);
    setrlimit(RLIMIT_CORE, &old_cores);
    if (geteuid() == 0)
        assert_string_equal(contents(f->output), "1024\n0\n0022\n0\n");
    else
        assert_has(contents(f->output), "0077\n"); /* the user's own daemon hands on its own limits */
}

LAUNCH_TEST(test_daemon_groups)
{
    static const gid_t groups[] = {0, 54321, 54322};

    if (geteuid() != 0)
        skip(); /* root's daemon only */
    assert_int_equal(setgroups(array_size(groups), groups), 0);
    f->request.uid = f->request.gid = 65534;
    f->request.user = "nobody";
    assert_int_equal(chown(f->work, 65534, 65534), 0);
    run(f, "id -G; grep -E '^(Groups|CapPrm|CapEff|CapInh|CapAmb)' /proc/self/status", LAUNCH_ENDED);
    assert_int_equal(setgroups(1, groups), 0);
    assert_int_equal(f->status.exit_status, 0);
    assert_has(contents(f->output), "65534\nGroups:\t65534 \n");
    assert_has(contents(f->output), "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
}

/* Directories that went away, or are another's: one line that names them. */
LAUNCH_TEST(test_directories)
{
    CLEANUP(free_ptr) char *closed = xasprintf("%s/closed", f->root);
    CLEANUP(free_ptr) char *output = xasprintf("%s/out", closed);

    f->request.directory = closed;
    assert_fails(f, closed);
    assert_has(f->status.message, "No such file or directory: make it, or submit from another");
    if (geteuid() != 0)
        return; /* the rest is about root's daemon and a user */
    f->request.uid = f->request.gid = 65534;
    f->request.user = "nobody";
    assert_int_equal(chown(f->work, 65534, 65534), 0);
    assert_int_equal(mkdir(closed, 0700), 0);
    assert_fails(f, "cannot enter the directory '");
    assert_has(f->status.message, "Permission denied");
    f->request.directory = f->work;
    f->request.output = output;
    assert_fails(f, "cannot open the output file '");
    assert_has(f->status.message, "Permission denied");
    assert_null(strchr(f->status.message, '\n'));
}

RUN_LAUNCH_TESTS
