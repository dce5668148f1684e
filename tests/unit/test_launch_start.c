/* From a job's fork to its command: the time that counts, steps that do not wait, and a start that takes too long. */
#include "launch_fixture.h"

#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>

#include "launch/spawn_shepherd.h"

LAUNCH_TEST(test_profile_counts)
{
    int64_t before_ns = nodetime_now_ns();

    slow_profile(f, "sleep 0.4; exit 3");
    run(f, "echo unreachable", LAUNCH_FAILED);
    assert_true(f->status.started_ns >= before_ns && f->status.started_ns < f->status.ended_ns);
    assert_true(f->status.ended_ns - f->status.started_ns >= 400 * NS_PER_MS);
    assert_string_equal(f->status.message, "conda: the login shell ended with status 3 before the command was run");
}

/* The profile runs in the job's time. */
LAUNCH_TEST(test_profile_is_limited)
{
    f->request.time_limit_ns = 300 * NS_PER_MS;
    slow_profile(f, "sleep 100");
    assert_ends(f, "echo unreachable", EXIT_TIMEOUT);
    assert_true(f->status.timed_out);
    assert_string_equal(f->status.message, "time limit of 0:00 reached before the command was run");
    assert_string_equal(contents(f->output), "");
}

LAUNCH_TEST(test_start_timeout)
{
    CLEANUP(free_ptr) char *pid = xasprintf("%s/pid", f->work);

    f->request.start_timeout_ns = 500 * NS_PER_MS;
    slow_profile(f, "trap '' TERM; sh -c 'echo $$; exec sleep 100' >~/pid");
    run(f, "echo unreachable", LAUNCH_FAILED);
    assert_string_equal(f->status.message,
                        "the start took longer than the start_timeout of 0:00: it was in the login shell, "
                        "its profile and conda");
    assert_true(gone(pid_in(pid)));
    assert_false(f->status.stopped);
    f->request.conda_environment = NULL; /* the command may take any time */
    assert_ends(f, "sleep 1.2", EXIT_COMPLETED);
}

LAUNCH_TEST(test_fifo)
{
    CLEANUP(free_ptr) char *fifo = xasprintf("%s/fifo", f->work);
    CLEANUP(close_fd) int reader = -1;
    char text[16] = "";

    assert_int_equal(mkfifo(fifo, 0600), 0);
    f->request.output = fifo;
    assert_fails(f, "cannot open the output file '");
    assert_has(f->status.message,
               "/fifo': it is a FIFO that nobody reads, or a socket: start its reader first, or name a file");
    f->request.output = f->output;
    f->request.error = fifo;
    assert_fails(f, "cannot open the error file '");
    reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    run(f,
        "echo to the reader >&2; exec python3 -c 'import fcntl, os; print(fcntl.fcntl(2, fcntl.F_GETFL) & "
        "os.O_NONBLOCK, "
        "fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK)'",
        LAUNCH_ENDED);
    assert_true(read(reader, text, sizeof text - 1) > 0);
    assert_string_equal(text, "to the reader\n");
    assert_string_equal(contents(f->output), "0 0\n"); /* the job's own writes wait, as anybody's */
}

/* 0: it has none. */
static pid_t child_of(pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid);

    return (pid_t)atoi(contents(path));
}

static bool sleeps(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) == 0 && stat.state == 'S';
}

static pid_t wait_for_a_job(const struct fixture *f)
{
    CLEANUP(free_ptr) char *runs = xasprintf("%s/runs", f->root);

    fail_if(spawn_prepare(f->request.shepherd, runs, &trouble) < 0, trouble);
    return spawn_waiting();
}

/* The process of the next job, once it can be given it. */
static pid_t job_that_waits(pid_t shepherd)
{
    pid_t job;

    while ((job = child_of(shepherd)) == 0 || !sleeps(job))
        pause_ms(5);
    return job;
}

static bool is_own_group(const char *group)
{
    return group && strstr(group, "/" CGROUP_PREFIX);
}

/* A shepherd that waits takes the next job; one killed meanwhile is not missed, and none outlives its parent. */
LAUNCH_TEST(test_prepared)
{
    CLEANUP(free_ptr) char *next = xasprintf("%s/runs/next", f->root);
    CLEANUP(free_ptr) char *runs = xasprintf("%s/runs", f->root);
    CLEANUP(free_ptr) char *left = xasprintf("%s/left", next);

    assert_true(mkdir(runs, 0700) == 0 && mkdir(next, 0700) == 0 &&
                mkdir(left, 0700) == 0); /* by a daemon that was killed */
    pid_t first = wait_for_a_job(f);
    assert_true(first > 0);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(wait_for_a_job(f), first); /* one is enough */
    assert_exits(f, "echo done", 0);
    assert_int_equal(f->shepherd, first);
    assert_string_equal(contents(f->output), "done\n");
    run(f, "echo again", LAUNCH_ENDED);
    assert_int_not_equal(f->shepherd, first);
    pid_t second = wait_for_a_job(f);
    pid_t job = job_that_waits(second);
    assert_int_equal(kill(second, SIGKILL), 0);
    while (!gone(second) || !gone(job))
        pause_ms(5);
    assert_exits(f, "exit 7", 7);
    assert_int_not_equal(f->shepherd, second);
    first = wait_for_a_job(f);
    job = job_that_waits(first);
    CLEANUP(free_ptr) char *group = cgroup_of(job);
    spawn_unprepare();
    assert_true(kill(first, 0) < 0 && kill(job, 0) < 0);
    assert_true(!is_own_group(group) || cgroup_open(group) == -ENOENT);
    assert_int_equal(access(next, F_OK), -1);
}

/* The process of the next job is replaced where it is killed while it waits. */
LAUNCH_TEST(test_prepared_job_is_killed)
{
    pid_t shepherd = wait_for_a_job(f), job = job_that_waits(shepherd);

    CLEANUP(free_ptr) char *group = cgroup_of(job);
    assert_int_equal(kill(job, SIGKILL), 0);
    while (!gone(job))
        pause_ms(5);
    run(f, "echo done", LAUNCH_ENDED);
    assert_int_equal(f->shepherd, shepherd);
    assert_int_not_equal(f->status.process, job);
    assert_string_equal(contents(f->output), "done\n");
    assert_int_equal(is_own_group(group), *f->status.cgroup != '\0');
}

/* A launch shows its user only the checkpoint directory before it is let go, and leaves nothing where dropped. */
LAUNCH_TEST(test_begun)
{
    CLEANUP(free_ptr) char *checkpoints = xasprintf("%s/carma-%" PRIu64 ".ckpt", f->work, f->request.job);
    struct launch_begun begun;
    pid_t job = 0;

    command(f, "echo ran");
    f->request.launch = 1;
    snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
    for (int round = 0; round < 2; round++) {
        fail_if(launch_begin(&f->request, &begun, &trouble) < 0, trouble);
        while ((job = child_of(begun.shepherd)) == 0 && !gone(begun.shepherd))
            pause_ms(5);
        while (access(checkpoints, F_OK) < 0 || (!sleeps(job) && !gone(job))) /* until it has gone as far as it may */
            pause_ms(5);
        assert_int_equal(launch_read_status(f->run, &f->status, NULL), -ENOENT);
        assert_int_equal(access(f->output, F_OK), -1);
        if (round == 1)
            break;
        launch_drop(&begun, f->run);
        assert_true(gone(begun.shepherd) && gone(job));
        assert_int_equal(access(f->run, F_OK), -1);
        assert_int_equal(access(checkpoints, F_OK), -1);
    }
    launch_go(&begun);
    f->shepherd = begun.shepherd;
    f->ticks = begun.start_ticks;
    await_end(f, LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "ran\n");
}

/* The daemon's end is the end of a shepherd without a job. */
LAUNCH_TEST(test_prepared_ends_with_the_daemon)
{
    pid_t shepherd;
    int fds[2];

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe(fds), 0);
    pid_t daemon = fork();
    if (daemon == 0) {
        shepherd = wait_for_a_job(f);
        if (write(fds[1], &shepherd, sizeof shepherd) == sizeof shepherd)
            pause();
        _exit(1);
    }
    assert_int_equal(read(fds[0], &shepherd, sizeof shepherd), sizeof shepherd);
    pid_t job = job_that_waits(shepherd);
    CLEANUP(free_ptr) char *group = cgroup_of(job);
    assert_int_equal(kill(daemon, SIGKILL), 0);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);
    assert_int_equal(waitpid(shepherd, NULL, 0), shepherd); /* ours now */
    assert_true(gone(job));
    assert_true(!is_own_group(group) || cgroup_open(group) == -ENOENT);
    close(fds[0]);
    close(fds[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* Answers the first request of the kernel, and hears all others without a word. */
static void serve_nothing(int fuse)
{
    static char asked[1 << 17];
    const struct fuse_in_header *head = (const struct fuse_in_header *)asked;

    while (read(fuse, asked, sizeof asked) > 0) {
        struct {
            struct fuse_out_header head;
            struct fuse_init_out init;
        } answer = {.head = {.len = sizeof answer, .unique = head->unique},
                    .init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096}};
        if (head->opcode == FUSE_INIT && write(fuse, &answer, sizeof answer) < 0)
            _exit(1);
    }
    _exit(0);
}

/* A file system that never answers, as NFS with a server that is away; -1: this user, or this machine, cannot mount
 * one. From here on the test has its own mounts. */
static pid_t mount_what_hangs(const char *path)
{
    CLEANUP(close_fd) int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    CLEANUP(free_ptr) char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);

    if (fuse < 0 || mkdir(path, 0755) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("fuse", path, "fuse", 0, options) < 0)
        return -1;
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_nothing(fuse);
    }
    return server;
}

/* A process that no signal reaches keeps neither the job's state nor its GPUs: the launch has failed, in words. */
LAUNCH_TEST(test_start_that_hangs_in_the_kernel)
{
    CLEANUP(free_ptr) char *mount_point = xasprintf("%s/hangs", f->work);
    CLEANUP(free_ptr) char *directory = xasprintf("%s/inner", mount_point);
    pid_t server = mount_what_hangs(mount_point);

    if (server < 0) {
        print_message("skipped: nothing that hangs can be mounted here\n");
        return;
    }
    f->request.start_timeout_ns = 200 * NS_PER_MS;
    f->request.grace_ns = 100 * NS_PER_MS;
    f->request.directory = directory;
    command(f, "echo unreachable");
    int64_t began_ns = nodetime_monotonic_wall_ns();
    start(f);
    await_phase(f, LAUNCH_FAILED);
    assert_true(nodetime_monotonic_wall_ns() - began_ns >= 5 * NS_PER_SEC); /* it was waited for */
    assert_has(f->status.message,
               "the start took longer than the start_timeout of 0:00: it was entering the directory '");
    assert_has(f->status.message, "/hangs/inner'");
    assert_true(launch_alive(f->shepherd, f->ticks)); /* to reap it */
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    await_end(f, LAUNCH_FAILED);
}

RUN_LAUNCH_TESTS
