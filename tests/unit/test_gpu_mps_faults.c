/* The way of an MPS domain out of a fault, a kill or a request to terminate a client. */
#include "gpu/mps/process.h"
#include "mps_domain_fixture.h"

TEST(test_fault)
{
    CLEANUP(close_world) struct world world;
    int status;

    needs_driver(550);
    open_serving(&world);
    join_and_wait(&world, 2);
    pid_t overuser = start_client(&world, geteuid(), false);
    pid_t victim = start_client(&world, geteuid(), false);
    run_until(&world, client_of(&world, overuser).server_pid && client_of(&world, victim).server_pid);
    assert_int_equal(domain_fail(&world.fixture.node, overuser, CUDA_FAULT_ILLEGAL_ADDRESS), 0);
    run_until(&world, has_phase(&world, "faulted "));
    waitpid(overuser, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 3);
    waitpid(victim, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 3);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_string_equal(world.phases, "starting serving faulted serving ");
    mps_domain_leave(world.domain, 1);
    mps_domain_leave(world.domain, 2);
}

/* A client that does not leave is terminated; when even that does not help, everything is started anew. */
TEST(test_drain)
{
    CLEANUP(close_world) struct world world;

    needs_driver(550);
    open_serving(&world);
    pid_t control = control_pid(&world);
    pid_t stubborn = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, stubborn).server_pid);
    assert_int_equal(domain_fail(&world.fixture.node, stubborn, CUDA_FAULT_LAUNCH_FAILED), 0);
    run_until(&world, has_phase(&world, "faulted "));
    pid_t other = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, other).fault == CUDA_FAULT_MPS_SERVER_NOT_READY); /* no client is taken */
    run_until(&world, client_of(&world, stubborn).fault == CUDA_FAULT_MPS_CLIENT_TERMINATED);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_string_equal(world.phases, "starting serving faulted serving ");
    assert_int_equal(control_pid(&world), control); /* terminated, it holds the server no longer */
    end_client(stubborn);
    end_client(other);
    mps_domain_leave(world.domain, 1);
}

/* A control program that fails says nothing of the server; a dead server is told from it all the same. */
TEST(test_no_answer_is_no_fault)
{
    CLEANUP(free_ptr) char *program = NULL, *broken = NULL, *script = NULL;
    CLEANUP(close_world) struct world world;

    open_world(&world);
    program = xasprintf("%s/control", world.fixture.directory);
    broken = xasprintf("%s/broken", world.fixture.directory);
    script = xasprintf("#!/bin/sh\n[ ! -e '%s' ] || exit 1\nexec '%s' \"$@\"\n", broken, CARMA_MPS_CONTROL);
    assert_int_equal(file_write_atomic(program, script, strlen(script), 0755, NULL), 0);
    world.options.program = program;
    open_domain(&world);
    join_and_wait(&world, 1);
    assert_int_equal(file_write_atomic(broken, "", 0, 0644, NULL), 0);
    uint64_t looks = mps_domain_looks(world.domain);
    run_until(&world, mps_domain_looks(world.domain) >= looks + 5);
    assert_string_equal(world.phases, "starting serving ");
    assert_int_equal(mps_process_signal_servers(control_pid(&world), SIGKILL), 1);
    run_until(&world, has_phase(&world, "faulted "));
    unlink(broken);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    mps_domain_leave(world.domain, 1);
    unlink(program);
}

static void on_fault_again(uv_timer_t *timer)
{
    const pid_t *server = timer->data;

    kill(*server, SIGUSR1);
}

static bool is_hit(void *user, uint64_t job, pid_t client)
{
    const struct world *world = user;

    (void)job;
    return client == world->meant;
}

static bool has_ended(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) < 0 || stat.state == 'Z';
}

/* A server in FAULT is left alone as long as a client that was not hit goes on, and started anew after that. */
TEST(test_spared)
{
    CLEANUP(close_world) struct world world;
    uv_timer_t fault;

    needs_driver(550);
    open_world(&world);
    world.options.is_hit = is_hit;
    open_domain(&world);
    join_and_wait(&world, 1);
    pid_t control = control_pid(&world);
    world.meant = start_client(&world, geteuid(), true);
    pid_t spared = start_client_on(&world, 1, geteuid(), true);
    run_until(&world, client_of(&world, world.meant).server_pid && client_of(&world, spared).server_pid);
    pid_t server = client_of(&world, spared).server_pid;
    assert_int_equal(domain_fail(&world.fixture.node, world.meant, CUDA_FAULT_LAUNCH_FAILED), 0);
    uv_timer_init(&world.loop, &fault);
    fault.data = &server;
    uv_timer_start(&fault, on_fault_again, 0, 100); /* it would recover otherwise */
    run_until(&world, client_of(&world, world.meant).fault == CUDA_FAULT_MPS_CLIENT_TERMINATED);
    end_client(world.meant);
    uv_update_time(&world.loop);
    int64_t until_ms = (int64_t)uv_now(&world.loop) + 3 * (int64_t)world.options.timeout_ms / 2;
    run_until(&world, (int64_t)uv_now(&world.loop) > until_ms);
    assert_string_equal(world.phases, "starting serving faulted ");
    assert_int_equal(control_pid(&world), control);
    assert_int_equal(client_of(&world, spared).fault, 0);
    end_client(spared);
    run_until(&world, has_ended(server));
    uv_close((uv_handle_t *)&fault, NULL);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_string_equal(world.phases, "starting serving faulted serving ");
    assert_int_not_equal(control_pid(&world), control);
    mps_domain_leave(world.domain, 1);
}

/* A server, then a daemon, that is killed. */
TEST(test_killed)
{
    CLEANUP(close_world) struct world world;

    open_serving(&world);
    pid_t client = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, client).server_pid);
    pid_t control = control_pid(&world);
    kill(client_of(&world, client).server_pid, SIGKILL);
    end_client(client);
    run_until(&world, has_phase(&world, "serving faulted serving "));
    assert_int_equal(control_pid(&world), control);
    kill(control, SIGKILL);
    run_until(&world, has_phase(&world, "serving faulted serving faulted serving "));
    assert_int_not_equal(control_pid(&world), control);
    mps_domain_leave(world.domain, 1);
}

static bool is_meant(void *user, uint64_t job, pid_t client)
{
    const struct world *world = user;

    assert_int_equal(job, 1);
    return client == world->meant;
}

static void on_terminated(void *user, uint64_t job)
{
    struct world *world = user;

    assert_int_equal(job, 1);
    world->terminated = true;
}

TEST(test_termination)
{
    struct world world;
    uint64_t lists;

    needs_driver(535);
    open_serving(&world);
    world.meant = start_client(&world, geteuid(), true);
    pid_t other = start_client(&world, geteuid(), true);
    mps_domain_list_clients(world.domain, true);
    run_until(&world, mps_domain_clients(world.domain, &lists)->count == 2);
    mps_domain_terminate(world.domain, 1, is_meant, on_terminated, &world);
    run_until(&world, world.terminated);
    assert_int_equal(client_of(&world, world.meant).fault, CUDA_FAULT_MPS_CLIENT_TERMINATED);
    assert_int_equal(client_of(&world, other).fault, 0);
    end_client(world.meant);
    world.terminated = false;
    mps_domain_terminate(world.domain, 1, is_meant, on_terminated, &world); /* one that has gone by itself */
    run_until(&world, world.terminated);
    assert_string_equal(world.phases, "starting serving ");
    end_client(other);
    mps_domain_leave(world.domain, 1);
    mps_domain_terminate(world.domain, 1, is_meant, on_terminated, &world); /* never told: the domain is freed */
    world.terminated = false;
    close_world(&world);
    assert_false(world.terminated);
}

RUN_MPS_TESTS
