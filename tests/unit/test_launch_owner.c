/* The owner of a process: of real launches with processes that fork, execute, are orphaned and change their session. */
#include "launch_fixture.h"

#include "launch/lease.h"
#include "launch/owner.h"

static struct owner_launch launch_of(const struct fixture *f)
{
    return (struct owner_launch){.job = f->status.job,
                                 .shepherd = f->shepherd,
                                 .shepherd_start_ticks = f->ticks,
                                 .process = f->status.process,
                                 .process_start_ticks = f->status.process_start_ticks,
                                 .cgroup = f->status.cgroup};
}

static const char family[] = "sleep 300 & echo $! >forked\n"
                             "sh -c 'echo $$ >executed; exec sleep 300' &\n"
                             "(sh -c 'echo $$ >orphan; exec sleep 300' &)\n"
                             "(setsid sh -c 'echo $$ >session; exec sleep 300' &)\n"
                             "wait";

LAUNCH_TEST(test_family)
{
    static const char *const names[] = {"forked", "executed", "orphan", "session"};
    struct owner_launch launches[2] = {{.job = 41, .shepherd = 1, .shepherd_start_ticks = 1}};
    struct owner_process process;

    start_and_run(f, family);
    launches[1] = launch_of(f);
    assert_ptr_equal(owner_find(f->shepherd, launches, 2), &launches[1]);
    assert_ptr_equal(owner_find(f->status.process, launches, 2), &launches[1]);
    for (size_t i = 0; i < array_size(names); i++) {
        if (owner_find(pid_of(f, names[i]), launches, 2) != &launches[1])
            fail_msg("%s: not the job's", names[i]);
    }
    assert_null(owner_find(getpid(), launches, 2)); /* the shepherd's parent */
    assert_null(owner_find(1, launches, 2));
    assert_int_equal(owner_read(pid_of(f, "forked"), &process), 0);
    assert_int_equal(process.uid, geteuid());
    assert_string_equal(process.command, "sleep");
    launches[1].shepherd_start_ticks++; /* a shepherd that has its pid from an earlier one */
    launches[1].process = 0;
    launches[1].cgroup = "";
    assert_null(owner_find(pid_of(f, "orphan"), launches, 2));
    assert_null(owner_find(f->status.process, launches, 2));
    stop(f, LAUNCH_ENDED);
    launches[1] = launch_of(f);
    assert_null(owner_find(pid_of(f, "forked"), launches, 2));
    assert_true(owner_read(pid_of(f, "forked"), &process) < 0);
}

/* Orphans of a shepherd that was killed go to init: those of the job's session are still known. */
LAUNCH_TEST(test_shepherd_killed)
{
    pid_t forked, session;

    start_and_run(f, family);
    forked = pid_of(f, "forked");
    session = pid_of(f, "session");
    struct owner_launch launch = launch_of(f);
    kill(f->shepherd, SIGKILL);
    waitpid(f->shepherd, NULL, 0);
    assert_ptr_equal(owner_find(forked, &launch, 1), &launch);
    if (*launch.cgroup) /* which alone tells of that */
        assert_ptr_equal(owner_find(session, &launch, 1), &launch);
    launch.cgroup = "";
    assert_null(owner_find(session, &launch, 1));
    launch.process_start_ticks++; /* another session that was given the number */
    assert_null(owner_find(f->status.process, &launch, 1));
    for (int i = 0; i < PATIENCE_MS / 5 && sweep(f) > 0; i++)
        pause_ms(5);
}

LAUNCH_TEST(test_gone)
{
    struct owner_launch launch = {.job = 1, .shepherd = getpid()};
    struct proc_stat stat;
    struct owner_process process;

    assert_int_equal(proc_read_stat(getpid(), &stat), 0);
    launch.shepherd_start_ticks = stat.start_ticks;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_ptr_equal(owner_find(child, &launch, 1), &launch);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_null(owner_find(child, &launch, 1));
    assert_true(owner_read(child, &process) < 0);
    assert_null(owner_find(0, &launch, 1));
    assert_null(owner_find(-1, &launch, 1));
    assert_null(owner_find(getpid(), &launch, 0));
}

struct row {
    const char *what;
    struct owner_link chain[4];
    pid_t session;
    const char *cgroup;
    uint64_t job; /* whose it is; 0: nobody's */
};

static void judge(const struct row *rows, size_t count, const struct owner_launch *launches, size_t launch_count)
{
    for (size_t i = 0; i < count; i++) {
        struct owner_link chain[4];
        CLEANUP(free_ptr) char *cgroup = xstrdup(rows[i].cgroup);
        struct owner_facts facts = {.chain = chain, .session = rows[i].session, .cgroup = cgroup};
        memcpy(chain, rows[i].chain, sizeof chain);
        while (facts.count < 4 && chain[facts.count].pid)
            facts.count++;
        const struct owner_launch *found = owner_judge(&facts, launches, launch_count);
        if ((found ? found->job : 0) != rows[i].job)
            fail_msg("%s: job %d", rows[i].what, found ? (int)found->job : 0);
    }
}

/* Cases that real processes cannot be made to show here: control groups, numbers that come again. */
LAUNCH_TEST(test_judge)
{
    static const struct owner_launch launches[] = {
        {.job = 1, .shepherd = 100, .shepherd_start_ticks = 50, .process = 101, .process_start_ticks = 51},
        {.job = 2,
         .shepherd = 200,
         .shepherd_start_ticks = 60,
         .process = 201,
         .process_start_ticks = 61,
         .cgroup = "/carma/job-2"},
        {.job = 3, .shepherd = 300, .shepherd_start_ticks = 70, .cgroup = ""},
    };
    static const struct row rows[] = {
        {"its control group", {{900, 99}, {1, 0}}, 900, "/carma/job-2", 2},
        {"one below it", {{900, 99}, {1, 0}}, 900, "/carma/job-2/worker", 2},
        {"another's, whose name begins the same", {{900, 99}, {1, 0}}, 900, "/carma/job-22", 0},
        {"in its control group, however old", {{900, 59}, {1, 0}}, 900, "/carma/job-2", 2},
        {"the control group says more than the tree", {{900, 99}, {100, 50}, {1, 0}}, 101, "/carma/job-2", 2},
        {"a descendant", {{900, 99}, {800, 98}, {100, 50}, {1, 0}}, 900, NULL, 1},
        {"a launch without control group does not have all", {{900, 99}, {1, 0}}, 900, "/", 0},
        {"a later process with the shepherd's pid", {{900, 99}, {100, 98}, {1, 0}}, 900, "/", 0},
        {"the session, whose first process is gone", {{900, 99}, {1, 0}}, 101, "/", 1},
        {"the session's number, and its first process is another", {{900, 99}, {101, 98}, {1, 0}}, 101, "/", 0},
        {"of that session, and older than it", {{900, 50}, {1, 0}}, 101, "/", 0},
        {"no process known: no session", {{900, 99}, {1, 0}}, 0, "/", 0},
    };

    judge(rows, array_size(rows), launches, array_size(launches));
}

/* Slurm forks a step's task before its plugin asks for the lease. */
LAUNCH_TEST(test_lease)
{
    struct lease_task tasks[] = {{500, 7000}};
    char cgroup_of_step[] = "/slurm/job_9";
    struct lease_step steps[] = {{.name = "batch", .cgroup = cgroup_of_step},
                                 {.name = "0", .tasks = tasks, .task_count = 1}};
    const struct lease lease = {.steps = steps, .count = 2};
    const struct owner_launch launches[] = {
        {.job = 1, .shepherd = 300, .shepherd_start_ticks = 9000, .cgroup = "/carma/1", .lease = &lease}};
    static const struct row rows[] = {
        {"older, in its own group", {{600, 100}, {1, 1}}, 0, "/carma/1", 1},
        {"older, in a group that was named for it", {{600, 100}, {1, 1}}, 0, "/slurm/job_9/step_0", 1},
        {"in another job's group", {{600, 100}, {1, 1}}, 0, "/slurm/job_90", 0},
        {"a task", {{500, 7000}, {1, 1}}, 0, "/", 1},
        {"a child of a task", {{601, 9500}, {500, 7000}, {1, 1}}, 0, "/", 1},
        {"a later process with a task's pid", {{500, 9500}, {1, 1}}, 0, "/", 0},
        {"its shepherd's parent", {{1, 1}}, 0, "/", 0},
    };

    judge(rows, array_size(rows), launches, array_size(launches));
}

LAUNCH_TEST(test_cgroup)
{
    CLEANUP(free_ptr) char *pure = cgroup_parse("0::/user.slice/a b.scope\n");
    CLEANUP(free_ptr) char *hybrid = cgroup_parse("9:name=systemd:/x\n4:memory:/y\n0::/\n");
    CLEANUP(free_ptr) char *old = cgroup_parse("9:name=systemd:/x\n4:memory:/0::/y");
    CLEANUP(free_ptr) char *path = xasprintf("%s/memory.events", f->work);
    static const struct {
        const char *text;
        int64_t kills;
    } rows[] = {
        {"low 0\nhigh 0\nmax 17\noom 3\noom_kill 2\noom_group_kill 1\n", 2},
        {"oom_kill 9\n", 9},
        {"oom 4\noom_group_kill 1\n", -1},
        {"oom_kill\n", -1},
        {"oom_kill -4\n", -1},
        {"", -1},
    };

    assert_string_equal(pure, "/user.slice/a b.scope");
    assert_string_equal(hybrid, "/");
    assert_null(old);
    assert_true(cgroup_is_within("/a/b", "/a") && cgroup_is_within("/a", "/a") && cgroup_is_within("/a", "/a/"));
    assert_true(cgroup_is_within("/a", "/"));
    assert_false(cgroup_is_within("/ab", "/a") || cgroup_is_within("/", "/a"));
    setenv("CARMA_CGROUP_ROOT", f->root, 1);
    assert_true(cgroup_oom_kills("/work") == -1);
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(file_write_atomic(path, rows[i].text, strlen(rows[i].text), 0600, NULL), 0);
        if (cgroup_oom_kills("/work") != rows[i].kills)
            fail_msg("%s: %d", rows[i].text, (int)cgroup_oom_kills("/work"));
    }
    unsetenv("CARMA_CGROUP_ROOT");
}

RUN_LAUNCH_TESTS
