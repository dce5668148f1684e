/* How a job is run and its record is written: its process, environment, output, status. */
#include "launch_fixture.h"

LAUNCH_TEST(test_success)
{
    int64_t before_ns = nodetime_now_ns();
    struct stat st;

    assert_ends(f, "echo to out; echo to err >&2", EXIT_COMPLETED);
    assert_int_equal(f->status.exit_status, 0);
    assert_int_equal(f->status.signal, 0);
    assert_int_equal(f->status.job, 42);
    assert_int_equal(f->status.launch, 1);
    assert_int_equal(f->status.shepherd, f->shepherd);
    assert_true(f->status.shepherd_start_ticks == f->ticks);
    assert_true(f->status.process > 0 && f->status.process != f->shepherd);
    assert_true(f->status.started_ns >= before_ns && f->status.ended_ns >= f->status.started_ns);
    assert_false(f->status.stopped);
    assert_string_equal(f->status.message, "");
    assert_int_equal(waitpid(f->shepherd, NULL, WNOHANG), -1); /* launch_alive() has reaped it */
    assert_string_equal(contents(f->output), "to out\n");
    assert_string_equal(contents(f->error), "to err\n");
    assert_int_equal(stat(f->run, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

LAUNCH_TEST(test_exit_status)
{
    assert_exits(f, "exit 3", 3);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_exits(f, "exit 127", 127); /* the job's own 127 is not a launch that failed */
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_ends(f, "kill -SEGV $$", EXIT_SIGNALLED);
    assert_int_equal(f->status.signal, SIGSEGV);
    assert_int_equal(f->status.exit_status, -1);
}

LAUNCH_TEST(test_out_of_memory)
{
    assert_ends(f,
                "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total "
                "capacity of 39.38 GiB of which 1.50 GiB is free. Process 4711 has 20.00 GiB memory in use.' >&2; "
                "exit 1",
                EXIT_GPU_OOM);
    assert_int_equal(f->status.exit_status, 1);
    assert_true(f->status.requested_bytes == 6 * GIB);
    assert_true(f->status.free_bytes == 3 * GIB / 2);
    assert_has(f->status.message, "Tried to allocate 6.00 GiB");
    assert_int_equal(f->status.output, OUTPUT_GPU_OOM);
    assert_int_equal(f->status.tenant_count, 1);
    assert_int_equal(f->status.tenants[0].pid, 4711);
    assert_true(f->status.tenants[0].used_bytes == 20 * GIB);
    /* an earlier launch's output is not this one's failure */
    assert_ends(f, "echo fine; exit 1", EXIT_FAILED);
    /* on stdout, and ended by a signal */
    assert_ends(f, "echo 'RuntimeError: CUDA error: out of memory'; kill -ABRT $$", EXIT_GPU_OOM);
    assert_int_equal(f->status.signal, SIGABRT);
    /* whoever says 0: the core weighs it (core/verdict.h) */
    assert_ends(f, "echo 'RuntimeError: CUDA error: out of memory'; exit 0", EXIT_COMPLETED);
    assert_int_equal(f->status.evidence, EVIDENCE_OUTPUT);
    assert_ends(f, "echo 'CUDA error: out of memory'; for i in 1 2 3; do echo epoch $i; done", EXIT_COMPLETED);
    assert_int_equal(f->status.evidence, EVIDENCE_OUTPUT | EVIDENCE_STEPS);
    assert_ends(f, "echo 'CUDA error: out of memory'; for i in 1 2 3; do echo epoch 7; done", EXIT_COMPLETED);
    assert_int_equal(f->status.evidence, EVIDENCE_OUTPUT); /* a bar that is drawn again */
    assert_ends(f, "echo 'CUDA error: out of memory'; for i in 1 2 3; do echo wandb: loss $i; done", EXIT_COMPLETED);
    assert_int_equal(f->status.evidence, EVIDENCE_OUTPUT); /* a summary */
    /* its own doing, later */
    assert_ends(f, "echo 'CUDA error: out of memory'; echo \"KeyError: 'x'\"; exit 1", EXIT_FAILED);
    assert_int_equal(f->status.evidence, EVIDENCE_OWN);
    assert_ends(f, "echo fine", EXIT_COMPLETED);
    assert_string_equal(f->status.message, ""); /* nothing is told of it */
}

/* Its output and its error file: the more telling one counts. */
LAUNCH_TEST(test_other_failures)
{
    assert_ends(f, "echo 'RuntimeError: CUDA error: unspecified launch failure' >&2; echo 'MemoryError'; exit 1",
                EXIT_FAILED);
    assert_int_equal(f->status.output, OUTPUT_GPU_FAULT);
    /* The program ended with a bug. */
    assert_ends(f,
                "echo 'caught CUDA error: out of memory'; "
                "printf 'Traceback (most recent call last):\\nKeyError: 3\\n' >&2; exit 1",
                EXIT_FAILED);
    /* as far as the shepherd can tell */
    assert_ends(f, "echo 'cuDNN error: CUDNN_STATUS_INTERNAL_ERROR' >&2; exit 1", EXIT_FAILED);
    assert_int_equal(f->status.output, OUTPUT_GPU_HANDLE_MAYBE);
    assert_has(f->status.message, "CUDNN_STATUS_INTERNAL_ERROR");
    assert_ends(f, "echo 'cuDNN error: CUDNN_STATUS_INTERNAL_ERROR' >&2; echo MemoryError; exit 1", EXIT_HOST_OOM);
    assert_string_equal(f->status.message, "MemoryError");
}

/* The kernel's counter of a control group, as a file here: the job plays the kernel. */
LAUNCH_TEST(test_killed_for_host_memory)
{
    CLEANUP(free_ptr) char *cgroup = cgroup_of(getpid());
    CLEANUP(free_ptr) char *directory = NULL, *path = NULL, *kill_it = NULL, *only_count = NULL;

    if (!cgroup)
        skip(); /* no control groups of version 2 */
    directory = xasprintf("%s/cgroup%s", f->work, cgroup);
    path = xasprintf("%s/memory.events", directory);
    kill_it = xasprintf("sleep 0.4; echo 'oom_kill 5' >%s; kill -KILL $$", path);
    only_count = xasprintf("sleep 0.4; echo 'oom_kill 6' >%s; exit 1", path);
    assert_int_equal(file_make_dirs(directory, 0755, NULL), 0);
    assert_int_equal(file_write_atomic(path, "oom_kill 4\n", 11, 0644, NULL), 0);
    directory[strlen(directory) - strlen(cgroup)] = '\0';
    setenv("CARMA_CGROUP_ROOT", directory, 1);
    assert_ends(f, "kill -KILL $$", EXIT_SIGNALLED);
    assert_ends(f, kill_it, EXIT_HOST_OOM);
    assert_true(f->status.host_oom_kill);
    assert_ends(f, only_count, EXIT_FAILED); /* it killed a neighbour */
    assert_true(f->status.host_oom_kill);
    unsetenv("CARMA_CGROUP_ROOT");
}

LAUNCH_TEST(test_flood)
{
    f->request.error = NULL;
    assert_ends(f,
                "head -c 30000000 /dev/zero; head -c 3000000 /dev/zero | tr '\\0' x; echo;"
                "echo 'CUDA error: out of memory'; exit 1",
                EXIT_GPU_OOM);
    assert_ends(f, "head -c 3000000 /dev/urandom; exit 1", EXIT_FAILED);
    /* others' lines after it, and in a line of which the beginning is not read */
    assert_ends(f, "echo 'CUDA error: out of memory'; yes 'rank 3: step 12' | head -c 1000000; exit 1", EXIT_GPU_OOM);
    assert_ends(f,
                "head -c 3000000 /dev/zero | tr '\\0' x; printf 'CUDA error: out of memory'; "
                "head -c 1000000 /dev/zero | tr '\\0' x; exit 1",
                EXIT_GPU_OOM);
    assert_ends(f, "echo 'CUDA error: out of memory'; yes 'rank 3: step 12' | head -c 1200000; exit 1",
                EXIT_FAILED); /* too far back */
}

/* The effects of log rotation, and of tidying up, while the job runs. */
LAUNCH_TEST(test_output_that_moves)
{
    assert_ends(f, "mv err err.1; echo 'CUDA error: out of memory' >&2; echo 'nothing' >err; exit 1", EXIT_GPU_OOM);
    assert_ends(f, "rm err; echo 'CUDA error: out of memory' >&2; exit 1", EXIT_GPU_OOM);
    assert_ends(f, "echo 'all is well, and that was long'; : >out; echo 'CUDA error: out of memory'; exit 1",
                EXIT_GPU_OOM);
    /* a file that somebody puts in its place is not its output */
    assert_ends(f, "mv err err.2; echo 'CUDA error: out of memory' >err; : >out; exit 1", EXIT_FAILED);
    assert_ends(f, "mv out out.1; mkfifo out; ln -s /dev/zero err.3; mv err.3 err; exit 1", EXIT_FAILED);
}

/* Ten GiB that are read nowhere, and a disk that takes nothing. */
LAUNCH_TEST(test_output_without_bounds)
{
    assert_ends(f, "truncate -s 10G err; echo >&2; echo 'CUDA error: out of memory' >&2; exit 1", EXIT_GPU_OOM);
    f->request.output = mutable("/dev/full");
    f->request.error = NULL;
    assert_exits(f, "echo lost || exit 5", 5);
    assert_int_equal(f->status.cause, EXIT_FAILED);
}

/* The first launch begins its file anew; the others append. */
LAUNCH_TEST(test_shared_output)
{
    assert_int_equal(file_write_atomic(f->output, "older than the job\n", 19, 0644, NULL), 0);
    f->request.error = NULL;
    run(f, "echo one; echo two >&2; echo three", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "one\ntwo\nthree\n");
    f->request.error = f->output;
    run(f, "echo four; echo five >&2", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "one\ntwo\nthree\nfour\nfive\n");
}

LAUNCH_TEST(test_environment)
{
    char expected[256];

    f->env[1] = mutable("CUDA_VISIBLE_DEVICES=0,1,2,3");
    f->env[2] = mutable("MINE=a=b c");
    f->env[3] = mutable("TF_FORCE_GPU_ALLOW_GROWTH=maybe");
    f->request.environment_count = 4;
    f->request.mps_pipe_directory = "/tmp/mps-pipe";
    f->request.mps_log_directory = "/tmp/mps-log";
    f->request.mps_threads_percent = 30;
    f->request.mps_memory_limit_bytes = (INT64_C(3) << 30) + 1;
    run(f, "pwd -P", LAUNCH_ENDED);
    snprintf(expected, sizeof expected, "%s\n", f->work);
    assert_string_equal(contents(f->output), expected);
    f->argv[0] = mutable("env"); /* itself: a shell would tidy up the descriptors that it was given */
    f->request.argument_count = 1;
    f->launches = 2;
    start_and_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 0);
    const char *text = contents(f->output);
    assert_has(text, "\nCUDA_VISIBLE_DEVICES=GPU-aaaa,GPU-bbbb\n");
    assert_null(strstr(text, "0,1,2,3"));
    assert_has(text, "\nMINE=a=b c\n");
    assert_has(text, "XLA_PYTHON_CLIENT_PREALLOCATE=false\n");
    assert_has(text, "\nTF_FORCE_GPU_ALLOW_GROWTH=maybe\n"); /* as its user set it */
    assert_null(strstr(text, "TF_FORCE_GPU_ALLOW_GROWTH=true"));
    assert_has(text, "\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n");
    assert_has(text, "\nCUDA_MPS_PIPE_DIRECTORY=/tmp/mps-pipe\n");
    assert_has(text, "\nCUDA_MPS_LOG_DIRECTORY=/tmp/mps-log\n");
    assert_has(text, "\nCUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30\n");
    assert_has(text, "\nCUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3073M,1=3073M\n"); /* upwards */
    assert_has(text, "\nCARMA_JOB_ID=42\n");
    assert_has(text, "\nCARMA_JOB_NAME=probe\n");
    assert_has(text, "\nCARMA_GPU_UUIDS=GPU-aaaa,GPU-bbbb\n");
    assert_has(text, "\nCARMA_RESTART_COUNT=2\n");
    assert_has(text, "\nCARMA_GPU_MEMORY_BYTES=12884901888\n");
    assert_has(text, "\nCARMA_GPU_MEMORY_FRACTION=0.3076\n"); /* rounded down: 12 of 39 is more */
    snprintf(expected, sizeof expected, "\nCARMA_SUBMIT_DIR=%s\n", f->work);
    assert_has(text, expected);
    assert_null(strstr(text, "CARMA_SHEPHERD=")); /* the daemon's own environment is not the job's */
}

/* Indices count as their request says; a launch that counts on a filter and gets none has UUIDs. */
LAUNCH_TEST(test_indices)
{
    const struct {
        const char *devices, *mps, *expected;
    } rows[] = {
        {NULL, NULL, "3,1\n"},
        {"not a filter", NULL, "GPU-aaaa,GPU-bbbb\n"},
        {"not a filter", "/tmp/mps", "3,1\n"}, /* its server counts */
    };

    f->request.indices = "3,1";
    for (size_t i = 0; i < array_size(rows); i++) {
        f->request.devices = rows[i].devices;
        f->request.mps_pipe_directory = f->request.mps_log_directory = rows[i].mps;
        unlink(f->output);                                                              /* relaunches append */
        run(f, "echo $CUDA_VISIBLE_DEVICES; : >$CARMA_RUN/shepherd.log", LAUNCH_ENDED); /* its complaint is known */
        assert_string_equal(contents(f->output), rows[i].expected);
    }
}

LAUNCH_TEST(test_no_mps)
{
    assert_exits(f, "ls -A \"$CUDA_MPS_PIPE_DIRECTORY\" && echo [$CUDA_MPS_PIPE_DIRECTORY]", 0);
    assert_has(contents(f->output), "/no-mps]");
    assert_int_equal(contents(f->output)[0], '['); /* there, and empty */
}

LAUNCH_TEST(test_clean_process)
{
    int leaked = open("/dev/zero", O_RDONLY); /* without O_CLOEXEC */
    sigset_t blocked, old;
    char expected[64];

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    signal(SIGUSR2, SIG_IGN);
    run(f, "ls -l /proc/self/fd; grep Sig[BI] /proc/self/status; cut -d' ' -f6 /proc/$$/stat", LAUNCH_ENDED);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGUSR2, SIG_DFL);
    close(leaked);
    assert_null(strstr(contents(f->output), "zero"));
    assert_has(contents(f->output), "0 -> /dev/null");
    assert_has(contents(f->output), "SigBlk:\t0000000000000000\n");
    const char *mask = strstr(contents(f->output), "SigIgn:\t");
    assert_non_null(mask); /* above 31 are the C library's own, which posix_spawn ignores in its children */
    assert_true((strtoull(mask + 8, NULL, 16) & 0x7fffffff) == 0);
    snprintf(expected, sizeof expected, "\n%d\n", (int)f->status.process); /* a session of its own */
    assert_has(contents(f->output), expected);
}

LAUNCH_TEST(test_failures_before_the_command)
{
    char missing[200];

    snprintf(missing, sizeof missing, "%s/nowhere/out", f->work);
    f->request.output = missing;
    assert_fails(f, "cannot open the output file '");
    assert_has(f->status.message, "/nowhere/out': No such file or directory");
    assert_int_equal(f->status.exit_status, -1);
    assert_true(f->status.ended_ns > 0);
    f->request.output = f->output;
    f->request.directory = missing;
    assert_fails(f, "cannot enter the directory '");
    f->request.directory = f->work;
    command(f, "true");
    f->argv[0] = mutable("no-such-program");
    start_and_end(f, LAUNCH_ENDED);
    assert_string_equal(f->status.message, "cannot run 'no-such-program': there is no such program in PATH");
    assert_int_equal(f->status.exit_status, 127);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    f->argv[0] = mutable("/etc/passwd");
    start_and_end(f, LAUNCH_ENDED);
    assert_string_equal(f->status.message, "cannot run '/etc/passwd': it is not executable: chmod +x /etc/passwd");
    assert_int_equal(f->status.exit_status, 126);
}

LAUNCH_TEST(test_wake_waits_for_a_busy_daemon)
{
    char text[64];
    int full = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), count = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, f->socket_path, strlen(f->socket_path) + 1);
    assert_int_equal(connect(full, (struct sockaddr *)&address, sizeof address), 0);
    while (send(full, "fill", 4, 0) == 4)
        ;
    command(f, "true");
    f->drains = false;
    start(f);
    pause_ms(50);
    while (poll(&(struct pollfd){.fd = f->socket, .events = POLLIN}, 1, 300) > 0) {
        ssize_t length = recv(f->socket, text, sizeof text, 0);
        count += length == 5 && memcmp(text, "42 1\n", 5) == 0;
    }
    close(full);
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(count, 2);
}

/* One of these lives as long as every job does. */
LAUNCH_TEST(test_small)
{
    int leaked = open("/dev/zero", O_RDONLY), count = 0;
    struct dirent *entry;
    char path[64];
    DIR *fds;

    command(f, "sleep 100");
    start(f);
    close(leaked);
    await_phase(f, LAUNCH_RUNNING);
    assert_int_equal(getsid(f->shepherd), f->shepherd);
    pause_ms(20); /* the wake-up after the status has its own descriptor for a moment */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)f->shepherd);
    fds = opendir(path);
    assert_non_null(fds);
    while ((entry = readdir(fds)))
        count += entry->d_name[0] != '.';
    closedir(fds);
    assert_int_equal(count, 6); /* 0, 1, 2, its signals, and the names of the job's output and error file */
    snprintf(path, sizeof path, "/proc/%d/status", (int)f->shepherd);
    const char *size = strstr(contents(path), "VmRSS:");
    assert_non_null(size);
#ifndef __SANITIZE_ADDRESS__
    if (atoi(size + 6) >= 3072)
        fail_msg("%.40s", size);
#endif
    stop(f, LAUNCH_ENDED);
}

LAUNCH_TEST(test_other_user)
{
    f->request.uid = 65534;
    f->request.gid = 65534;
    f->request.user = "nobody";
    if (geteuid() != 0) {
        f->request.uid = geteuid() + 1;
        assert_refused(f, -EPERM, "only root can start other users' jobs");
        return;
    }
    /* root's directory: the output is opened with the user's rights */
    assert_fails(f, "cannot open the output file '");
    assert_has(f->status.message, "Permission denied");
    assert_int_equal(chown(f->work, 65534, 65534), 0);
    run(f,
        "id -u; id -g; id -G; grep -E '^(Uid|Gid|CapEff)' /proc/self/status;"
        "stat -c 'of %u' \"$CARMA_CHECKPOINT_DIR\"; mkdir \"$CARMA_RUN/x\" 2>&1; echo forged >\"$CARMA_RUN/status\"; "
        "ls \"$CARMA_RUN\"; "
        "echo 'CUDNN_STATUS_ALLOC_FAILED' >&2; exit 1",
        LAUNCH_ENDED);
    assert_int_equal(strncmp(contents(f->output), "65534\n65534\n65534\n", 18), 0);
    assert_has(contents(f->output), "Uid:\t65534\t65534\t65534\t65534");
    assert_has(contents(f->output), "Gid:\t65534\t65534\t65534\t65534");
    assert_has(contents(f->output), "CapEff:\t0000000000000000");
    assert_has(contents(f->output), "\nof 65534\n");
    assert_has(contents(f->output), "ermission denied");
    assert_int_equal(f->status.cause, EXIT_GPU_HANDLE); /* and read with them */
}

/* The daemon reads at any moment: it sees a whole status, or none. */
LAUNCH_TEST(test_never_half_written)
{
    int reads = 0; /* a busy machine may let none in before a job's end */

    for (int i = 0; i < 10 || (reads == 0 && i < 1000); i++) {
        command(f, "exit 1");
        start(f);
        while (launch_alive(f->shepherd, f->ticks)) {
            int code = launch_read_status(f->run, &f->status, &trouble);
            fail_if(code < 0 && code != -ENOENT, trouble);
            reads++;
        }
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
        assert_int_equal(f->status.phase, LAUNCH_ENDED);
    }
    assert_true(reads > 0);
}

LAUNCH_TEST(test_refused_requests)
{
    const char *shepherd = f->request.shepherd;

    f->request.output = NULL;
    assert_refused(f, -EINVAL, "job 42 has no command, name, directory or output");
    f->request.output = f->output;
    f->request.grace_ns = -1;
    assert_refused(f, -EINVAL, "the grace of -1 ns");
    f->request.grace_ns = 0;
    f->request.time_limit_ns = -1;
    assert_refused(f, -EINVAL, "the time limit of -1 ns");
    f->request.time_limit_ns = NS_PER_SEC;
    f->request.signal = 65;
    assert_refused(f, -EINVAL, "signal 65");
    assert_int_equal(access(f->run, F_OK), -1); /* nothing half done */
    f->request.signal = 0;
    f->request.shepherd = "/nonexistent/carma-shepherd";
    assert_refused(f, -ENOENT, "cannot start the shepherd '/nonexistent/carma-shepherd'");
    f->request.shepherd = shepherd;
    run(f, "true", LAUNCH_ENDED);
    assert_refused(f, -ENOTEMPTY, "cannot make the run directory '"); /* it must be new */
}

RUN_LAUNCH_TESTS
