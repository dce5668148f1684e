/* Launches of real small processes, through the real shepherd (path in CARMA_SHEPHERD). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/spec.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/units.h"
#include "launch/launch.h"
#include "launch/owner.h"

#define PATIENCE_MS 20000 /* a loaded machine; nothing waits so long when it works */

struct fixture {
    char root[64];
    char run[128];
    char work[128];
    char output[160];
    char error[160];
    char socket_path[128];
    int socket;
    bool drains;
    char *argv[8];
    char *env[8];
    struct job_spec spec;
    struct launch_request request;
    struct launch_status status;
    pid_t shepherd;
    uint64_t ticks;
    uint32_t launches;
};

/* The spec's strings are not const; nothing here changes them. */
static char *mutable(const char *text)
{
    return (char *)(uintptr_t)text;
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(f->root, sizeof f->root, "/tmp/carma-launch-XXXXXX");
    if (!mkdtemp(f->root) || chmod(f->root, 0755) < 0)
        return -1;
    snprintf(f->work, sizeof f->work, "%s/work", f->root);
    snprintf(f->output, sizeof f->output, "%s/out", f->work);
    snprintf(f->error, sizeof f->error, "%s/err", f->work);
    snprintf(f->socket_path, sizeof f->socket_path, "%s/notify", f->root);
    if (mkdir(f->work, 0755) < 0)
        return -1;
    memcpy(address.sun_path, f->socket_path, strlen(f->socket_path) + 1);
    f->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (f->socket < 0 || bind(f->socket, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    f->drains = true;
    f->env[0] = mutable("PATH=/usr/local/bin:/usr/bin:/bin");
    f->spec = (struct job_spec){.name = mutable("probe"),
                                .directory = f->work,
                                .output = f->output,
                                .error = f->error,
                                .gpus = 1};
    f->spec.command.items = f->argv;
    f->spec.environment.items = f->env;
    f->spec.environment.count = 1;
    f->request = (struct launch_request){.shepherd = getenv("CARMA_SHEPHERD"),
                                         .run_directory = f->run,
                                         .spec = &f->spec,
                                         .job = 42,
                                         .uid = geteuid(),
                                         .gid = getegid(),
                                         .user = "someone",
                                         .gpu_uuids = "GPU-aaaa,GPU-bbbb",
                                         .notify_socket = f->socket_path,
                                         .grace_ns = 300 * NS_PER_MS};
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->socket);
    nftw(f->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static void command(struct fixture *f, const char *script)
{
    f->argv[0] = mutable("sh");
    f->argv[1] = mutable("-c");
    f->argv[2] = mutable(script);
    f->argv[3] = NULL;
    f->spec.command.count = 3;
}

/* What a daemon does all the time: a shepherd whose poke finds the socket full waits. */
static void drain(const struct fixture *f)
{
    char text[64];

    while (recv(f->socket, text, sizeof text, MSG_DONTWAIT) > 0)
        ;
}

static void start(struct fixture *f)
{
    struct error err = {{0}};

    if (f->drains)
        drain(f);
    f->request.launch = ++f->launches;
    snprintf(f->run, sizeof f->run, "%s/runs/42.%u", f->root, f->launches);
    if (launch_start(&f->request, &f->shepherd, &f->ticks, &err) < 0)
        fail_msg("%s", err.text);
}

/* Waits until the launch has this phase, or is over. */
static void await_phase(struct fixture *f, enum launch_phase phase)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        struct error err;
        int code = launch_read_status(f->run, &f->status, &err);
        if (code < 0 && code != -ENOENT)
            fail_msg("%s", err.text);
        if (code == 0 && (f->status.phase == phase || f->status.phase == LAUNCH_ENDED ||
                          f->status.phase == LAUNCH_FAILED)) {
            if (f->status.phase != phase)
                fail_msg("phase %s instead of %s: exit %d signal %d %s", launch_phase_name(f->status.phase),
                         launch_phase_name(phase), f->status.exit_status, f->status.signal, f->status.message);
            return;
        }
        pause_ms(5);
    }
    fail_msg("still no phase %s", launch_phase_name(phase));
}

/* The file's text, until the next call. */
static const char *contents(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    text[length] = '\0';
    return text;
}

static void await_end(struct fixture *f, enum launch_phase phase)
{
    char path[200];

    await_phase(f, phase);
    for (int i = 0; i < PATIENCE_MS / 5 && launch_alive(f->shepherd, f->ticks); i++)
        pause_ms(5);
    assert_false(launch_alive(f->shepherd, f->ticks));
    snprintf(path, sizeof path, "%s/shepherd.log", f->run);
    if (*contents(path)) /* a sanitizer's words end up there too */
        fail_msg("%s", contents(path));
}

static void run(struct fixture *f, const char *script, enum launch_phase phase)
{
    command(f, script);
    start(f);
    await_end(f, phase);
}

static pid_t pid_in(const char *path)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        const char *text = contents(path);
        if (strchr(text, '\n'))
            return (pid_t)atoi(text);
        pause_ms(5);
    }
    fail_msg("nothing in %s", path);
    return 0;
}

static bool gone(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) < 0 || stat.state == 'Z';
}

static void assert_has(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no '%s' in: %s", what, text);
}

static void test_success(void **state)
{
    struct fixture *f = *state;
    int64_t before_ns = nodetime_now_ns();
    struct stat st;

    run(f, "echo to out; echo to err >&2", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
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

static void test_exit_status(void **state)
{
    struct fixture *f = *state;

    run(f, "exit 3", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_int_equal(f->status.exit_status, 3);
    run(f, "exit 127", LAUNCH_ENDED); /* the job's own 127 is not a launch that failed */
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_int_equal(f->status.exit_status, 127);
}

static void test_signal(void **state)
{
    struct fixture *f = *state;

    run(f, "kill -SEGV $$", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_SIGNALLED);
    assert_int_equal(f->status.signal, SIGSEGV);
    assert_int_equal(f->status.exit_status, -1);
}

static void test_out_of_memory(void **state)
{
    struct fixture *f = *state;

    run(f, "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of "
           "39.38 GiB of which 1.50 GiB is free.' >&2; exit 1", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_GPU_OOM);
    assert_int_equal(f->status.exit_status, 1);
    assert_true(f->status.requested_bytes == 6 * GIB);
    assert_true(f->status.free_bytes == 3 * GIB / 2);
    assert_has(f->status.message, "Tried to allocate 6.00 GiB");
    /* what an earlier launch wrote is not this one's failure */
    run(f, "echo fine; exit 1", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    /* on stdout, and ended by a signal */
    run(f, "echo 'RuntimeError: CUDA error: out of memory'; kill -ABRT $$", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_GPU_OOM);
    assert_int_equal(f->status.signal, SIGABRT);
    /* caught, and gone on */
    run(f, "echo 'RuntimeError: CUDA error: out of memory'; exit 0", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
}

static void test_flood(void **state)
{
    struct fixture *f = *state;

    f->spec.error = NULL;
    run(f, "head -c 30000000 /dev/zero; head -c 3000000 /dev/zero | tr '\\0' x; echo;"
           "echo 'CUDA error: out of memory'; exit 1", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_GPU_OOM);
    run(f, "head -c 3000000 /dev/urandom; exit 1", LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_FAILED);
}

static void test_shared_output(void **state)
{
    struct fixture *f = *state;

    f->spec.error = NULL;
    run(f, "echo one; echo two >&2; echo three", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "one\ntwo\nthree\n");
    f->spec.error = f->output;
    run(f, "echo four; echo five >&2", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "one\ntwo\nthree\nfour\nfive\n"); /* relaunches append */
}

static void test_first_truncates(void **state)
{
    struct fixture *f = *state;
    int fd = open(f->output, O_WRONLY | O_CREAT, 0644);

    assert_int_equal(write(fd, "older than the job\n", 19), 19);
    close(fd);
    run(f, "echo new", LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "new\n");
}

static void test_environment(void **state)
{
    struct fixture *f = *state;
    const char *text;
    char expected[256];

    f->env[1] = mutable("CUDA_VISIBLE_DEVICES=0,1,2,3");
    f->env[2] = mutable("MINE=a=b c");
    f->spec.environment.count = 3;
    f->request.mps_pipe_directory = "/tmp/mps-pipe";
    run(f, "pwd -P", LAUNCH_ENDED);
    snprintf(expected, sizeof expected, "%s\n", f->work);
    assert_string_equal(contents(f->output), expected);
    f->argv[0] = mutable("env"); /* itself: a shell would tidy up what it was given */
    f->spec.command.count = 1;
    f->launches = 2;
    start(f);
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 0);
    text = contents(f->output);
    assert_has(text, "\nCUDA_VISIBLE_DEVICES=GPU-aaaa,GPU-bbbb\n");
    assert_null(strstr(text, "0,1,2,3"));
    assert_has(text, "\nMINE=a=b c\n");
    assert_has(text, "\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n");
    assert_has(text, "\nCUDA_MPS_PIPE_DIRECTORY=/tmp/mps-pipe\n");
    assert_has(text, "\nCARMA_JOB_ID=42\n");
    assert_has(text, "\nCARMA_JOB_NAME=probe\n");
    assert_has(text, "\nCARMA_GPU_UUIDS=GPU-aaaa,GPU-bbbb\n");
    assert_has(text, "\nCARMA_RESTART_COUNT=2\n");
    snprintf(expected, sizeof expected, "\nCARMA_SUBMIT_DIR=%s\n", f->work);
    assert_has(text, expected);
    assert_null(strstr(text, "CARMA_SHEPHERD=")); /* the daemon's own environment is not the job's */
}

static void test_no_mps(void **state)
{
    struct fixture *f = *state;

    run(f, "ls -A \"$CUDA_MPS_PIPE_DIRECTORY\" && echo [$CUDA_MPS_PIPE_DIRECTORY]", LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 0);
    assert_has(contents(f->output), "/no-mps]");
    assert_int_equal(contents(f->output)[0], '['); /* there, and empty */
}

static void test_clean_process(void **state)
{
    struct fixture *f = *state;
    int leaked = open("/dev/zero", O_RDONLY); /* without O_CLOEXEC */
    sigset_t blocked, old;
    const char *mask;
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
    mask = strstr(contents(f->output), "SigIgn:\t");
    assert_non_null(mask); /* above 31 are the C library's own, which posix_spawn ignores in whatever it starts */
    assert_true((strtoull(mask + 8, NULL, 16) & 0x7fffffff) == 0);
    snprintf(expected, sizeof expected, "\n%d\n", (int)f->status.process); /* a session of its own */
    assert_has(contents(f->output), expected);
}

static void test_job_number_in_paths(void **state)
{
    struct fixture *f = *state;
    char pattern[200], path[200];

    snprintf(pattern, sizeof pattern, "%s/out-%%j-%%j.log", f->work);
    snprintf(path, sizeof path, "%s/out-42-42.log", f->work);
    f->spec.output = pattern;
    run(f, "echo here", LAUNCH_ENDED);
    assert_string_equal(contents(path), "here\n");
}

static void test_failures_before_the_command(void **state)
{
    struct fixture *f = *state;
    char missing[200];

    snprintf(missing, sizeof missing, "%s/nowhere/out", f->work);
    f->spec.output = missing;
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "cannot open the output file '");
    assert_has(f->status.message, "/nowhere/out': No such file or directory");
    assert_int_equal(f->status.exit_status, -1);
    assert_true(f->status.ended_ns > 0);
    f->spec.output = f->output;
    f->spec.directory = missing;
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "cannot enter the directory '");
    f->spec.directory = f->work;
    command(f, "true");
    f->argv[0] = mutable("no-such-program");
    start(f);
    await_end(f, LAUNCH_FAILED);
    assert_string_equal(f->status.message, "cannot run 'no-such-program': there is no such program in PATH");
    f->argv[0] = mutable("/etc/passwd");
    start(f);
    await_end(f, LAUNCH_FAILED);
    assert_string_equal(f->status.message, "cannot run '/etc/passwd': Permission denied");
}

static void test_double_fork(void **state)
{
    struct fixture *f = *state;
    char path[200];
    pid_t orphan;

    snprintf(path, sizeof path, "%s/orphan", f->work);
    f->request.grace_ns = 60 * NS_PER_SEC; /* it heeds SIGTERM, so this is not waited for */
    /* setsid forks when it leads a group already: the sleeper is in another session, and its parent is gone */
    run(f, "(setsid sh -c 'echo $$ >orphan; exec sleep 100' &) ; while [ ! -s orphan ]; do sleep 0.01; done; exit 5",
        LAUNCH_ENDED);
    orphan = pid_in(path);
    assert_true(gone(orphan));
    assert_int_equal(f->status.exit_status, 5);
}

static void test_descendant_ignores_sigterm(void **state)
{
    struct fixture *f = *state;
    char path[200];
    int64_t begun_ns = nodetime_monotonic_wall_ns();

    snprintf(path, sizeof path, "%s/orphan", f->work);
    run(f, "(trap '' TERM; sh -c 'echo $$ >orphan; exec sleep 100' &) ; while [ ! -s orphan ]; do sleep 0.01; done",
        LAUNCH_ENDED);
    assert_true(gone(pid_in(path)));
    assert_true(nodetime_monotonic_wall_ns() - begun_ns >= f->request.grace_ns);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
}

static void test_fork_chain(void **state)
{
    struct fixture *f = *state;

    /* every process forks the next and ends: none lives long, and none hears SIGTERM */
    f->request.grace_ns = 50 * NS_PER_MS;
    run(f, "echo 'trap \"\" TERM; sh hop & exit' >hop; for i in 1 2 3 4 5; do sh hop; done; exit 0",
        LAUNCH_ENDED);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
}

static void test_stop(void **state)
{
    struct fixture *f = *state;
    struct error err;

    f->request.grace_ns = 60 * NS_PER_SEC; /* all of the tree hears SIGTERM, so this is not waited for */
    command(f, "sleep 100; echo unreachable");
    start(f);
    await_phase(f, LAUNCH_RUNNING);
    assert_true(f->status.process > 0 && launch_descends_from(f->status.process, f->shepherd));
    assert_int_equal(launch_stop(f->shepherd, f->ticks + 1, &err), -ESRCH); /* another process with this pid */
    assert_true(launch_alive(f->shepherd, f->ticks));
    assert_int_equal(launch_stop(f->shepherd, f->ticks, &err), 0);
    await_end(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.signal, SIGTERM);
    assert_int_equal(f->status.cause, EXIT_FAILED);
    assert_string_equal(contents(f->output), "");
    assert_int_equal(launch_stop(f->shepherd, f->ticks, &err), -ESRCH);
}

static void test_stop_politely(void **state)
{
    struct fixture *f = *state;

    f->request.grace_ns = 60 * NS_PER_SEC;
    command(f, "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done");
    start(f);
    for (int i = 0; i < 1000 && !*contents(f->output); i++)
        pause_ms(5);
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.cause, EXIT_COMPLETED);
    assert_string_equal(contents(f->output), "ready\nsaved\n");
}

static void test_stop_the_deaf(void **state)
{
    struct fixture *f = *state;

    command(f, "trap '' TERM; echo ready; while :; do sleep 0.02; done");
    start(f);
    for (int i = 0; i < 1000 && !*contents(f->output); i++)
        pause_ms(5);
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, LAUNCH_ENDED);
    assert_true(f->status.stopped);
    assert_int_equal(f->status.signal, SIGKILL);
}

static void test_stop_the_stopped(void **state)
{
    struct fixture *f = *state;
    struct proc_stat stat = {0};

    f->request.grace_ns = 60 * NS_PER_SEC;
    command(f, "trap 'exit 7' TERM; kill -STOP $$");
    start(f);
    await_phase(f, LAUNCH_RUNNING);
    for (int i = 0; i < 1000 && stat.state != 'T'; i++) {
        assert_int_equal(proc_read_stat(f->status.process, &stat), 0);
        pause_ms(2);
    }
    assert_int_equal(stat.state, 'T');
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 7);
}

static void test_stop_at_once(void **state)
{
    struct fixture *f = *state;

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

/* Whatever the launch hangs in before the command is run, it can be stopped. */
static void test_stop_before_the_command(void **state)
{
    struct fixture *f = *state;
    char fifo[200];

    snprintf(fifo, sizeof fifo, "%s/fifo", f->work);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    f->spec.output = fifo; /* opening it waits for a reader */
    command(f, "echo unreachable");
    start(f);
    await_phase(f, LAUNCH_STARTING);
    pause_ms(50);
    assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    assert_int_equal(f->status.phase, LAUNCH_STARTING);
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, LAUNCH_FAILED);
    assert_true(f->status.stopped);
    assert_string_equal(f->status.message, "stopped before the command was run");
}

/* A failure of the disk delays the last status, but does not lose it. */
static void test_last_status_is_retried(void **state)
{
    struct fixture *f = *state;
    char path[200];

    command(f, "while [ ! -e go ]; do sleep 0.01; done; exit 6");
    start(f);
    await_phase(f, LAUNCH_RUNNING);
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

static void test_daemon_dies(void **state)
{
    struct fixture *f = *state;
    pid_t daemon;

    command(f, "sleep 0.1; echo survived; exit 9");
    daemon = fork();
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

static void test_settle(void **state)
{
    struct fixture *f = *state;
    struct launch_status status;
    struct error err;
    char directory[200];

    run(f, "true", LAUNCH_ENDED);
    assert_int_equal(launch_settle(f->run, &status, &err), 0);
    assert_int_equal(status.phase, LAUNCH_ENDED);
    snprintf(directory, sizeof directory, "%s/runs/43.1", f->root);
    assert_int_equal(launch_settle(directory, &status, &err), 0); /* never begun */
    assert_int_equal(status.phase, LAUNCH_FAILED);
    /* begun, but no status yet: from now on a shepherd cannot make one */
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(launch_settle(directory, &status, &err), 0);
    assert_int_equal(status.phase, LAUNCH_FAILED);
    assert_int_equal(launch_read_status(directory, &status, &err), 0);
    assert_has(status.message, "given up");
}

/* Many times a settling daemon against a beginning shepherd: either the job ran and is known, or it never runs. */
static void test_settle_race(void **state)
{
    struct fixture *f = *state;
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

static void test_poke(void **state)
{
    struct fixture *f = *state;
    char text[64];

    run(f, "true", LAUNCH_ENDED);
    for (int i = 0; i < 3; i++) { /* STARTING, RUNNING, ENDED */
        ssize_t length = recv(f->socket, text, sizeof text - 1, MSG_DONTWAIT);
        assert_int_equal(length, 5);
        text[length] = '\0';
        assert_string_equal(text, "42 1\n");
    }
    assert_int_equal(recv(f->socket, text, sizeof text, MSG_DONTWAIT), -1);
}

static void test_poke_waits_for_a_busy_daemon(void **state)
{
    struct fixture *f = *state;
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
    assert_int_equal(count, 3);
}

static void test_sweep(void **state)
{
    struct fixture *f = *state;
    char path[200];
    pid_t stray, bare;
    int left = 1;

    /* one that left the session, one that dropped the environment */
    command(f, "(setsid sh -c 'echo $$ >stray; exec sleep 100' &); (env -i sh -c 'echo $$ >bare; exec sleep 100' &);"
               "sleep 100");
    start(f);
    await_phase(f, LAUNCH_RUNNING);
    snprintf(path, sizeof path, "%s/stray", f->work);
    stray = pid_in(path);
    snprintf(path, sizeof path, "%s/bare", f->work);
    bare = pid_in(path);
    assert_int_equal(kill(f->shepherd, SIGKILL), 0);
    while (launch_alive(f->shepherd, f->ticks))
        pause_ms(2);
    assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    assert_int_equal(f->status.phase, LAUNCH_RUNNING);
    assert_false(gone(stray));
    for (int i = 0; i < 1000 && !gone(f->status.process); i++) /* goes with its shepherd by itself */
        pause_ms(5);
    assert_true(gone(f->status.process));
    for (int i = 0; i < 1000 && (left = launch_sweep(f->run, &f->status, geteuid())) > 0; i++)
        pause_ms(5);
    assert_int_equal(left, 0);
    assert_true(gone(stray));
    assert_true(gone(bare));
}

/* The number of a session that has ended may lead another one by now. */
static void test_sweep_spares_others(void **state)
{
    struct fixture *f = *state;
    struct proc_stat stat = {0};
    pid_t other = fork();

    if (other == 0) {
        setsid();
        pause();
        _exit(0);
    }
    while (stat.session != other)
        assert_int_equal(proc_read_stat(other, &stat), 0);
    f->status.process = other;
    f->status.process_start_ticks = stat.start_ticks - 1;
    assert_int_equal(launch_sweep("/nonexistent/run", &f->status, geteuid()), 0);
    f->status.process_start_ticks = stat.start_ticks;
    assert_int_equal(launch_sweep("/nonexistent/run", &f->status, geteuid() + 1), 0); /* another user's */
    assert_int_equal(launch_sweep("/nonexistent/run", &f->status, geteuid()), 1);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

/* One of these lives as long as every job does. */
static void test_small(void **state)
{
    struct fixture *f = *state;
    int leaked = open("/dev/zero", O_RDONLY), count = 0;
    struct dirent *entry;
    char path[64];
    const char *size;
    DIR *fds;

    command(f, "sleep 100");
    start(f);
    close(leaked);
    await_phase(f, LAUNCH_RUNNING);
    assert_int_equal(getsid(f->shepherd), f->shepherd);
    pause_ms(20); /* the poke after the status has its own descriptor for a moment */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)f->shepherd);
    fds = opendir(path);
    assert_non_null(fds);
    while ((entry = readdir(fds)))
        count += entry->d_name[0] != '.';
    closedir(fds);
    assert_int_equal(count, 4); /* 0, 1, 2 and its signals */
    snprintf(path, sizeof path, "/proc/%d/status", (int)f->shepherd);
    size = strstr(contents(path), "VmRSS:");
    assert_non_null(size);
#ifndef __SANITIZE_ADDRESS__
    if (atoi(size + 6) >= 3072)
        fail_msg("%.40s", size);
#endif
    launch_stop(f->shepherd, f->ticks, NULL);
    await_end(f, LAUNCH_ENDED);
}

static void test_run_directory_must_be_new(void **state)
{
    struct fixture *f = *state;
    struct error err;

    run(f, "true", LAUNCH_ENDED);
    assert_int_equal(launch_start(&f->request, &f->shepherd, &f->ticks, &err), -EEXIST);
    assert_has(err.text, "cannot make the run directory '");
}

static void test_bad_shepherd(void **state)
{
    struct fixture *f = *state;
    struct error err;

    command(f, "true");
    f->request.shepherd = "/nonexistent/carma-shepherd";
    snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
    f->request.launch = 1;
    assert_int_equal(launch_start(&f->request, &f->shepherd, &f->ticks, &err), -ENOENT);
    assert_has(err.text, "cannot start the shepherd '/nonexistent/carma-shepherd'");
}

static void test_other_user(void **state)
{
    struct fixture *f = *state;
    struct error err;

    f->request.uid = 65534;
    f->request.gid = 65534;
    f->request.user = "nobody";
    if (geteuid() != 0) {
        f->request.uid = geteuid() + 1;
        snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
        assert_int_equal(launch_start(&f->request, &f->shepherd, &f->ticks, &err), -EPERM);
        assert_has(err.text, "only root can start other users' jobs");
        return;
    }
    /* root's directory: the output is opened with the user's rights */
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "cannot open the output file '");
    assert_has(f->status.message, "Permission denied");
    assert_int_equal(chown(f->work, 65534, 65534), 0);
    run(f, "id -u; id -g; id -G; grep -E '^(Uid|Gid|CapEff)' /proc/self/status;"
           "mkdir \"$CARMA_RUN/x\" 2>&1; echo forged >\"$CARMA_RUN/status\"; ls \"$CARMA_RUN\"; "
           "echo 'CUDNN_STATUS_ALLOC_FAILED' >&2; exit 1", LAUNCH_ENDED);
    assert_int_equal(strncmp(contents(f->output), "65534\n65534\n65534\n", 18), 0);
    assert_has(contents(f->output), "Uid:\t65534\t65534\t65534\t65534");
    assert_has(contents(f->output), "Gid:\t65534\t65534\t65534\t65534");
    assert_has(contents(f->output), "CapEff:\t0000000000000000");
    assert_has(contents(f->output), "ermission denied");
    assert_int_equal(f->status.cause, EXIT_GPU_OOM); /* and read with them */
}

/* The daemon reads at any moment: what it sees is a whole status, or none. */
static void test_never_half_written(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 10; i++) {
        int reads = 0;
        command(f, "exit 1");
        start(f);
        while (launch_alive(f->shepherd, f->ticks)) {
            struct error err;
            int code = launch_read_status(f->run, &f->status, &err);
            if (code < 0 && code != -ENOENT)
                fail_msg("%s", err.text);
            reads++;
        }
        assert_true(reads > 0);
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
        assert_int_equal(f->status.phase, LAUNCH_ENDED);
    }
}

static void write_text(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* A home whose login shell finds a conda with one environment, "good". */
static void make_conda(struct fixture *f)
{
    static char home[200], path[300];
    char text[400];

    snprintf(home, sizeof home, "HOME=%s", f->work);
    snprintf(path, sizeof path, "%s/conda-bin", f->work);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/conda-bin/conda", f->work);
    write_text(path, "#!/bin/sh\n[ \"$1\" = shell.bash ] || exit 1\ncat <<'EOF'\n"
                     "conda() {\n"
                     "  [ \"$1\" = activate ] || return 1\n"
                     "  if [ \"$2\" = good ]; then export CONDA_DEFAULT_ENV=good; return 0; fi\n"
                     "  if [ \"$2\" = broken ]; then echo 'permission trouble' >&2; return 1; fi\n"
                     "  echo >&2; echo \"EnvironmentNameNotFound: Could not find conda environment: $2\" >&2; return 1\n"
                     "}\nEOF\n", 0755);
    snprintf(path, sizeof path, "%s/.bash_profile", f->work);
    /* a profile that does what profiles do: goes elsewhere, sets variables, leaves something running */
    snprintf(text, sizeof text, "PATH=%s/conda-bin:$PATH\ncd /\nexport CUDA_VISIBLE_DEVICES=7\nsleep 100 &\n", f->work);
    write_text(path, text, 0644);
    f->env[1] = home;
    f->spec.environment.count = 2;
}

static void test_conda(void **state)
{
    struct fixture *f = *state;

    make_conda(f);
    f->spec.conda_environment = mutable("good");
    run(f, "echo $CONDA_DEFAULT_ENV $CUDA_VISIBLE_DEVICES; pwd; echo \"$0\" '$(x)'; ls /proc/self/fd | wc -l; exit 4",
        LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 4);
    assert_has(contents(f->output), "good GPU-aaaa,GPU-bbbb\n");
    assert_has(contents(f->output), f->work);
    assert_has(contents(f->output), "sh $(x)\n4\n"); /* 0, 1, 2 and ls's own */
}

/* Something that the profile left running holds what tells the execution; the job counts as running nevertheless. */
static void test_conda_runs(void **state)
{
    struct fixture *f = *state;

    make_conda(f);
    f->spec.conda_environment = mutable("good");
    command(f, "sleep 100");
    start(f);
    await_phase(f, LAUNCH_RUNNING);
    launch_stop(f->shepherd, f->ticks, NULL);
    await_end(f, LAUNCH_ENDED);
    assert_int_equal(f->status.signal, SIGTERM);
}

static void test_incomplete_request(void **state)
{
    struct fixture *f = *state;
    struct error err;

    command(f, "true");
    snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
    f->spec.output = NULL;
    assert_int_equal(launch_start(&f->request, &f->shepherd, &f->ticks, &err), -EINVAL);
    assert_has(err.text, "job 42 has no command, name, directory or output");
    f->spec.output = f->output;
    f->request.grace_ns = -1;
    assert_int_equal(launch_start(&f->request, &f->shepherd, &f->ticks, &err), -EINVAL);
    assert_has(err.text, "the grace of -1 ns");
    assert_int_equal(access(f->run, F_OK), -1); /* nothing half done */
}

static void test_conda_failures(void **state)
{
    struct fixture *f = *state;
    char path[200];

    make_conda(f);
    f->spec.conda_environment = mutable("tf");
    run(f, "echo unreachable", LAUNCH_FAILED);
    assert_string_equal(f->status.message, "conda: environment 'tf' not found: create it, or correct the name");
    assert_string_equal(contents(f->output), "");
    f->spec.conda_environment = mutable("broken");
    run(f, "true", LAUNCH_FAILED);
    assert_string_equal(f->status.message, "conda: cannot activate 'broken': permission trouble");
    f->spec.conda_environment = mutable("good");
    command(f, "true");
    f->argv[0] = mutable("no-such-program");
    start(f);
    await_end(f, LAUNCH_FAILED);
    assert_has(f->status.message, "cannot run 'no-such-program'");
    snprintf(path, sizeof path, "%s/.bash_profile", f->work);
    write_text(path, "exit 0\n", 0644);
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: the login shell ended with status 0");
    write_text(path, "PATH=/usr/bin:/bin\n", 0644);
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: not found by a login shell");
    write_text(path, "sleep 100\n", 0644);
    command(f, "true");
    start(f);
    await_phase(f, LAUNCH_STARTING);
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, LAUNCH_FAILED);
    assert_true(f->status.stopped);
    f->env[0] = mutable("PATH=/nonexistent");
    run(f, "true", LAUNCH_FAILED);
    assert_has(f->status.message, "conda: bash was not found in PATH");
}

static void test_owner(void **state)
{
    pid_t child = fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_true(launch_descends_from(child, getpid()));
    assert_true(launch_descends_from(getpid(), getpid()));
    assert_true(launch_descends_from(child, getppid()));
    assert_false(launch_descends_from(getpid(), child));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(launch_descends_from(child, getpid()));
    assert_false(launch_descends_from(child, child));
    assert_false(launch_descends_from(0, 0));
    assert_false(launch_descends_from(-1, 1));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_success), T(test_exit_status), T(test_signal), T(test_out_of_memory), T(test_flood),
        T(test_shared_output), T(test_first_truncates), T(test_environment), T(test_no_mps), T(test_clean_process),
        T(test_job_number_in_paths), T(test_failures_before_the_command), T(test_double_fork),
        T(test_descendant_ignores_sigterm), T(test_fork_chain), T(test_stop), T(test_stop_politely),
        T(test_stop_the_deaf), T(test_stop_the_stopped), T(test_stop_at_once),
        T(test_stop_before_the_command), T(test_last_status_is_retried), T(test_daemon_dies), T(test_settle), T(test_settle_race),
        T(test_poke), T(test_poke_waits_for_a_busy_daemon), T(test_sweep), T(test_sweep_spares_others), T(test_small),
        T(test_run_directory_must_be_new),
        T(test_bad_shepherd), T(test_other_user), T(test_never_half_written), T(test_conda), T(test_conda_runs),
        T(test_conda_failures), T(test_incomplete_request),
        T(test_owner),
    };

    if (!getenv("CARMA_SHEPHERD")) {
        fputs("CARMA_SHEPHERD names no shepherd to test\n", stderr);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
