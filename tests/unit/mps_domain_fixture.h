/* A virtual node and an MPS domain on it, against the virtual control program. Nothing may be
 * left behind. */
#ifndef CARMA_TESTS_MPS_DOMAIN_FIXTURE_H
#define CARMA_TESTS_MPS_DOMAIN_FIXTURE_H

#include "unit.h"

#include "gpu/mps/domain.h"
#include "gpu/mps/trial.h"
#include "vnode/domain.h"
#include "domain_clients.h"
#include "vnode_fixture.h"

#define GUARD_MS 20000

#include "run_until.h"

static const char *driver = "555.58.02"; /* which the node claims to have */

/* Abilities of some drivers only. */
static inline void needs_driver(int major)
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

static inline const char *phase_name(enum mps_phase phase)
{
    static const char *const names[] = {"down", "starting", "serving", "faulted", "stopping"};

    return (uint32_t)phase < MPS_PHASE_COUNT ? names[phase] : "?";
}

static inline void on_phase(void *user, struct mps_domain *domain, enum mps_phase phase, const char *why)
{
    struct world *world = user;
    size_t length = strlen(world->phases);

    (void)domain;
    assert_non_null(why);
    snprintf(world->phases + length, sizeof world->phases - length, "%s ", phase_name(phase));
}

static inline void on_ready(void *user, uint64_t job, int status, const struct error *err)
{
    struct world *world = user;

    world->ready_count++;
    world->ready_job = job;
    world->ready_status = status;
    snprintf(world->ready_error, sizeof world->ready_error, "%s", status < 0 ? err->text : "");
}

static inline void open_world(struct world *world)
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

static inline void open_domain(struct world *world)
{
    struct error err;

    fail_if(mps_domain_new(&world->options, &world->domain, &err) < 0, err);
}

#define run_until(world, condition) run_until_or(world, condition, (world)->ready_error)

static inline pid_t control_pid(const struct world *world)
{
    return mps_domain_daemon(world->domain);
}

/* Control daemons and servers of this test's node that run. */
static inline int programs_left(const struct world *world)
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

static inline int remove_tree(const char *path)
{
    CLEANUP(free_ptr) char *command = xasprintf("rm -rf '%s'", path);

    return system(command);
}

/* Frees the domain, and sees that nothing is left. */
static inline void close_world(struct world *world)
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

static inline void join_and_wait(struct world *world, uint64_t job)
{
    int before = world->ready_count;

    mps_domain_join(world->domain, job, geteuid(), on_ready, world);
    run_until(world, world->ready_count > before);
    if (world->ready_status < 0)
        fail_msg("%s", world->ready_error);
    assert_int_equal(world->ready_job, job);
}

/* A world with a domain that serves job 1. */
static inline void open_serving(struct world *world)
{
    open_world(world);
    open_domain(world);
    join_and_wait(world, 1);
}

/* Who may enter: the owner and the mode of an entry of the domain's directory. */
static inline void expect_entry(const struct world *world, const char *name, uid_t owner, mode_t mode)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s", world->directory, name);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, owner);
    assert_int_equal(st.st_mode & 07777, mode);
}

/* A process on the GPU that came through the domain; it ends when the driver says so, unless it is stubborn. */
static inline pid_t start_client_on(struct world *world, uint32_t gpu, uid_t uid, bool stubborn)
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

static inline pid_t start_client(struct world *world, uid_t uid, bool stubborn)
{
    return start_client_on(world, 0, uid, stubborn);
}

static inline void end_client(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline struct domain_client client_of(struct world *world, pid_t pid)
{
    static struct domain_client clients[NODE_MAX_SLOTS];
    uint32_t count = 0;

    domain_clients(&world->fixture.node, attach_mps_domain(mps_domain_pipe_directory(world->domain)), clients, &count);
    for (uint32_t i = 0; i < count; i++)
        if (clients[i].pid == pid)
            return clients[i];
    return (struct domain_client){0};
}

static inline bool has_phase(const struct world *world, const char *text)
{
    return strstr(world->phases, text) != NULL;
}

/* The argument of each of these tests: the driver that the control program is of. */
static inline void take_driver(int argc, char **argv)
{
    setenv("CUDA_MPS_PROTOCOL_VERSION", "3", 1); /* an administrator's: the daemons here are of version 2 */
    if (argc > 1)
        driver = argv[1];
    signal(SIGPIPE, SIG_IGN);
}

#define RUN_MPS_TESTS                                                                                                  \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        take_driver(argc, argv);                                                                                       \
        return unit_tests_run("tests", NULL, NULL);                                                                    \
    }

#endif
