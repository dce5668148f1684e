/* carma's own domains with NVIDIA's control program, as far as they go without a GPU. Its server is a program of the
 * test's, by the PATH, which says nothing to the control daemon. Drivers that tell no state take it for one that
 * serves, others wait for it in vain; neither can end it. All started processes are gone in the end. */
#include "../unit/unit.h"

#include "gpu/mps/domain.h"
#include "gpu/mps/trial.h"
#include "gpu/mps/process.h"

#define GUARD_MS    40000
#define PATIENCE_MS 1500

#include "../unit/run_until.h"

static const char *program;
static int driver; /* its major version */

struct world {
    char directory[64];
    uv_loop_t loop;
    struct mps_domain *domain;
    bool answered, late;
    int status;
    char error[600];
};

static void on_ready(void *user, uint64_t job, int status, const struct error *err)
{
    struct world *world = user;

    world->answered = true;
    world->status = status;
    snprintf(world->error, sizeof world->error, "%s", status < 0 ? err->text : "");
}

static void open_world(struct world *world, const char *server)
{
    FILE *file;

    *world = (struct world){.directory = "/tmp/carma-mps-real.XXXXXX"};
    assert_non_null(mkdtemp(world->directory));
    chmod(world->directory, 0755);
    CLEANUP(free_ptr) char *path = xasprintf("%s/nvidia-cuda-mps-server", world->directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", server);
    assert_int_equal(fclose(file), 0);
    chmod(path, 0755);
    CLEANUP(free_ptr) char *search = xasprintf("%s:/usr/bin:/bin", world->directory);
    setenv("PATH", search, 1);
    uv_loop_init(&world->loop);
}

static void open_domain(struct world *world)
{
    CLEANUP(free_ptr) char *directory = xasprintf("%s/domain", world->directory);
    struct mps_domain_options options = {.loop = &world->loop,
                                         .program = program,
                                         .directory = directory,
                                         .gpus = "GPU-00000000-0000-0000-0000-000000000000",
                                         .poll_ms = 50,
                                         .idle_ms = 100,
                                         .timeout_ms = PATIENCE_MS};
    struct error err;

    if (mps_domain_new(&options, &world->domain, &err) < 0)
        fail_msg("%s", err.text);
}

#define run_until(world, condition) run_until_or(world, condition, (world)->error)

static bool lives(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) == 0 && stat.state != 'Z' && stat.state != 'X';
}

static pid_t server_pid(const struct world *world)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/server", world->directory);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    return file_read(path, 64, &text, &length, NULL) < 0 ? 0 : (pid_t)strtol(text, NULL, 10);
}

static void close_world(struct world *world)
{
    struct mps_process left = {0};
    CLEANUP(free_ptr) char *pipe = xasprintf("%s/domain/pipe", world->directory);

    mps_domain_free(world->domain);
    assert_int_equal(uv_run(&world->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    assert_int_equal(mps_process_find(pipe, &left), 0);
    file_remove_tree(world->directory);
}

/* Without a GPU the server ends at once: the start fails with that, and the daemon is gone before the domain. */
static void test_no_gpu(void **state)
{
    CLEANUP(close_world) struct world world;

    open_world(&world, "exit 1");
    open_domain(&world);
    mps_domain_join(world.domain, 1, geteuid(), on_ready, &world);
    run_until(&world, mps_domain_daemon(world.domain));
    pid_t daemon = mps_domain_daemon(world.domain);
    run_until(&world, world.answered);
    assert_int_equal(world.status, -ETIMEDOUT);
    if (!strstr(world.error, "does not come up: its server ends as soon as it is started: see "))
        fail_msg("%s", world.error);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN);
    assert_false(lives(daemon));
}

/* A daemon that is there already is used, and stopped with its server, which will not end by itself. */
static void test_adopted(void **state)
{
    CLEANUP(close_world) struct world world;
    struct mps_process found = {0};
    CLEANUP(free_ptr) char *pipe = NULL;

    open_world(&world, "echo $$ >\"${0%/*}/server\"; trap '' TERM; while :; do sleep 0.1; done");
    pipe = xasprintf("%s/domain/pipe", world.directory);
    open_domain(&world);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN);
    CLEANUP(free_ptr)
    char *command = xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s CUDA_MPS_LOG_DIRECTORY=%s %s -d", pipe, pipe, program);
    assert_int_equal(system(command), 0);
    assert_true(mps_process_find(pipe, &found) > 0);
    mps_domain_join(world.domain, 1, geteuid(), on_ready, &world);
    run_until(&world, world.answered);
    assert_int_equal(world.status, driver < 550 ? 0 : -ETIMEDOUT); /* these tell that it never becomes ACTIVE */
    if (driver < 550)
        assert_int_equal(mps_domain_daemon(world.domain), found.pid);
    pid_t server = server_pid(&world);
    assert_true(server > 0);
    mps_domain_leave(world.domain, 1);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN);
    assert_false(lives(found.pid));
    assert_false(lives(server));
}

static void test_multiuser(void **state)
{
    struct error err;

    assert_int_equal(mps_try_multiuser(program, -1, &err), geteuid() != 0 ? -EPERM : driver < 555 ? -ENOTSUP : 0);
}

/* The arguments: the program, and its driver's version. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_gpu), cmocka_unit_test(test_adopted),
                                       cmocka_unit_test(test_multiuser)};

    if (argc != 3)
        return 99;
    program = argv[1];
    driver = atoi(argv[2]);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
