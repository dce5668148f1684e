/* The control group of a launch: real ones where this machine lets the test make them, the files' protocol anywhere. */
#include "launch_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

/* Before anything is held: skip() does not come back. */
static void skip_without_cgroups(void)
{
    char name[32];
    char *probe;

    snprintf(name, sizeof name, "test-%d", (int)getpid());
    probe = cgroup_make(name);
    if (!probe) {
        print_message("no control group can be made here\n");
        skip();
    }
    cgroup_remove(probe);
    free(probe);
}

/* The job runs in a group of its own; else there is nothing to test here. */
static void start_in_cgroup(struct fixture *f, const char *script)
{
    skip_without_cgroups();
    start_and_run(f, script);
    assert_true(*f->status.cgroup);
}

static char *directory_of(const char *group)
{
    CLEANUP(free_ptr) char *mountinfo = file_text("/proc/self/mountinfo");

    return cgroup_locate(mountinfo, group);
}

/* Groups that the job made itself go with its own; so does somebody else's process in it, which does not keep it. */
LAUNCH_TEST(test_own_group)
{
    CLEANUP(free_ptr) char *own = NULL, *shepherds = NULL, *jobs = NULL, *directory = NULL, *below = NULL;
    int status;

    start_in_cgroup(f, "sleep 100");
    own = cgroup_of(getpid());
    shepherds = cgroup_of(f->shepherd);
    jobs = cgroup_of(f->status.process);
    assert_string_equal(jobs, f->status.cgroup);
    assert_string_equal(shepherds, own); /* it is to survive the job's group */
    assert_true(cgroup_is_populated(f->status.cgroup));
    directory = directory_of(f->status.cgroup);
    below = xasprintf("%s/a/b", directory);
    assert_int_equal(file_make_dirs(below, 0755, NULL), 0);
    pid_t stranger = fork();
    if (stranger == 0) {
        cgroup_enter(f->status.cgroup);
        sleep(10);
        _exit(0);
    }
    for (int i = 0; i < 400; i++) {
        CLEANUP(free_ptr) char *group = cgroup_of(stranger);
        if (group && strcmp(group, f->status.cgroup) == 0)
            break;
        pause_ms(5);
    }
    stop(f, LAUNCH_ENDED);
    assert_int_equal(waitpid(stranger, &status, 0), stranger);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(access(directory, F_OK), -1); /* nothing stays behind */
}

/* Two hundred chains, each process of which forks the next and ends, and hears no SIGTERM. */
LAUNCH_TEST(test_runaway_forks)
{
    f->request.grace_ns = 50 * NS_PER_MS;
    start_in_cgroup(f, "echo 'trap \"\" TERM; sh hop & exit' >hop; i=0;"
                       "while [ $i -lt 200 ]; do sh hop; i=$((i + 1)); done; sleep 100");
    stop(f, LAUNCH_ENDED);
    assert_false(cgroup_is_populated(f->status.cgroup));
}

/* A process that is in no session of the job, has nothing of its environment and has lost its parent. */
LAUNCH_TEST(test_shepherd_killed)
{
    pid_t stray;
    int left = 1;

    start_in_cgroup(f, "(env -i PATH=\"$PATH\" setsid sh -c 'echo $$ >stray; exec sleep 100' &) ; sleep 100");
    stray = pid_of(f, "stray");
    CLEANUP(free_ptr) char *directory = directory_of(f->status.cgroup);
    assert_int_equal(kill(f->shepherd, SIGKILL), 0);
    assert_int_equal(waitpid(f->shepherd, NULL, 0), f->shepherd);
    for (int i = 0; i < 1000 && !gone(f->status.process); i++)
        pause_ms(5);
    assert_false(gone(stray));
    assert_int_equal(launch_read_status(f->run, &f->status, NULL), 0);
    for (int i = 0; i < 200 && (left = sweep(f)) > 0; i++)
        pause_ms(5);
    assert_int_equal(left, 0);
    assert_true(gone(stray));
    assert_int_equal(access(directory, F_OK), -1);
}

/* ---- The protocol of the files, in a directory that plays the hierarchy ---- */

static void put(const struct fixture *f, const char *file, const char *text)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", f->work, file);
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

LAUNCH_TEST(test_files)
{
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());
    CLEANUP(free_ptr) char *kill_file = xasprintf("%s/job/cgroup.kill", f->work);
    CLEANUP(free_ptr) char *procs = xasprintf("%s/job/cgroup.procs", f->work);
    CLEANUP(free_ptr) char *job = xasprintf("%s/job", f->work);

    if (!own)
        skip(); /* a kernel without version 2 */
    setenv("CARMA_CGROUP_ROOT", f->work, 1);
    assert_int_equal(cgroup_kill("/job"), -ENOENT); /* no such group */
    assert_false(cgroup_is_populated("/job"));
    assert_int_equal(cgroup_enter("/job"), -ENOENT);
    assert_int_equal(mkdir(job, 0755), 0);
    assert_int_equal(cgroup_kill("/job"), -ENOENT); /* a kernel without cgroup.kill */
    assert_int_equal(access(kill_file, F_OK), -1);
    put(f, "job/cgroup.kill", "");
    put(f, "job/cgroup.procs", "");
    put(f, "job/cgroup.events", "populated 1\nfrozen 0\n");
    assert_true(cgroup_is_populated("/job"));
    assert_int_equal(cgroup_enter("/job"), 0);
    assert_string_equal(contents(procs), "0");
    assert_int_equal(cgroup_kill("/job"), 0);
    assert_string_equal(contents(kill_file), "1");
    put(f, "job/cgroup.events", "populated 0\nfrozen 0\n");
    assert_false(cgroup_is_populated("/job"));
    put(f, "cgroup.kill", ""); /* its own, and those above that, would end the caller */
    assert_int_equal(cgroup_kill("/"), -EPERM);
    assert_int_equal(cgroup_kill(own), -EPERM);
    CLEANUP(free_ptr)
    char *made = cgroup_make("shepherd-1-1"); /* a directory made here has no cgroup.procs: it is not a group */
    assert_null(made);
    unsetenv("CARMA_CGROUP_ROOT");
}

LAUNCH_TEST(test_locate)
{
    static const char pure[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    static const char hybrid[] = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                                 "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                 "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    static const char part[] = "30 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    static const struct {
        const char *mountinfo;
        const char *path;
        const char *directory;
    } rows[] = {
        {pure, "/", "/sys/fs/cgroup"},
        {pure, "/system.slice/carma.service/job-1", "/sys/fs/cgroup/system.slice/carma.service/job-1"},
        {hybrid, "/", "/sys/fs/cgroup/unified"},
        {hybrid, "/carma/job-1", "/sys/fs/cgroup/unified/carma/job-1"},
        {part, "/docker/ab/job-1", "/sys/fs/cgroup/job-1"},
        {part, "/docker/ab", "/sys/fs/cgroup"},
        {part, "/docker/abc", NULL}, /* not to be seen from here */
        {pure, "/../other", NULL},
        {"", "/", NULL},
        {"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "/", NULL},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(free_ptr) char *directory = cgroup_locate(rows[i].mountinfo, rows[i].path);
        if (!directory != !rows[i].directory || (directory && strcmp(directory, rows[i].directory) != 0))
            fail_msg("%s: %s", rows[i].path, directory ? directory : "nowhere");
    }
}

static void make_directory(const struct fixture *f, const char *name)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", f->work, name);

    assert_int_equal(mkdir(path, 0700), 0);
}

static void expect_base(const char *own, const char *expected)
{
    CLEANUP(free_ptr) char *base = cgroup_base(own);

    assert_string_equal(base, expected);
}

LAUNCH_TEST(test_base)
{
    setenv("CARMA_CGROUP_ROOT", f->work, 1);
    expect_base("/", "/carma");
    expect_base("/carmad.service", "/carmad.service");
    make_directory(f, "carma-jobs.service");
    expect_base("/", "/carma");
    expect_base("/carmad.service", "/carma-jobs.service");
    expect_base("/a.slice/carmad.service", "/a.slice/carmad.service");
    make_directory(f, "a.slice");
    make_directory(f, "a.slice/carma-jobs.service");
    expect_base("/a.slice/carmad.service", "/a.slice/carma-jobs.service");
    unsetenv("CARMA_CGROUP_ROOT");
}

/* Each process of the chain forks the next and ends, as SIGTERM would have it do: a round through them is late. */
LAUNCH_TEST(test_none_forks_meanwhile)
{
    f->request.grace_ns = 600 * NS_PER_SEC; /* all of them hear SIGTERM, so this is not waited for */
    start_in_cgroup(f, "echo 'sh hop & exit' >hop; for i in 1 2 3 4 5; do sh hop; done; echo ready; sleep 100");
    await_line(f->output);
    stop(f, LAUNCH_ENDED);
    assert_int_equal(f->status.signal, SIGTERM);
}

/* A signal that kills reaches a frozen process; one that it handles does not. */
LAUNCH_TEST(test_handlers_run)
{
    f->request.grace_ns = 600 * NS_PER_SEC;
    start_in_cgroup(f, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done");
    await_line(f->output);
    stop(f, LAUNCH_ENDED);
    assert_int_equal(f->status.exit_status, 7);
}

static pid_t ended_child(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static char *make_group_of(int job, pid_t shepherd)
{
    CLEANUP(free_ptr) char *name = xasprintf("shepherd-%d-%d", (int)shepherd, job);
    char *group = cgroup_make(name);

    assert_non_null(group);
    return group;
}

/* The remains of a shepherd killed before its first status; not files that a living one has just made, or in use. */
LAUNCH_TEST(test_left_groups)
{
    bool entered;

    skip_without_cgroups();
    CLEANUP(free_ptr) char *left = make_group_of(1, ended_child());
    CLEANUP(free_ptr) char *new = make_group_of(2, getpid());
    CLEANUP(free_ptr) char *used = make_group_of(3, ended_child());
    pid_t user = cgroup_fork(used, &entered);
    if (user == 0) {
        pause();
        _exit(0);
    }
    cgroup_remove_left();
    assert_int_equal(cgroup_open(left), -ENOENT);
    assert_int_equal(close(cgroup_open(new)), 0);
    assert_true(cgroup_is_populated(used));
    kill(user, SIGKILL);
    assert_int_equal(waitpid(user, NULL, 0), user);
    cgroup_remove(new);
    cgroup_remove(used);
}

/* Memory that is not accounted to the job's group is to one above it. */
LAUNCH_TEST(test_oom_kills_above)
{
    CLEANUP(free_ptr) char *deep = xasprintf("%s/a/b", f->work);

    assert_int_equal(file_make_dirs(deep, 0755, NULL), 0);
    setenv("CARMA_CGROUP_ROOT", f->work, 1);
    assert_true(cgroup_oom_kills("/a/b") == -1);
    put(f, "memory.events", "low 0\noom 1\noom_kill 3\n");
    assert_true(cgroup_oom_kills("/a/b") == 3);
    put(f, "a/memory.events", "low 0\noom 1\noom_kill 2\n");
    assert_true(cgroup_oom_kills("/a/b") == 2);
    put(f, "a/b/memory.events", "oom_kill 1\n");
    assert_true(cgroup_oom_kills("/a/b") == 1);
    unsetenv("CARMA_CGROUP_ROOT");
}

/* The files of a group that has all controllers, and of one that has none. */
LAUNCH_TEST(test_limits)
{
    static const struct {
        const char *file;
        const char *value;
    } rows[] = {{"memory.max", "8589934592"}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"},
                {"pids.max", "300"},          {"cpu.weight", "50"},     {"cpu.max", "400000 100000"}};
    const struct cgroup_limits limits = {.memory_bytes = 8 * GIB, .pids = 300, .cpus = 4, .cpu_weight = 50}, none = {0};
    CLEANUP(free_ptr) char *job = xasprintf("%s/job", f->work);

    assert_int_equal(mkdir(job, 0755), 0);
    setenv("CARMA_CGROUP_ROOT", f->work, 1);
    assert_int_equal(cgroup_limit("/job", &limits, &trouble), 0); /* the daemon has told that it has no controllers */
    assert_false(cgroup_counts_memory("/job"));
    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(free_ptr) char *file = xasprintf("job/%s", rows[i].file);
        put(f, file, "");
    }
    assert_int_equal(cgroup_limit("/job", &none, &trouble), 0);
    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", job, rows[i].file);
        assert_string_equal(contents(path), "");
    }
    assert_int_equal(cgroup_limit("/job", &limits, &trouble), 0);
    for (size_t i = 0; i < array_size(rows); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", job, rows[i].file);
        assert_string_equal(contents(path), rows[i].value);
    }
    put(f, "job/memory.events", "oom_kill 0\n");
    assert_true(cgroup_counts_memory("/job"));
    unsetenv("CARMA_CGROUP_ROOT");
    assert_true(cgroup_has_word("cpuset cpu io\n", "cpu") && cgroup_has_word("io cpu\n", "cpu") &&
                cgroup_has_word("cpu", "cpu"));
    assert_false(cgroup_has_word("cpuset io\n", "cpu") || cgroup_has_word("acpu\n", "cpu") ||
                 cgroup_has_word(NULL, "cpu"));
}

/* Where this machine's version 2 counts memory: a job that takes more than it may is killed as a whole, and told so. */
LAUNCH_TEST(test_out_of_memory)
{
    struct error why;

    if (!cgroup_prepare(&why)) {
        print_message("%s\n", why.text);
        skip();
    }
    f->request.limits = (struct cgroup_limits){.memory_bytes = 64 * MIB, .pids = 50, .cpus = 1, .cpu_weight = 10};
    assert_ends(f, "python3 -c 'bytearray(300 << 20)'; echo unreachable; exit 3", EXIT_HOST_OOM);
    assert_string_equal(contents(f->output), "");
    assert_int_equal(f->status.signal, SIGKILL);
    assert_true(f->status.host_oom_kill && f->status.host_oom_own);
    assert_string_equal(f->status.message,
                        "out of host memory: the kernel killed it, its limit is 64 MiB (--memory, job_memory_max)");
    run(f, "i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i + 1)); done; exit 0", LAUNCH_ENDED);
    assert_int_not_equal(f->status.exit_status, 0); /* fork: Resource temporarily unavailable */
    run(f,
        "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max /sys/fs/cgroup$(sed -n s/^0:://p "
        "/proc/self/cgroup)/cpu.weight",
        LAUNCH_ENDED);
    assert_string_equal(contents(f->output), "100000 100000\n10\n");
}

/* A process reads the facts it needs from /proc/self/mountinfo once; a shepherd is told. */
LAUNCH_TEST(test_place)
{
    const struct cgroup_place *place = cgroup_place();
    CLEANUP(free_ptr) char *own = cgroup_of(getpid());

    for (const char *line = place->mounts; *line; line = strchr(line, '\n') + 1)
        assert_non_null(strstr(line, " - cgroup2 "));
    assert_ptr_equal(cgroup_place()->mounts, place->mounts);
    if (own) {
        CLEANUP(free_ptr) char *base = cgroup_base(own);
        assert_string_equal(place->base, base);
    }
}

/* From here on clone3() is not there, as on a kernel or in a container without it. So this has to be the last. */
LAUNCH_TEST(test_group_is_entered_late)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = array_size(filter), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        skip();
    start_in_cgroup(f, "sleep 100");
    CLEANUP(free_ptr) char *jobs = cgroup_of(f->status.process);
    assert_string_equal(jobs, f->status.cgroup);
    stop(f, LAUNCH_ENDED);
}

RUN_LAUNCH_TESTS
