/* The state file: the node's processes, their memory, and the remains of those that die. */
#include "unit.h"

#include "vnode/domain.h"
#include "domain_clients.h"
#include "vnode_a100.h"

static struct node_slot wish(uint32_t gpu)
{
    return (struct node_slot){.use_count = 1, .uses = {{.gpu = gpu, .activity = 0.5}}};
}

/* A child that holds `bytes` on GPU 0 and sleeps until it is killed. */
static pid_t holder(int64_t bytes)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct node_slot wanted = wish(0);
        static struct shortage shortage;
        struct attachment attachment;

        if (attach_begin(&attachment, &f.node, &wanted, NULL) < 0 ||
            attach_hold(&attachment, &bytes, &shortage, NULL) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    for (int i = 0; i < 500 && fixture_used(&f, 0) < bytes; i++)
        sleep_wall_ms(2);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST_BETWEEN(memory_is_limited, setup, teardown)
{
    struct node_slot wanted = wish(0);
    static struct shortage shortage;
    struct attachment attachment;
    pid_t other = holder(30 * GIB);
    int64_t usable = INT64_C(40536) * MIB, bytes = usable - 30 * GIB;

    assert_int_equal(attach_begin(&attachment, &f.node, &wanted, &trouble), 0);
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, &trouble), 0);
    bytes++;
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, &trouble), -ENOMEM);
    assert_int_equal(shortage.wanted_bytes, 1);
    assert_int_equal(shortage.free_bytes, 0);
    assert_int_equal(shortage.held_bytes, usable - 30 * GIB);
    assert_int_equal(shortage.total_bytes, usable);
    assert_int_equal(shortage.neighbour_count, 1);
    assert_int_equal(shortage.neighbours[0].pid, other);
    assert_int_equal(shortage.neighbours[0].bytes, 30 * GIB);
    assert_int_equal(fixture_used(&f, 0), usable);
    kill(other, SIGKILL); /* a zombie, not waited for yet: gone all the same */
    for (int i = 0; i < 1000 && fixture_used(&f, 0) >= usable; i++)
        sleep_wall_ms(2);
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, &trouble), 0); /* the memory of the dead is free */
    waitpid(other, NULL, 0);
    attach_end(&attachment);
    assert_int_equal(fixture_used(&f, 0), 0);
}

/* As a CUDA process under MPS is told of: what a job's processes are left with that see some of its GPUs. */
TEST_BETWEEN(memory_limits_of_mps_clients, setup, teardown)
{
    struct node_file *file = f.node.file;
    CLEANUP(free_ptr) char *by_uuid = xasprintf("%s=12G,%s=3073M", file->gpus[0].uuid, file->gpus[1].uuid);
    const struct {
        const char *driver, *value, *visible;
        int64_t limits[2];
    } rows[] = {
        {"555.58.02", "0=12G,1=3073M", "0,1", {12 * GIB, 3073 * MIB}},
        {"555.58.02", "0=12G,1=3073M", "1,0", {12 * GIB, 3073 * MIB}}, /* by the process's own numbers */
        {"555.58.02", "0=12G,1=3073M", "0", {0, 0}},                   /* one entry too many: none counts */
        {"555.58.02", "0=12G", "1", {12 * GIB, 0}},
        {"555.58.02", "0=12G", "0,1", {12 * GIB, 0}},
        {"555.58.02", by_uuid, "0,1", {0, 0}}, /* not understood */
        {"555.58.02", "nonsense", "0,1", {0, 0}},
        {"555.58.02", NULL, "0,1", {0, 0}},
        {"615.71.09", "0=12G,1=3073M", "0,1", {12 * GIB, 3073 * MIB}},
        {"615.71.09", by_uuid, "0,1", {12 * GIB, 3073 * MIB}},
        {"615.71.09", by_uuid, "1,0", {3073 * MIB, 12 * GIB}},
        {"615.71.09", by_uuid, "1", {0, 0}},
    };
    struct node_slot wanted = wish(0);
    static struct shortage shortage;
    CLEANUP(attach_end) struct attachment attachment;
    int64_t bytes = 3 * GIB;

    for (size_t i = 0; i < array_size(rows); i++) {
        struct place places[NODE_MAX_GPUS];
        int64_t limits[NODE_MAX_GPUS];
        uint32_t count = attach_visible(file, NULL, rows[i].visible, places);

        strcpy(file->driver_version, rows[i].driver);
        attach_memory_limits(file, rows[i].value, places, count, limits);
        if (limits[0] != rows[i].limits[0] || limits[1] != rows[i].limits[1])
            fail_msg("row %zu: %jd, %jd", i, (intmax_t)limits[0], (intmax_t)limits[1]);
    }
    assert_int_equal(attach_begin(&attachment, &f.node, &wanted, NULL), 0);
    attachment.limits[0] = bytes;
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, NULL), 0);
    bytes++;
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, NULL), -ENOMEM);
    assert_int_equal(shortage.free_bytes, 0);
    attachment.limits[0] = 0;
    assert_int_equal(attach_hold(&attachment, &bytes, &shortage, NULL), 0);
}

TEST_BETWEEN(all_gpus_or_none, setup, teardown)
{
    struct node_slot wanted = {.use_count = 2, .uses = {{.gpu = 0}, {.gpu = 1}}};
    int64_t small[] = {GIB, GIB}, large[] = {2 * GIB, 41 * GIB};
    static struct shortage shortage;
    CLEANUP(attach_end) struct attachment attachment;

    assert_int_equal(attach_begin(&attachment, &f.node, &wanted, NULL), 0);
    assert_int_equal(attach_hold(&attachment, small, &shortage, NULL), 0);
    assert_int_equal(attach_hold(&attachment, large, &shortage, NULL), -ENOMEM);
    assert_int_equal(shortage.use, 1);
    assert_int_equal(fixture_used(&f, 0), GIB);
    assert_int_equal(fixture_used(&f, 1), GIB);
}

/* A pid that was reused does not keep the slot of its predecessor. */
TEST_BETWEEN(reused_pid_is_another, setup, teardown)
{
    struct node_bank *bank;

    assert_int_equal(node_begin(&f.node, &bank), 0);
    bank->slots[0] = wish(0);
    bank->slots[0].phase = NODE_SLOT_ATTACHED;
    bank->slots[0].pid = getpid();
    bank->slots[0].start_ticks = 1;
    bank->slots[0].uses[0].bytes = GIB;
    bank->slot_high = 1;
    bank->swept_wall_ns = 0;
    node_commit(&f.node);
    assert_int_equal(fixture_used(&f, 0), 0);
}

TEST_BETWEEN(death_in_the_middle_changes_nothing, setup, teardown)
{
    pid_t snapshotter = holder(7 * GIB), pid = fork();
    int status;

    if (pid == 0) {
        struct node_bank *bank;

        if (node_begin(&f.node, &bank) < 0)
            _exit(1);
        memset(bank->slots, 0xff, sizeof bank->slots);
        memset(bank->gpus, 0xff, sizeof bank->gpus);
        bank->slot_high = 3;
        kill(getpid(), SIGKILL); /* with the lock held and everything spoilt */
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(fixture_used(&f, 0), 7 * GIB);
    assert_int_equal(fixture_used(&f, 1), 0);
    end(snapshotter);
}

TEST_BETWEEN(stopped_holder_is_waited_for_only_so_long, setup, teardown)
{
    struct node_bank *bank;
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (node_begin(&f.node, &bank) == 0 && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    int64_t before_ns = nodetime_monotonic_wall_ns();
    assert_int_equal(node_begin(&f.node, &bank), -ETIMEDOUT);
    int64_t waited_ns = nodetime_monotonic_wall_ns() - before_ns;
    assert_true(waited_ns >= NODE_LOCK_WALL_NS && waited_ns < NODE_LOCK_WALL_NS + 2 * NS_PER_SEC);
    end(pid);
    assert_int_equal(node_begin(&f.node, &bank), 0);
    node_abandon(&f.node);
    close(ready[0]);
    close(ready[1]);
}

TEST_BETWEEN(visible_gpus, setup, teardown)
{
    const struct node_file *file = f.node.file;
    CLEANUP(free_ptr) char *by_uuid = xasprintf("%s,%.16s", file->gpus[3].uuid, file->gpus[1].uuid);
    const struct {
        const char *visible;
        uint32_t count, gpus[4];
    } rows[] = {{NULL, 4, {0, 1, 2, 3}}, {"", 0, {0}},    {"2,0", 2, {2, 0}}, {"1,9,2", 1, {1}},
                {"-1", 0, {0}},          {"1,1", 0, {0}}, {"GPU-", 0, {0}},   {by_uuid, 2, {3, 1}}};
    struct place places[NODE_MAX_GPUS];

    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(attach_visible(file, NULL, rows[i].visible, places), rows[i].count);
        for (uint32_t k = 0; k < rows[i].count; k++)
            assert_true(places[k].gpu == rows[i].gpus[k] && places[k].instance == 0);
    }
}

/* GPU 0 is in MIG mode, GPU 1 is not. */
TEST_BETWEEN(visible_instances, setup, teardown)
{
    struct place places[NODE_MAX_GPUS];
    struct fixture mig;
    char text[256];

    fixture_open(&mig, "a100x2-mig");
    const struct node_file *file = mig.node.file;
    assert_int_equal(attach_visible(file, NULL, NULL, places), 1);
    assert_int_equal(places[0].gpu, 1);
    assert_int_equal(attach_visible(file, NULL, file->gpus[0].instances[2].uuid, places), 1);
    assert_int_equal(places[0].gpu, 0);
    assert_int_equal(places[0].instance, 3);
    assert_int_equal(attach_visible(file, NULL, file->gpus[0].uuid, places), 1);
    assert_int_equal(places[0].instance, 1);
    snprintf(text, sizeof text, "%s,1", file->gpus[0].instances[1].uuid);
    assert_int_equal(attach_visible(file, NULL, text, places), 1); /* nothing beside an instance */
    assert_int_equal(attach_visible(file, NULL, "1,0", places), 1);
    assert_int_equal(places[0].gpu, 1);
    assert_int_equal(attach_visible(file, NULL, "MIG-", places), 0);
    fixture_close(&mig);
    setenv("CARMA_VNODE", f.state, 1);
}

/* Puts a child that only waits on GPU `gpu`, without or (domain not 0) through MPS. */
static pid_t add_client(struct node_bank *bank, uint64_t domain, uint32_t gpu)
{
    struct proc_stat stat;
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    assert_int_equal(proc_read_stat(pid, &stat), 0);
    bank->slots[bank->slot_high++] = (struct node_slot){
        .phase = NODE_SLOT_ATTACHED,
        .pid = pid,
        .start_ticks = stat.start_ticks,
        .mps = domain != 0,
        .mps_domain = domain,
        .uid = 1000,
        .use_count = 1,
        .uses = {{.gpu = gpu}},
    };
    return pid;
}

/* A fault of one MPS client takes those of its domain that share a GPU with it, and nobody else. */
TEST_BETWEEN(a_fault_reaches_the_domain, setup, teardown)
{
    static struct domain_client clients[NODE_MAX_SLOTS];
    struct node_bank *bank;
    pid_t pids[6];
    uint32_t count;

    assert_int_equal(node_begin(&f.node, &bank), 0);
    pids[0] = add_client(bank, 7, 0);
    pids[1] = add_client(bank, 7, 0); /* a victim */
    pids[2] = add_client(bank, 7, 1); /* on another GPU */
    pids[3] = add_client(bank, 8, 0); /* of another domain */
    pids[4] = add_client(bank, 0, 0); /* without MPS */
    node_commit(&f.node);

    assert_int_equal(domain_serve(&f.node, 7, 4242), 0);
    assert_int_equal(node_begin(&f.node, &bank), 0);
    pids[5] = add_client(bank, 7, 0); /* waits for a server */
    node_commit(&f.node);
    assert_int_equal(domain_fail(&f.node, 999999999, CUDA_FAULT_LAUNCH_FAILED), -ESRCH);
    assert_int_equal(domain_fail(&f.node, pids[0], CUDA_FAULT_LAUNCH_FAILED), 0);
    assert_int_equal(domain_clients(&f.node, 7, clients, &count), 0);
    assert_int_equal(count, 4);
    assert_true(clients[0].pid == pids[0] && clients[0].uid == 1000 && clients[0].server_pid == 4242);
    assert_int_equal(clients[0].gpus, 1);
    assert_int_equal(clients[0].fault, CUDA_FAULT_LAUNCH_FAILED);
    assert_int_equal(clients[1].fault, CUDA_FAULT_MPS_RPC_FAILURE);
    assert_int_equal(clients[2].fault, 0);
    assert_int_equal(clients[2].gpus, 2);
    assert_int_equal(domain_clients(&f.node, 8, clients, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(clients[0].fault, 0);
    assert_int_equal(clients[0].server_pid, 0);

    assert_int_equal(node_begin(&f.node, &bank), 0);
    assert_int_equal(bank->slots[4].fault, 0);
    assert_int_equal(bank->slots[5].fault, 0);
    node_commit(&f.node);
    for (int i = 0; i < 6; i++)
        end(pids[i]);
}

TEST_BETWEEN(bad_files_are_named, setup, teardown)
{
    struct node_file wanted = {.gpu_count = 1};
    struct node node;
    char path[128];

    assert_error(node_create(f.state, &wanted, 0600, &trouble), -EEXIST, f.state);
    assert_error(node_open(&node, "/nonexistent/state", &trouble), -ENOENT, "/nonexistent/state");
    assert_int_equal(node_open(&node, f.directory, &trouble), -EISDIR);
    snprintf(path, sizeof path, "%s/other", f.directory);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(node_open(&node, path, &trouble), -EINVAL); /* empty */
    assert_int_equal(ftruncate(fd, sizeof *node.file), 0);
    assert_int_equal(node_open(&node, path, &trouble), -EINVAL); /* zeroes */
    close(fd);
    unlink(path);
    unsetenv("CARMA_VNODE");
    assert_int_equal(node_open(&node, NULL, &trouble), -ENODEV);
    setenv("CARMA_TIME_SCALE", "7", 1);
    assert_error(node_open(&node, f.state, &trouble), -EINVAL, "CARMA_TIME_SCALE=1");
    unsetenv("CARMA_TIME_SCALE");
    setenv("CARMA_VNODE", f.state, 1);
}

/* Its mode is what was asked, and its clock is node time. */
TEST_BETWEEN(a_node_is_made, setup, teardown)
{
    struct node_file wanted = *f.node.file;
    struct timespec since_boot;
    char path[128];
    struct stat st;
    mode_t mask = umask(077);

    snprintf(path, sizeof path, "%s/shared", f.directory);
    assert_int_equal(node_create(path, &wanted, 0666, NULL), 0);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    unlink(path);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    assert_near((double)(node_now_ns(&f.node) - since_boot.tv_sec * NS_PER_SEC - since_boot.tv_nsec), 0, 1e8);
}

int main(void)
{
    unsetenv("CARMA_TIME_SCALE");
    unsetenv("CARMA_VNODE");
    return unit_tests_run("tests", NULL, NULL);
}
