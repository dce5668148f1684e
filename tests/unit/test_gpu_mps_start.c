/* MPS control programs that cannot be started: their errors, and that nothing of them is left. */
#include "mps_domain_fixture.h"

static void fails(struct world *world, const char *program, uint64_t timeout_ms, int status, const char *text)
{
    open_world(world);
    world->options.program = program;
    world->options.timeout_ms = timeout_ms;
    open_domain(world);
    expect_entry(world, "", geteuid(), 0700);
    assert_int_equal(chmod(world->directory, 0755), 0); /* as it was left */
    mps_domain_join(world->domain, 1, geteuid(), on_ready, world);
    run_until(world, world->ready_count);
    expect_entry(world, "", geteuid(), strstr(text, "its server") ? 0755 : 0700); /* a daemon answered */
    assert_int_equal(world->ready_status, status);
    assert_has(world->ready_error, text);
    run_until(world, mps_domain_phase(world->domain) == MPS_DOWN);
    run_until(world, programs_left(world) == 0); /* killed programs are gone a moment later */
    assert_int_equal(mps_domain_jobs(world->domain), 0);
    close_world(world);
}

TEST(test_failures)
{
    struct world world;

    fails(&world, "/no/such/program", 300, -ENOENT, "there is no MPS control program '/no/such/program': install");
    fails(&world, "no-such-mps-control", 300, -ENOENT, "there is no MPS control program 'no-such-mps-control'");
    fails(&world, "/bin/false", 300, -EIO, "/log/start.log: /bin/false ended with status 1");
    fails(&world, "/bin/true", 300, -ETIMEDOUT, "does not come up"); /* says that it started, and has not */
}

/* A control program of the test's; owned by the caller. Its name is one of those that programs_left() counts. */
static char *write_program(const char *text)
{
    char directory[] = "/tmp/carma-mps-program.XXXXXX";
    FILE *file;

    assert_non_null(mkdtemp(directory));
    char *path = xasprintf("%s/nvidia-cuda-mps-test", directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void remove_program(char *path)
{
    *strrchr(path, '/') = '\0';
    assert_int_equal(remove_tree(path), 0);
    free(path);
}

/* Nothing of the name on PATH may be executed; execvp() says the same where a folder of PATH cannot be read. */
TEST(test_not_on_the_path)
{
    struct world world;
    CLEANUP(free_ptr) char *path = xstrdup(getenv("PATH"));
    char *program = write_program(""), *slash = strrchr(program, '/');

    assert_int_equal(chmod(program, 0644), 0);
    CLEANUP(free_ptr) char *with = xasprintf("%s:%.*s", path, (int)(slash - program), program);
    setenv("PATH", with, 1);
    fails(&world, slash + 1, 300, -ENOENT, "there is no MPS control program 'nvidia-cuda-mps-test': install");
    setenv("PATH", path, 1);
    remove_program(program);
}

/* A daemon that came up and has no server is stopped, whether it writes a pid file or not. */
TEST(test_no_server)
{
    struct world world;
    CLEANUP(free_ptr)
    char *text = xasprintf("case ${1-} in\n-d) exec '%s' -d ;;\nserver) [ \"$2\" != create ] || exit 0 ;;\nesac\n"
                           "grep -v start_server | '%s' \"$@\"",
                           CARMA_MPS_CONTROL, CARMA_MPS_CONTROL);
    char *program = write_program(text);

    fails(&world, program, 5000, -ETIMEDOUT, "does not come up: its server ends as soon as it is started");
    remove_program(program);
}

/* A start that hangs is ended with its children, which would be a daemon without an owner. */
TEST(test_late)
{
    struct world world;
    char *program = write_program("(sleep 30; :) & sleep 30; :");

    fails(&world, program, 300, -ETIMEDOUT, "nvidia-cuda-mps-test does not answer");
    remove_program(program);
}

/* One that fails at first is tried again while a job waits, and no longer than is asked for. */
TEST(test_tried_again)
{
    struct world world;
    CLEANUP(free_ptr)
    char *text = xasprintf("mkdir \"$0.tried\" 2>/dev/null && exit 1\nexec '%s' \"$@\"", CARMA_MPS_CONTROL);
    char *program = write_program(text);

    open_world(&world);
    world.options.program = program;
    world.options.patience_ms = 60000;
    open_domain(&world);
    mps_domain_join(world.domain, 1, geteuid(), on_ready, &world);
    run_until(&world, world.ready_count);
    assert_int_equal(world.ready_status, 0);
    assert_string_equal(world.phases, "starting down starting serving ");
    mps_domain_leave(world.domain, 1);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN);
    world.options.program = "/bin/false";
    world.options.patience_ms = 100;
    mps_domain_free(world.domain);
    open_domain(&world);
    mps_domain_join(world.domain, 2, geteuid(), on_ready, &world);
    run_until(&world, world.ready_count == 2);
    assert_int_equal(world.ready_status, -EIO);
    close_world(&world);
    remove_program(program);
}

RUN_MPS_TESTS
