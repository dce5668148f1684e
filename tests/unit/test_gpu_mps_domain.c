/* An MPS domain's life, against the virtual control program in one of its languages: up, adopted, full, and down. */
#include "mps_domain_fixture.h"

TEST(test_up_and_down)
{
    CLEANUP(close_world) struct world world;

    open_world(&world);
    open_domain(&world);
    assert_string_equal(mps_domain_gpus(world.domain), world.options.gpus);
    umask(077);
    join_and_wait(&world, 5);
    umask(022);
    assert_int_equal(mps_domain_phase(world.domain), MPS_SERVING);
    pid_t control = control_pid(&world);
    assert_true(control > 0 && kill(control, 0) == 0);
    assert_int_equal(programs_left(&world), 2);
    expect_entry(&world, "", geteuid(), 0755);
    expect_entry(&world, "pipe", geteuid(), 0755);
    join_and_wait(&world, 6);
    mps_domain_leave(world.domain, 5);
    mps_domain_leave(world.domain, 99); /* nobody */
    assert_int_equal(mps_domain_jobs(world.domain), 1);
    mps_domain_leave(world.domain, 6);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN && programs_left(&world) == 0);
    join_and_wait(&world, 7); /* and up again */
    assert_string_equal(world.phases, "starting serving stopping down starting serving ");
    mps_domain_leave(world.domain, 7);
}

TEST(test_adoption)
{
    CLEANUP(close_world) struct world world;

    open_serving(&world);
    CLEANUP(free_ptr) char *pipe = xasprintf("%s/control", mps_domain_pipe_directory(world.domain));
    mps_domain_join(world.domain, 2, geteuid() + 1, on_ready, &world); /* waits for its turn, and no job by then */
    pid_t control = control_pid(&world);
    mps_domain_free(world.domain);
    assert_int_equal(uv_run(&world.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(programs_left(&world), 2); /* job 1 goes on */
    assert_int_equal(world.ready_count, 1);
    assert_int_equal(chmod(pipe, 0666), 0); /* as an earlier carma left it */

    world.options.gpus = NULL; /* as a later reader of the directory */
    open_domain(&world);
    assert_string_equal(mps_domain_gpus(world.domain), world.fixture.node.file->gpus[0].uuid);
    mps_domain_join(world.domain, 1, geteuid(), NULL, NULL);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_int_equal(control_pid(&world), control);
    expect_entry(&world, "pipe/control", geteuid(), 01600);
    mps_domain_free(world.domain);
    assert_int_equal(uv_run(&world.loop, UV_RUN_DEFAULT), 0);

    open_domain(&world); /* one with a job that has ended meanwhile */
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN && programs_left(&world) == 0);
}

/* 48 clients, as the driver of this node has it. */
TEST(test_limit)
{
    CLEANUP(close_world) struct world world;
    pid_t clients[49];

    open_serving(&world);
    assert_true(world.fixture.node.file->cuda_version < 13010);
    for (int i = 0; i < 49; i++)
        clients[i] = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, clients[48]).fault || client_of(&world, clients[48]).server_pid);
    assert_int_equal(client_of(&world, clients[48]).fault, 808);
    for (int i = 0; i < 48; i++)
        assert_int_equal(client_of(&world, clients[i]).fault, 0);
    for (int i = 0; i < 49; i++)
        end_client(clients[i]);
    mps_domain_leave(world.domain, 1);
}

RUN_MPS_TESTS
