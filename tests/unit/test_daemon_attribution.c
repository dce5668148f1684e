/* The owners of a GPU's memory, and when they are unknown. */
#include "unit.h"

#include "core/core.h"
#include "daemon/node/attribution.h"
#include "daemon/node/claim.h"

#define HIDDEN_PID 0x7ffffff0 /* beyond the kernel's largest pid */

/* Children that only wait: the processes on the GPU. The first `own` are job 1's, then as many job 2's. */
static pid_t children[4];
static size_t own, asked;
static pid_t server;

static uint64_t owner_of(const void *user, pid_t pid)
{
    assert_string_equal(user, "user");
    asked++;
    if (pid == server)
        return ATTRIBUTION_MPS_SERVER;
    for (size_t i = 0; i < array_size(children); i++)
        if (children[i] == pid)
            return i < own ? 1 : i < 2 * own ? 2 : 0;
    return 0;
}

static pid_t wait_for_ever(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* What is read of GPU 0, and what becomes of it. */
static struct gpu_reading reading;
static struct attributor *attributor;
static struct attribution result;

AROUND(setup)
{
    for (size_t i = 0; i < array_size(children); i++)
        children[i] = wait_for_ever();
    own = 1;
    asked = 0;
    reading = (struct gpu_reading){.used_bytes = 20 * GIB};
    attributor = attributor_new(owner_of, "user");
}

AROUND(teardown)
{
    for (size_t i = 0; i < array_size(children); i++)
        end(children[i]);
    attributor_free(attributor);
}

static struct job jobs[] = {{.id = 1}, {.id = 2}};

static struct gpu gpu_with(uint32_t residents)
{
    static struct job *list[] = {&jobs[0], &jobs[1]};

    return (struct gpu){.total_bytes = 80 * GIB, .residents = list, .resident_count = residents};
}

static void list(pid_t pid, int64_t used_bytes)
{
    reading.valid |= GPU_HAS_MEMORY | GPU_HAS_PROCESSES;
    reading.processes[reading.process_count++] = (struct gpu_process){.pid = pid, .used_bytes = used_bytes};
}

static void judge(const struct gpu *gpu)
{
    attributor_judge(attributor, gpu, &reading, &result);
}

static void begin_and_judge(const struct gpu *gpu)
{
    attributor_begin(attributor);
    judge(gpu);
}

static void assert_why(const struct gpu *gpu, const char *what)
{
    judge(gpu);
    assert_true(result.unmanaged_bytes == -1);
    assert_has(result.why, what);
}

#define ATTRIBUTION_TEST(name) TEST_BETWEEN(name, setup, teardown)

ATTRIBUTION_TEST(test_shares)
{
    struct gpu gpu = gpu_with(2);

    list(children[0], 4 * GIB);
    list(children[1], 3 * GIB);
    list(children[2], 5 * GIB);
    begin_and_judge(&gpu);
    assert_string_equal(result.why, "");
    assert_true(attribution_of(&result, 1) == 4 * GIB);
    assert_true(attribution_of(&result, 2) == 3 * GIB);
    assert_true(attribution_of(&result, 3) == 0);
    assert_true(result.unmanaged_bytes == 13 * GIB); /* memory without a listed process included */
    assert_int_equal(result.unmanaged_count, 1);
    assert_int_equal(result.unmanaged[0].pid, children[2]);
    assert_int_equal(result.unmanaged[0].uid, geteuid());
    assert_true(*result.unmanaged[0].command);
    assert_true(result.unmanaged[0].used_bytes == 5 * GIB);
    own = 2; /* both processes of one job; and a process known is not asked for again */
    begin_and_judge(&gpu);
    assert_int_equal(asked, 3);
    reading.used_bytes = 6 * GIB; /* memory was read before the processes had ended: never below none */
    judge(&gpu);
    assert_true(result.unmanaged_bytes == 0);
}

ATTRIBUTION_TEST(test_several_processes)
{
    struct gpu gpu = gpu_with(1);

    own = 2;
    list(children[0], 4 * GIB);
    list(children[1], 3 * GIB);
    begin_and_judge(&gpu);
    assert_true(attribution_of(&result, 1) == 7 * GIB);
    assert_true(result.unmanaged_bytes == 13 * GIB);
    reading.processes[1].used_bytes = -1;
    assert_why(&gpu, "job 1");
    assert_true(attribution_of(&result, 1) == -1);
}

/* The memory of our MPS server is not unmanaged, and jobs cannot have it. */
ATTRIBUTION_TEST(test_mps_server)
{
    struct gpu gpu = gpu_with(1);

    server = children[3];
    list(children[0], 4 * GIB);
    list(server, GIB / 2);
    begin_and_judge(&gpu);
    assert_true(result.mps_server_bytes == GIB / 2);
    assert_true(result.unmanaged_bytes == 16 * GIB);
    assert_int_equal(result.unmanaged_count, 0);
    assert_int_equal(result.share_count, 1);
    list(children[2], -1); /* unmanaged memory may be hidden: memory beside the jobs' is still known */
    begin_and_judge(&gpu);
    server = 0;
    assert_true(result.unmanaged_bytes == 16 * GIB);
    assert_true(result.unmanaged[0].used_bytes == -1);
}

/* Just ended: its memory is counted as its owner's or a stranger's for a moment. Listed again: it is not from here. */
ATTRIBUTION_TEST(test_processes_hidden)
{
    struct gpu gpu = gpu_with(1);

    list(HIDDEN_PID, 4 * GIB);
    list(children[0], 1 * GIB);
    begin_and_judge(&gpu);
    assert_true(result.unmanaged_bytes == 19 * GIB);
    end(children[0]);
    for (int i = 0; i < 2; i++) {
        attributor_begin(attributor);
        assert_why(&gpu, "PID namespace");
        assert_true(attribution_of(&result, 1) == 1 * GIB); /* the one that was seen is remembered */
    }
    reading.process_count = 0;
    list(children[0], 1 * GIB);
    begin_and_judge(&gpu);
    assert_true(result.unmanaged_bytes == 19 * GIB);
    reading.process_count = 0;
    begin_and_judge(&gpu);
    attributor_begin(attributor); /* forgets it */
    list(children[0], 1 * GIB);
    judge(&gpu);
    assert_true(attribution_of(&result, 1) == 0);
    children[0] = wait_for_ever();
}

/* It counts as used by others than the jobs that were given the GPU, by the name of its job; and it is news once. */
ATTRIBUTION_TEST(test_on_a_gpu_that_was_not_given)
{
    struct gpu gpu = gpu_with(1), other = gpu_with(1);

    other.number = 1;
    list(children[0], 4 * GIB);
    list(children[1], 9 * GIB); /* job 2's */
    for (int i = 0; i < 2; i++) {
        begin_and_judge(&gpu);
        assert_string_equal(result.why, "");
        assert_true(result.unmanaged_bytes == 16 * GIB);
        assert_int_equal(result.unmanaged_count, 1);
        assert_int_equal(result.unmanaged[0].job, 2);
        assert_int_equal(result.unmanaged[0].pid, children[1]);
        assert_true(result.unmanaged[0].used_bytes == 9 * GIB);
        assert_int_equal(result.unmanaged[0].news, i == 0);
        judge(&other);
        assert_int_equal(result.unmanaged[0].news, i == 0);
    }
    gpu = gpu_with(2);
    judge(&gpu);
    assert_int_equal(result.unmanaged_count, 0);
}

ATTRIBUTION_TEST(test_lists_that_are_not)
{
    struct gpu busy = gpu_with(1), empty = gpu_with(0);

    attributor_begin(attributor);
    assert_why(&busy, "does not tell the memory in use");
    reading.valid = GPU_HAS_MEMORY;
    assert_why(&busy, "does not list processes");
    reading.valid = GPU_HAS_MEMORY | GPU_HAS_PROCESSES;
    assert_why(&busy, "lists no process");
    judge(&empty); /* nobody of ours is there */
    assert_true(result.unmanaged_bytes == 20 * GIB);
    reading.used_bytes = 100 * MIB; /* a job that has not come to the GPU yet, and the driver's own memory */
    judge(&busy);
    assert_true(result.unmanaged_bytes == 100 * MIB);
    for (int i = 0; i < GPU_MAX_PROCESSES; i++)
        list(children[2], 1);
    judge(&busy);
    assert_string_equal(result.why, "");
    reading.process_count++;
    assert_why(&busy, "only 128 are listed");
}

/* Of a node of uid 1 and gid 2, as the kernel would decide, its first matching class alone. */
static const struct {
    mode_t mode;
    uid_t uid;
    gid_t group;
    bool may;
} who_may_use_a_node[] = {{0666, 7, 7, true},  {0660, 7, 7, false}, {0660, 7, 2, true},  {0660, 1, 7, true},
                          {0606, 7, 2, false}, {0066, 1, 2, false}, {0664, 7, 7, false}, {0640, 7, 2, false}};

EACH_ROW(TEST, test_who_may_use_a_node, who_may_use_a_node)
{
    const struct stat node = {.st_mode = S_IFCHR | row->mode, .st_uid = 1, .st_gid = 2};
    const gid_t groups[] = {9, row->group};
    assert_int_equal(claim_may_use(&node, row->uid, groups, array_size(groups)), row->may);
}
