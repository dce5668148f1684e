/* An MPS domain that another user's jobs take over, and a server for several users. */
#include "mps_domain_fixture.h"

#define OTHER_UID 65534

static uid_t uid_of(pid_t pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

/* The server that the domain's daemon has, by its own word; 0: none. */
static pid_t server_of(const struct world *world)
{
    CLEANUP(free_ptr)
    char *line = xasprintf("echo get_server_list | CUDA_MPS_PIPE_DIRECTORY='%s' '%s'",
                           mps_domain_pipe_directory(world->domain), CARMA_MPS_CONTROL);
    FILE *answer = popen(line, "r");
    struct mps_pids servers = {0};
    char text[1024];

    assert_non_null(answer);
    text[fread(text, 1, sizeof text - 1, answer)] = '\0';
    pclose(answer);
    assert_int_equal(mps_read_servers(text, &servers, &trouble), 0);
    return servers.count ? servers.items[0] : 0;
}

/* Another user's server comes when the first has no job, before he has a client; one of his waits for it. */
TEST(test_other_user)
{
    struct world world;

    if (geteuid() != 0)
        skip(); /* only root's daemon serves others */
    open_serving(&world);
    pid_t first = start_client(&world, 0, false);
    run_until(&world, client_of(&world, first).server_pid);
    assert_int_equal(uid_of(client_of(&world, first).server_pid), 0);
    expect_entry(&world, "pipe/control", 0, 01600);
    mps_domain_join(world.domain, 2, OTHER_UID, on_ready, &world);
    pid_t second = start_client(&world, OTHER_UID, false);
    for (int i = 0; i < 20; i++)
        run_until(&world, (usleep(10000), true));
    assert_int_equal(world.ready_count, 1);
    assert_int_equal(client_of(&world, second).server_pid, 0);
    assert_int_equal(client_of(&world, second).uid, OTHER_UID);
    end_client(first);
    mps_domain_leave(world.domain, 1);
    run_until(&world, world.ready_count == 2 && client_of(&world, second).server_pid);
    assert_int_equal(world.ready_status, 0);
    assert_int_equal(uid_of(client_of(&world, second).server_pid), OTHER_UID);
    expect_entry(&world, "pipe/control", OTHER_UID, 01600);
    expect_entry(&world, "pipe/control_privileged", 0, 0755);
    end_client(second);
    mps_domain_join(world.domain, 3, 0, on_ready, &world);
    mps_domain_leave(world.domain, 2);
    run_until(&world, world.ready_count == 3);
    assert_int_equal(uid_of(server_of(&world)), 0);
    expect_entry(&world, "pipe/log", 0, 01600);
    mps_domain_leave(world.domain, 3);
    close_world(&world);
}

TEST(test_many_users)
{
    struct world world;

    if (geteuid() != 0)
        skip();
    needs_driver(555);
    open_world(&world);
    world.options.multiuser = true;
    open_domain(&world);
    join_and_wait(&world, 1);
    mps_domain_join(world.domain, 2, OTHER_UID, on_ready, &world);
    run_until(&world, world.ready_count == 2);
    expect_entry(&world, "pipe/control", 0, 0666);
    pid_t first = start_client(&world, 0, false);
    pid_t second = start_client(&world, OTHER_UID, false);
    run_until(&world, client_of(&world, first).server_pid && client_of(&world, second).server_pid);
    assert_int_equal(client_of(&world, first).server_pid, client_of(&world, second).server_pid);
    end_client(first);
    end_client(second);
    mps_domain_leave(world.domain, 1);
    mps_domain_leave(world.domain, 2);
    close_world(&world);
}

TEST(test_multiuser_check)
{
    struct world world;

    open_world(&world);
    if (geteuid() != 0) {
        assert_error(mps_try_multiuser(CARMA_MPS_CONTROL, -1, &trouble), -EPERM, "only root's MPS server");
    } else {
        bool can = atoi(driver) >= 555;
        assert_int_equal(mps_try_multiuser(CARMA_MPS_CONTROL, -1, &trouble), can ? 0 : -ENOTSUP);
        if (!can)
            assert_non_null(
                strstr(trouble.text, "has no MPS server for several users: install a driver from 555 on, or set"));
        assert_int_equal(mps_try_multiuser("/no/such/program", -1, &trouble), -ENOENT);
        assert_int_equal(mps_try_multiuser("/bin/true", -1, &trouble), -ENOTSUP); /* says that it started */
    }
    assert_int_equal(programs_left(&world), 0);
    fixture_close(&world.fixture);
    uv_loop_close(&world.loop);
}

RUN_MPS_TESTS
