/* The file of a lease, and its shepherd: it starts nothing, and takes the end of others' processes from the file. */
#include "launch_fixture.h"

#include "launch/lease.h"

static void add(struct lease *lease, const char *step, const char *cgroup, pid_t pid)
{
    struct lease_step *added = lease_step(lease, step);

    added->cgroup = cgroup ? xstrdup(cgroup) : NULL;
    if (pid)
        assert_true(lease_add_task(lease, added, (struct lease_task){pid, 77, pid + 1, 78}));
}

LAUNCH_TEST(test_file)
{
    CLEANUP(lease_release) struct lease lease = {0}, read = {0};

    assert_int_equal(lease_read(f->work, &read, NULL), 0); /* nobody has come */
    assert_int_equal(read.count, 0);
    add(&lease, "batch", "/slurm/job_1", 0);
    add(&lease, "0", NULL, 12);
    add(&lease, "0", NULL, 12);
    add(&lease, "0", NULL, 13);
    lease.ended = true;
    lease.exit_status = 3;
    lease.output = xstrdup("one\nstep 7\nend 0 0 0\n");
    assert_int_equal(lease_write(f->work, &lease, NULL), 0);
    assert_int_equal(lease_read(f->work, &read, NULL), 0);
    assert_int_equal(read.count, 2);
    assert_string_equal(read.steps[0].cgroup, "/slurm/job_1");
    assert_null(read.steps[1].cgroup);
    assert_int_equal(read.steps[1].task_count, 2);
    assert_int_equal(read.steps[1].tasks[1].pid, 13);
    assert_int_equal(read.steps[1].tasks[1].start_ticks, 77);
    assert_int_equal(read.steps[1].tasks[1].parent, 14);
    assert_int_equal(read.steps[1].tasks[1].parent_start_ticks, 78);
    assert_true(read.ended && !read.stopped);
    assert_int_equal(read.exit_status, 3);
    assert_string_equal(read.output, lease.output); /* whatever the user wrote */
}

static const char *const nonsense[] = {"",
                                       "carma-lease 2\n",
                                       "carma-lease 1\nx\n",
                                       "carma-lease 1\ntask 1 2\n",
                                       "carma-lease 1\nstep \n",
                                       "carma-lease 1\nstep 0123456789012345\n",
                                       "carma-lease 1\nstep 0\ncgroup x\n",
                                       "carma-lease 1\nstep 0\ntask 0 5\n",
                                       "carma-lease 1\nend 1\n",
                                       "carma-lease 1\nend 1 0 0\nend 0 0 0\n"};

EACH_ROW(LAUNCH_TEST, test_nonsense, nonsense)
{
    CLEANUP(lease_release) struct lease lease = {0};
    if (lease_parse("x", *row, strlen(*row), &lease, NULL) != -EINVAL)
        fail_msg("'%s' is taken", *row);
}

RUN_LAUNCH_TESTS
