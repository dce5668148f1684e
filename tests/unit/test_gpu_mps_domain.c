/* An MPS domain's life, against the virtual control program in one of its languages: up, adopted, faulted, drained,
 * taken over by another user, and down. Nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "gpu/mps/domain.h"
#include "gpu/mps/trial.h"
#include "vnode/domain.h"
#include "domain_clients.h"
#include "vnode_fixture.h"

#define GUARD_MS 20000

static const char *driver = "555.58.02"; /* which the node claims to have */

/* Abilities of some drivers only. */
static void needs_driver(int major)
{
    if (atoi(driver) < major)
        skip();
}

struct world {
    struct fixture fixture;
    uv_loop_t loop;
    struct mps_domain_options options;
    struct mps_domain *domain;
    char directory[96];
    char phases[400]; /* as they came, each with a blank */
    int ready_count;
    uint64_t ready_job;
    int ready_status;
    char ready_error[600];
    bool terminated;
    bool late;
    pid_t meant;
};

static const char *phase_name(enum mps_phase phase)
{
    static const char *const names[] = {"down", "starting", "serving", "faulted", "stopping"};

    return (uint32_t)phase < MPS_PHASE_COUNT ? names[phase] : "?";
}

static void on_phase(void *user, struct mps_domain *domain, enum mps_phase phase, const char *why)
{
    struct world *world = user;
    size_t length = strlen(world->phases);

    (void)domain;
    assert_non_null(why);
    snprintf(world->phases + length, sizeof world->phases - length, "%s ", phase_name(phase));
}

static void on_ready(void *user, uint64_t job, int status, const struct error *err)
{
    struct world *world = user;

    world->ready_count++;
    world->ready_job = job;
    world->ready_status = status;
    snprintf(world->ready_error, sizeof world->ready_error, "%s", status < 0 ? err->text : "");
}

static void open_world(struct world *world)
{
    *world = (struct world){0};
    fixture_open(&world->fixture, "a100x4-40g");
    chmod(world->fixture.directory, 0755);
    chmod(world->fixture.state, 0666); /* for clients of other users */
    snprintf(world->fixture.node.file->driver_version, sizeof world->fixture.node.file->driver_version, "%s", driver);
    uv_loop_init(&world->loop);
    snprintf(world->directory, sizeof world->directory, "%s/mps/one", world->fixture.directory);
    world->options = (struct mps_domain_options){.loop = &world->loop,
                                                 .program = CARMA_MPS_CONTROL,
                                                 .directory = world->directory,
                                                 .gpus = world->fixture.node.file->gpus[0].uuid,
                                                 .poll_ms = 50,
                                                 .idle_ms = 100,
                                                 .timeout_ms = 4000,
                                                 .on_phase = on_phase,
                                                 .user = world};
}

static void open_domain(struct world *world)
{
    struct error err;

    if (mps_domain_new(&world->options, &world->domain, &err) < 0)
        fail_msg("%s", err.text);
}

static void on_guard(uv_timer_t *timer)
{
    struct world *world = timer->data;

    world->late = true;
}

/* Runs the loop until `condition`, which the guard keeps from being never. */
#define run_until(world, condition)                                                                                    \
    do {                                                                                                               \
        uv_timer_t guard, tick;                                                                                        \
        start_guard(world, &guard, &tick);                                                                             \
        while (!(condition) && !(world)->late)                                                                         \
            uv_run(&(world)->loop, UV_RUN_ONCE);                                                                       \
        uv_close((uv_handle_t *)&guard, NULL);                                                                         \
        uv_close((uv_handle_t *)&tick, NULL);                                                                          \
        uv_run(&(world)->loop, UV_RUN_NOWAIT);                                                                         \
        if ((world)->late)                                                                                             \
            fail_msg("never: %s; phases: %s; said: %s", #condition, (world)->phases, (world)->ready_error);            \
    } while (0)

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* a condition may be one of the world outside */
}

static void start_guard(struct world *world, uv_timer_t *guard, uv_timer_t *tick)
{
    uv_timer_init(&world->loop, guard);
    guard->data = world;
    uv_timer_start(guard, on_guard, GUARD_MS, 0);
    uv_timer_init(&world->loop, tick);
    uv_timer_start(tick, on_tick, 20, 20);
}

static pid_t control_pid(const struct world *world)
{
    return mps_domain_daemon(world->domain);
}

/* Control daemons and servers of this test's node that run. */
static int programs_left(const struct world *world)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    while ((entry = readdir(proc))) {
        CLEANUP(free_ptr) char *environment = xasprintf("/proc/%s/environ", entry->d_name);
        CLEANUP(free_ptr) char *comm = xasprintf("/proc/%s/comm", entry->d_name);
        CLEANUP(free_ptr) char *text = NULL;
        CLEANUP(free_ptr) char *name = NULL;
        size_t length;
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
            file_read(comm, 64, &name, &length, NULL) < 0 || strncmp(name, "nvidia-cuda-mps", 15) != 0 ||
            file_read(environment, 1 << 20, &text, &length, NULL) < 0)
            continue;
        count += memmem(text, length, world->fixture.state, strlen(world->fixture.state)) != NULL;
    }
    closedir(proc);
    return count;
}

static int remove_tree(const char *path)
{
    CLEANUP(free_ptr) char *command = xasprintf("rm -rf '%s'", path);

    return system(command);
}

/* Frees the domain, and sees that nothing is left. */
static void close_world(struct world *world)
{
    CLEANUP(free_ptr) char *mps = xasprintf("%s/mps", world->fixture.directory);

    mps_domain_free(world->domain);
    assert_int_equal(uv_run(&world->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    for (int i = 0; i < 200 && programs_left(world); i++)
        usleep(10000); /* a server ends with its daemon, a moment later */
    assert_int_equal(programs_left(world), 0);
    assert_int_equal(remove_tree(mps), 0);
    fixture_close(&world->fixture);
}

static void join_and_wait(struct world *world, uint64_t job)
{
    int before = world->ready_count;

    mps_domain_join(world->domain, job, geteuid(), on_ready, world);
    run_until(world, world->ready_count > before);
    if (world->ready_status < 0)
        fail_msg("%s", world->ready_error);
    assert_int_equal(world->ready_job, job);
}

/* A process on the GPU that came through the domain; it ends when the driver says so, unless it is stubborn. */
static pid_t start_client_on(struct world *world, uint32_t gpu, uid_t uid, bool stubborn)
{
    uint64_t identity = attach_mps_domain(mps_domain_pipe_directory(world->domain));
    struct node_slot slot = {.mps = 1, .mps_domain = identity, .use_count = 1, .uses = {{.gpu = gpu}}};
    struct attachment attachment;
    struct error err;
    int64_t now_ns;
    int ends[2];
    char byte;
    pid_t pid;

    assert_true(identity != 0);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        if ((uid != geteuid() && setresuid(uid, uid, uid) < 0) ||
            attach_begin(&attachment, &world->fixture.node, &slot, &err) < 0 || write(ends[1], "a", 1) != 1)
            _exit(2);
        for (;;) {
            usleep(5000);
            if (attach_look(&attachment, &slot, &now_ns, &err) < 0 || (slot.fault && !stubborn))
                _exit(3);
        }
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static pid_t start_client(struct world *world, uid_t uid, bool stubborn)
{
    return start_client_on(world, 0, uid, stubborn);
}

static void end_client(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static struct domain_client client_of(struct world *world, pid_t pid)
{
    static struct domain_client clients[NODE_MAX_SLOTS];
    uint32_t count;

    domain_clients(&world->fixture.node, attach_mps_domain(mps_domain_pipe_directory(world->domain)), clients, &count);
    for (uint32_t i = 0; i < count; i++)
        if (clients[i].pid == pid)
            return clients[i];
    return (struct domain_client){0};
}

static bool has_ended(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) < 0 || stat.state == 'Z';
}

static bool has_phase(const struct world *world, const char *text)
{
    return strstr(world->phases, text) != NULL;
}

/* ---- Tests ---- */

static void test_up_and_down(void **state)
{
    struct world world;
    struct stat st;
    pid_t control;

    open_world(&world);
    open_domain(&world);
    assert_string_equal(mps_domain_gpus(world.domain), world.options.gpus);
    umask(077);
    join_and_wait(&world, 5);
    umask(022);
    assert_int_equal(mps_domain_phase(world.domain), MPS_SERVING);
    control = control_pid(&world);
    assert_true(control > 0 && kill(control, 0) == 0);
    assert_int_equal(programs_left(&world), 2);
    assert_int_equal(stat(mps_domain_pipe_directory(world.domain), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    join_and_wait(&world, 6);
    mps_domain_leave(world.domain, 5);
    mps_domain_leave(world.domain, 99); /* nobody */
    assert_int_equal(mps_domain_jobs(world.domain), 1);
    mps_domain_leave(world.domain, 6);
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN && programs_left(&world) == 0);
    join_and_wait(&world, 7); /* and up again */
    assert_string_equal(world.phases, "starting serving stopping down starting serving ");
    mps_domain_leave(world.domain, 7);
    close_world(&world);
}

static void test_adoption(void **state)
{
    struct world world;
    pid_t control;

    open_world(&world);
    open_domain(&world);
    join_and_wait(&world, 1);
    mps_domain_join(world.domain, 2, geteuid() + 1, on_ready, &world); /* waits for its turn, and no job by then */
    control = control_pid(&world);
    mps_domain_free(world.domain);
    assert_int_equal(uv_run(&world.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(programs_left(&world), 2); /* job 1 goes on */
    assert_int_equal(world.ready_count, 1);

    world.options.gpus = NULL; /* as a later reader of the directory */
    open_domain(&world);
    assert_string_equal(mps_domain_gpus(world.domain), world.fixture.node.file->gpus[0].uuid);
    mps_domain_join(world.domain, 1, geteuid(), NULL, NULL);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_int_equal(control_pid(&world), control);
    mps_domain_free(world.domain);
    assert_int_equal(uv_run(&world.loop, UV_RUN_DEFAULT), 0);

    open_domain(&world); /* one with a job that has ended meanwhile */
    run_until(&world, mps_domain_phase(world.domain) == MPS_DOWN && programs_left(&world) == 0);
    close_world(&world);
}

static void test_fault(void **state)
{
    struct world world;
    pid_t overuser, victim;
    int status;

    needs_driver(550);
    open_world(&world);
    open_domain(&world);
    join_and_wait(&world, 1);
    join_and_wait(&world, 2);
    overuser = start_client(&world, geteuid(), false);
    victim = start_client(&world, geteuid(), false);
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
    close_world(&world);
}

/* A client that does not leave is terminated; when even that does not help, everything is started anew. */
static void test_drain(void **state)
{
    struct world world;
    pid_t control, stubborn, other;

    needs_driver(550);
    open_world(&world);
    world.options.timeout_ms = 1500;
    open_domain(&world);
    join_and_wait(&world, 1);
    control = control_pid(&world);
    stubborn = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, stubborn).server_pid);
    assert_int_equal(domain_fail(&world.fixture.node, stubborn, CUDA_FAULT_LAUNCH_FAILED), 0);
    run_until(&world, has_phase(&world, "faulted "));
    other = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, other).fault == CUDA_FAULT_MPS_SERVER_NOT_READY); /* no client is taken */
    run_until(&world, client_of(&world, stubborn).fault == CUDA_FAULT_MPS_CLIENT_TERMINATED);
    run_until(&world, mps_domain_phase(world.domain) == MPS_SERVING);
    assert_string_equal(world.phases, "starting serving faulted serving ");
    assert_int_equal(control_pid(&world), control); /* terminated, it holds the server no longer */
    end_client(stubborn);
    end_client(other);
    mps_domain_leave(world.domain, 1);
    close_world(&world);
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

/* A server that stays in FAULT is left alone as long as a client that was not hit goes on. It is started anew after
 * that. */
static void test_spared(void **state)
{
    pid_t control, server, spared;
    struct world world;
    uv_timer_t fault;
    int64_t until_ms;

    needs_driver(550);
    open_world(&world);
    world.options.timeout_ms = 1500;
    world.options.is_hit = is_hit;
    open_domain(&world);
    join_and_wait(&world, 1);
    control = control_pid(&world);
    world.meant = start_client(&world, geteuid(), true);
    spared = start_client_on(&world, 1, geteuid(), true);
    run_until(&world, client_of(&world, world.meant).server_pid && client_of(&world, spared).server_pid);
    server = client_of(&world, spared).server_pid;
    assert_int_equal(domain_fail(&world.fixture.node, world.meant, CUDA_FAULT_LAUNCH_FAILED), 0);
    uv_timer_init(&world.loop, &fault);
    fault.data = &server;
    uv_timer_start(&fault, on_fault_again, 0, 100); /* it would recover otherwise */
    run_until(&world, client_of(&world, world.meant).fault == CUDA_FAULT_MPS_CLIENT_TERMINATED);
    end_client(world.meant);
    uv_update_time(&world.loop);
    until_ms = (int64_t)uv_now(&world.loop) + 3 * (int64_t)world.options.timeout_ms;
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
    close_world(&world);
}

/* A server, then a daemon, that is killed. */
static void test_killed(void **state)
{
    struct world world;
    pid_t control, client;

    open_world(&world);
    open_domain(&world);
    join_and_wait(&world, 1);
    client = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, client).server_pid);
    control = control_pid(&world);
    kill(client_of(&world, client).server_pid, SIGKILL);
    end_client(client);
    run_until(&world, has_phase(&world, "serving faulted serving "));
    assert_int_equal(control_pid(&world), control);
    kill(control, SIGKILL);
    run_until(&world, has_phase(&world, "serving faulted serving faulted serving "));
    assert_int_not_equal(control_pid(&world), control);
    mps_domain_leave(world.domain, 1);
    close_world(&world);
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

static void test_termination(void **state)
{
    struct world world;
    uint64_t lists;
    pid_t other;

    needs_driver(535);
    open_world(&world);
    open_domain(&world);
    join_and_wait(&world, 1);
    world.meant = start_client(&world, geteuid(), true);
    other = start_client(&world, geteuid(), true);
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
    enum mps_language language = strcmp(getenv("CUDA_MPS_PROTOCOL_VERSION"), "3") == 0 ? MPS_V3 : MPS_V2;
    CLEANUP(free_ptr)
    char *line =
        xasprintf("%s CUDA_MPS_PIPE_DIRECTORY='%s' '%s' %s", language == MPS_V2 ? "echo get_server_list |" : "",
                  mps_domain_pipe_directory(world->domain), CARMA_MPS_CONTROL, language == MPS_V3 ? "server list" : "");
    FILE *answer = popen(line, "r");
    struct mps_pids servers = {0};
    char text[1024];
    struct error err;

    assert_non_null(answer);
    text[fread(text, 1, sizeof text - 1, answer)] = '\0';
    pclose(answer);
    assert_int_equal(mps_read_servers(language, text, &servers, &err), 0);
    return servers.count ? servers.items[0] : 0;
}

/* Another user's server comes when the first has no job, before he has a client; one of his waits for it. */
static void test_other_user(void **state)
{
    struct world world;
    pid_t first, second;

    if (geteuid() != 0)
        skip(); /* only root's daemon serves others */
    open_world(&world);
    open_domain(&world);
    join_and_wait(&world, 1);
    first = start_client(&world, 0, false);
    run_until(&world, client_of(&world, first).server_pid);
    assert_int_equal(uid_of(client_of(&world, first).server_pid), 0);
    mps_domain_join(world.domain, 2, OTHER_UID, on_ready, &world);
    second = start_client(&world, OTHER_UID, false);
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
    end_client(second);
    mps_domain_join(world.domain, 3, 0, on_ready, &world);
    mps_domain_leave(world.domain, 2);
    run_until(&world, world.ready_count == 3);
    assert_int_equal(uid_of(server_of(&world)), 0);
    mps_domain_leave(world.domain, 3);
    close_world(&world);
}

static void test_many_users(void **state)
{
    struct world world;
    pid_t first, second;

    if (geteuid() != 0)
        skip();
    needs_driver(555);
    open_world(&world);
    world.options.multiuser = true;
    open_domain(&world);
    join_and_wait(&world, 1);
    mps_domain_join(world.domain, 2, OTHER_UID, on_ready, &world);
    run_until(&world, world.ready_count == 2);
    first = start_client(&world, 0, false);
    second = start_client(&world, OTHER_UID, false);
    run_until(&world, client_of(&world, first).server_pid && client_of(&world, second).server_pid);
    assert_int_equal(client_of(&world, first).server_pid, client_of(&world, second).server_pid);
    end_client(first);
    end_client(second);
    mps_domain_leave(world.domain, 1);
    mps_domain_leave(world.domain, 2);
    close_world(&world);
}

/* 48 clients, as the driver of this node has it. */
static void test_limit(void **state)
{
    struct world world;
    pid_t clients[49];

    open_world(&world);
    assert_true(world.fixture.node.file->cuda_version < 13010);
    open_domain(&world);
    join_and_wait(&world, 1);
    for (int i = 0; i < 49; i++)
        clients[i] = start_client(&world, geteuid(), true);
    run_until(&world, client_of(&world, clients[48]).fault || client_of(&world, clients[48]).server_pid);
    assert_int_equal(client_of(&world, clients[48]).fault, 808);
    for (int i = 0; i < 48; i++)
        assert_int_equal(client_of(&world, clients[i]).fault, 0);
    for (int i = 0; i < 49; i++)
        end_client(clients[i]);
    mps_domain_leave(world.domain, 1);
    close_world(&world);
}

static void fails(struct world *world, const char *program, uint64_t timeout_ms, int status, const char *text)
{
    open_world(world);
    world->options.program = program;
    world->options.timeout_ms = timeout_ms;
    open_domain(world);
    mps_domain_join(world->domain, 1, geteuid(), on_ready, world);
    run_until(world, world->ready_count);
    assert_int_equal(world->ready_status, status);
    if (!strstr(world->ready_error, text))
        fail_msg("'%s' is not in '%s'", text, world->ready_error);
    run_until(world, mps_domain_phase(world->domain) == MPS_DOWN);
    run_until(world, programs_left(world) == 0); /* killed programs are gone a moment later */
    assert_int_equal(mps_domain_jobs(world->domain), 0);
    close_world(world);
}

static void test_failures(void **state)
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
    char *path;
    FILE *file;

    assert_non_null(mkdtemp(directory));
    path = xasprintf("%s/nvidia-cuda-mps-test", directory);
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

/* On PATH there is nothing of the name that may be executed. execvp() says the same where a folder of PATH cannot be
 * read. */
static void test_not_on_the_path(void **state)
{
    struct world world;
    CLEANUP(free_ptr) char *path = xstrdup(getenv("PATH"));
    CLEANUP(free_ptr) char *with = NULL;
    char *program = write_program(""), *slash = strrchr(program, '/');

    assert_int_equal(chmod(program, 0644), 0);
    with = xasprintf("%s:%.*s", path, (int)(slash - program), program);
    setenv("PATH", with, 1);
    fails(&world, slash + 1, 300, -ENOENT, "there is no MPS control program 'nvidia-cuda-mps-test': install");
    setenv("PATH", path, 1);
    remove_program(program);
}

/* A daemon that came up and has no server is stopped, whether it writes a pid file or not. */
static void test_no_server(void **state)
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
static void test_late(void **state)
{
    struct world world;
    char *program = write_program("(sleep 30; :) & sleep 30; :");

    fails(&world, program, 300, -ETIMEDOUT, "nvidia-cuda-mps-test does not answer");
    remove_program(program);
}

static void test_multiuser_check(void **state)
{
    struct world world;
    struct error err;

    open_world(&world);
    if (geteuid() != 0) {
        assert_int_equal(mps_try_multiuser(CARMA_MPS_CONTROL, &err), -EPERM);
        assert_non_null(strstr(err.text, "only root's MPS server"));
    } else {
        bool can = atoi(driver) >= 555;
        assert_int_equal(mps_try_multiuser(CARMA_MPS_CONTROL, &err), can ? 0 : -ENOTSUP);
        if (!can)
            assert_non_null(
                strstr(err.text, "has no MPS server for several users: install a driver from 555 on, or set"));
        assert_int_equal(mps_try_multiuser("/no/such/program", &err), -ENOENT);
        assert_int_equal(mps_try_multiuser("/bin/true", &err), -ENOTSUP); /* says that it started */
    }
    assert_int_equal(programs_left(&world), 0);
    fixture_close(&world.fixture);
    uv_loop_close(&world.loop);
}

/* The arguments: the version that the control program speaks, and the driver that it is of. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_and_down), cmocka_unit_test(test_adoption),        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_drain),       cmocka_unit_test(test_killed),          cmocka_unit_test(test_termination),
        cmocka_unit_test(test_other_user),  cmocka_unit_test(test_many_users),      cmocka_unit_test(test_limit),
        cmocka_unit_test(test_failures),    cmocka_unit_test(test_not_on_the_path), cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_late),        cmocka_unit_test(test_multiuser_check), cmocka_unit_test(test_spared),
    };

    setenv("CUDA_MPS_PROTOCOL_VERSION", argc > 1 ? argv[1] : "2", 1);
    if (argc > 2)
        driver = argv[2];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
