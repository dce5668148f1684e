/* carma-train as a process: time, memory, neighbours, signals. 1000 times faster than node time. */
#include "unit.h"

#include "vnode/domain.h"
#include "vnode_a100.h"

#define SCALE 1000

struct job {
    pid_t pid;
    char out[128], err[128];
};

/* Starts carma-train with these options (separated by blanks) on `gpus`. */
static struct job start(const char *name, const char *gpus, const char *options)
{
    struct job job;
    char *words[32] = {(char *)CARMA_TRAIN}, *copy = strdup(options), *rest = copy;

    for (int i = 1; i < 31 && (words[i] = strtok_r(NULL, " ", &rest)); i++)
        ;
    snprintf(job.out, sizeof job.out, "%s/%s.out", f.directory, name);
    snprintf(job.err, sizeof job.err, "%s/%s.err", f.directory, name);
    job.pid = fork();
    if (job.pid == 0) {
        setenv("CUDA_VISIBLE_DEVICES", gpus, 1);
        setenv("CARMA_CHECKPOINT_DIR", f.directory, 1);
        if (!freopen(job.out, "w", stdout) || !freopen(job.err, "w", stderr))
            _exit(126);
        execv(CARMA_TRAIN, words);
        _exit(127);
    }
    free(copy);
    return job;
}

/* Its wait status; its output goes into out and err, which may be NULL. */
static int finish(struct job *job, char **out, char **err)
{
    size_t length;
    int status;

    assert_int_equal(waitpid(job->pid, &status, 0), job->pid);
    if (out)
        assert_int_equal(file_read(job->out, 65536, out, &length, NULL), 0);
    if (err)
        assert_int_equal(file_read(job->err, 65536, err, &length, NULL), 0);
    unlink(job->out);
    unlink(job->err);
    return status;
}

/* A busy machine starts and wakes late: an event lasts for a second (1000 s of node time), waited for with patience. */
#define PATIENCE_MS 30000

/* Waits until GPU `gpu` has `bytes` in use. */
static void wait_for_memory(uint32_t gpu, int64_t bytes)
{
    for (int i = 0; i < PATIENCE_MS && fixture_used(&f, gpu) != bytes; i++)
        sleep_wall_ms(1);
    assert_int_equal(fixture_used(&f, gpu), bytes);
}

/* Node time that GPU `gpu` spent busy so far, by its SM activity integral. */
static double activity_seconds(uint32_t gpu)
{
    struct node_bank *bank;

    assert_int_equal(node_begin(&f.node, &bank), 0);
    double seconds = bank->gpus[gpu].sm_activity_ns / 1e9;
    node_commit(&f.node);
    return seconds;
}

TEST_BETWEEN(alone_takes_its_time, setup, teardown)
{
    int64_t begin_ns = node_now_ns(&f.node), took_ns;
    struct job job = start("a", f.node.file->gpus[1].uuid, "--memory 5G --peak 6G --sm-activity 0.5 --seconds 1000");
    CLEANUP(free_ptr) char *out = NULL;

    wait_for_memory(1, 5 * GIB);
    assert_int_equal(finish(&job, &out, NULL), 0);
    took_ns = node_now_ns(&f.node) - begin_ns;
    assert_true(took_ns >= 1012 * NS_PER_SEC); /* 12 s of loading, then the work */
    assert_near(activity_seconds(1), 500, 0.01);
    assert_non_null(strstr(out, "carma-train: done"));
    assert_int_equal(fixture_used(&f, 1), 0);
    for (int i = 0; i < 20; i++) { /* of several some begin at once on a busy machine, too */
        begin_ns = node_now_ns(&f.node);
        job = start("a", "1", "--memory 1G --seconds 1");
        assert_int_equal(finish(&job, NULL, NULL), 0);
        assert_true(node_now_ns(&f.node) - begin_ns >= 13 * NS_PER_SEC);
    }
}

/* Two that begin together slow each other down by A/U, on MPS and with time-slicing (docs/contention.md). */
static void two_share(bool mps)
{
    double slowdown = mps ? 1.2 / (1 - 0.4 * 0.4) : 1 / 0.492307692308;
    struct job jobs[2];
    char control[128];
    struct node_bank *bank;
    int training = 0;

    snprintf(control, sizeof control, "%s/control", f.directory);
    if (mps) {
        close(open(control, O_CREAT | O_WRONLY, 0600));
        setenv("CUDA_MPS_PIPE_DIRECTORY", f.directory, 1);
    }
    for (int i = 0; i < 2; i++)
        jobs[i] = start(i ? "b" : "a", "0", "--memory 5G --sm-activity 0.6 --seconds 800");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    for (int i = 0; i < PATIENCE_MS && training < 2; i++) {
        sleep_wall_ms(1);
        assert_int_equal(node_begin(&f.node, &bank), 0);
        training = 0;
        for (uint32_t j = 0; j < bank->slot_high; j++)
            training += bank->slots[j].phase == NODE_SLOT_TRAINING;
        for (uint32_t j = 0; training == 2 && j < 2; j++) {
            assert_int_equal(bank->slots[j].mps, mps);
            assert_near(bank->slots[j].rate, 1 / slowdown, 1e-9);
        }
        node_commit(&f.node);
    }
    assert_int_equal(training, 2);
    assert_int_equal(finish(&jobs[0], NULL, NULL), 0);
    assert_int_equal(finish(&jobs[1], NULL, NULL), 0);
    assert_near(activity_seconds(0), 2 * 0.6 * 800, 0.01); /* all the work was done, no more */
    unlink(control);
}

TEST_BETWEEN(two_on_one_gpu, setup, teardown)
{
    two_share(true);
    teardown(NULL);
    setup(NULL);
    two_share(false);
}

TEST_BETWEEN(out_of_memory, setup, teardown)
{
    struct job first = start("a", "0", "--memory 30G --sm-activity 0.5 --seconds 100000"), second;
    CLEANUP(free_ptr) char *err = NULL;
    char expected[96];

    wait_for_memory(0, 30 * GIB);
    second = start("b", "0", "--memory 9G --peak 10G --sm-activity 0.5 --seconds 100");
    int status = finish(&second, NULL, &err);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    /* 40536 MiB - 30 GiB = 9.59 GiB: four fifths of 9 GiB fit, 10 GiB do not */
    assert_non_null(strstr(err, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.80 GiB. GPU 0 has a "
                                "total capacity of 39.59 GiB of which 2.39 GiB is free."));
    snprintf(expected, sizeof expected, "Process %d has 30.00 GiB memory in use.", first.pid);
    assert_non_null(strstr(err, expected));
    assert_non_null(strstr(err, "this process has 7.20 GiB memory in use"));
    assert_int_equal(fixture_used(&f, 0), 30 * GIB);
    kill(first.pid, SIGTERM);
    status = finish(&first, NULL, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(fixture_used(&f, 0), 0);
}

TEST_BETWEEN(checkpoint_is_gone_on_from, setup, teardown)
{
    const char *options = "--memory 1G --sm-activity 0.5 --seconds 1500 --checkpoint";
    struct job job = start("a", "0", options);
    CLEANUP(free_ptr) char *out = NULL;
    char path[128];

    snprintf(path, sizeof path, "%s/carma-train.checkpoint", f.directory);
    wait_for_memory(0, GIB);
    sleep_wall_ms(100);
    kill(job.pid, SIGUSR1);
    for (int i = 0; i < PATIENCE_MS && access(path, F_OK) < 0; i++)
        sleep_wall_ms(1);
    assert_int_equal(access(path, F_OK), 0);
    kill(job.pid, SIGKILL);
    finish(&job, NULL, NULL);
    sleep_wall_ms(15);
    double before = activity_seconds(0);
    assert_true(before > 0.5 * 100);
    job = start("b", "0", options);
    assert_int_equal(finish(&job, &out, NULL), 0);
    assert_non_null(strstr(out, "goes on from a checkpoint"));
    assert_true(activity_seconds(0) - before < 0.5 * (1500 - 100) + 1);
    assert_int_equal(access(path, F_OK), -1); /* nothing to go on from */
}

static void refused(const char *gpus, const char *options, int expected, const char *complaint)
{
    struct job job = start("a", gpus, options);
    CLEANUP(free_ptr) char *err = NULL;
    int status = finish(&job, NULL, &err);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    assert_has(err, complaint);
}

TEST_BETWEEN(bad_requests, setup, teardown)
{
    refused("", "--memory 1G", 1, "1 GPUs are needed, 0 visible");
    refused("0", "--memory 1G --gpus 2", 1, "2 GPUs are needed, 1 visible: CUDA_VISIBLE_DEVICES is 0");
    refused("0", "", 2, "say either --workload or --memory");
    refused("0", "--memory -3", 2, "--memory");
    refused("0", "--memory 1G --sm-activity 2", 2, "--sm-activity '2' is not a number from 0 to 1");
    refused("0", "--memory 2G --peak 1G", 2, "--peak is less than --memory");
    refused("0", "--workload none --workloads " CARMA_SOURCE "/data/workloads.csv", 1, "has no workload 'none'");
    unsetenv("CARMA_VNODE");
    refused("0", "--memory 1G", 1, "CARMA_VNODE is not set");
    setenv("CARMA_VNODE", f.state, 1);
}

TEST_BETWEEN(a_handle_needs_memory, setup, teardown)
{
    struct job filler = start("filler", "2", "--memory 34G --seconds 100000"), job;
    CLEANUP(free_ptr) char *err = NULL;

    wait_for_memory(2, 34 * GIB);
    job = start("handle", "2", "--memory 5700M --seconds 100 --fail library-handle");
    assert_int_equal(WEXITSTATUS(finish(&job, NULL, &err)), 1);
    assert_non_null(strstr(err, "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"));
    kill(filler.pid, SIGKILL);
    finish(&filler, NULL, NULL);
}

/* A fault of an MPS client takes its neighbour with it, and nobody is let in meanwhile. */
TEST_BETWEEN(neighbours_are_victims, setup, teardown)
{
    CLEANUP(free_ptr) char *overuser_says = NULL, *victim_says = NULL;
    struct node_slot late = {.mps = 1, .use_count = 1};
    struct attachment attachment;
    struct job victim;
    struct node_bank *bank;
    char control[128];
    int64_t now_ns;

    snprintf(control, sizeof control, "%s/control", f.directory);
    assert_int_equal(mkfifo(control, 0600), 0);
    setenv("CUDA_MPS_PIPE_DIRECTORY", f.directory, 1);
    victim = start("victim", "0", "--memory 6G --seconds 100000");
    struct job overuser = start("culprit", "0", "--memory 2G --seconds 100000 --fail illegal-access --fail-at 1000");
    wait_for_memory(0, 8 * GIB);
    assert_int_equal(WEXITSTATUS(finish(&overuser, NULL, &overuser_says)), 1);
    assert_int_equal(WEXITSTATUS(finish(&victim, NULL, &victim_says)), 1);
    assert_non_null(strstr(overuser_says, "an illegal memory access"));
    assert_non_null(strstr(victim_says, "the remote procedural call between the MPS server and the MPS client failed"));

    late.mps_domain = attach_mps_domain(f.directory);
    assert_int_equal(attach_begin(&attachment, &f.node, &late, NULL), 0); /* both have left: all is well again */
    assert_int_equal(attach_look(&attachment, &late, &now_ns, NULL), 0);
    assert_int_equal(late.fault, 0);
    assert_int_equal(node_begin(&f.node, &bank), 0);
    bank->slots[attachment.slot].fault = CUDA_FAULT_LAUNCH_FAILED;
    node_commit(&f.node);
    overuser = start("refused", "0", "--memory 2G --seconds 100000");
    assert_int_equal(WEXITSTATUS(finish(&overuser, NULL, NULL)), 1);
    attach_end(&attachment);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    unlink(control);
}

int main(void)
{
    char scale[16];

    snprintf(scale, sizeof scale, "%d", SCALE);
    setenv("CARMA_TIME_SCALE", scale, 1);
    unsetenv("CARMA_JOB_ID");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    return unit_tests_run("tests", NULL, NULL);
}
