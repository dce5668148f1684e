/* For tests that launch real small processes through the real shepherd (path in CARMA_SHEPHERD). */
#ifndef CARMA_TESTS_LAUNCH_FIXTURE_H
#define CARMA_TESTS_LAUNCH_FIXTURE_H

#include "unit.h"

#include <ftw.h>
#include <sys/prctl.h>

#include "launch/launch.h"

#define PATIENCE_MS 20000 /* a loaded machine; nothing waits so long when it works */

struct fixture {
    char root[64];
    char run[128];
    char work[128];
    char output[160];
    char error[160];
    char socket_path[128];
    int socket;
    bool drains;
    char *argv[8];
    char *env[8];
    struct launch_request request;
    struct launch_status status;
    pid_t shepherd;
    uint64_t ticks;
    uint32_t launches;
};

/* The words of argv and env are not const; nothing here changes them. */
static inline char *mutable(const char *text)
{
    return (char *)(uintptr_t)text;
}

static inline int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(f->root, sizeof f->root, "/tmp/carma-launch-XXXXXX");
    if (!mkdtemp(f->root) || chmod(f->root, 0755) < 0)
        return -1;
    snprintf(f->work, sizeof f->work, "%s/work", f->root);
    snprintf(f->output, sizeof f->output, "%s/out", f->work);
    snprintf(f->error, sizeof f->error, "%s/err", f->work);
    snprintf(f->socket_path, sizeof f->socket_path, "%s/notify", f->root);
    if (mkdir(f->work, 0755) < 0)
        return -1;
    memcpy(address.sun_path, f->socket_path, strlen(f->socket_path) + 1);
    f->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (f->socket < 0 || bind(f->socket, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    f->drains = true;
    f->env[0] = mutable("PATH=/usr/local/bin:/usr/bin:/bin");
    f->request = (struct launch_request){.shepherd = getenv("CARMA_SHEPHERD"),
                                         .run_directory = f->run,
                                         .name = "probe",
                                         .directory = f->work,
                                         .output = f->output,
                                         .error = f->error,
                                         .arguments = f->argv,
                                         .environment = f->env,
                                         .environment_count = 1,
                                         .job = 42,
                                         .uid = geteuid(),
                                         .gid = getegid(),
                                         .user = "someone",
                                         .gpu_uuids = "GPU-aaaa,GPU-bbbb",
                                         .gpu_memory_bytes = 12 * GIB,
                                         .gpu_total_bytes = 39 * GIB,
                                         .notify_socket = f->socket_path,
                                         .grace_ns = 300 * NS_PER_MS};
    *state = f;
    return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    return remove(path);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->socket);
    nftw(f->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

/* The job's login shell, which it has for conda, does this before anything else. */
static inline void slow_profile(struct fixture *f, const char *script)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/.bash_profile", f->work);
    static char home[160];
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file, "%s\n", script);
    fclose(file);
    snprintf(home, sizeof home, "HOME=%s", f->work);
    f->env[1] = home;
    f->request.environment_count = 2;
    f->request.conda_environment = "any";
}

/* One look for what a dead shepherd has left; 0: nothing. */
static inline int sweep(const struct fixture *f)
{
    static struct sweeper sweeper;
    enum launch_left left;

    sweeper.next_wall_ns = 0;
    while ((left = launch_sweep_aside(f->request.shepherd, &f->status, f->run, geteuid(), SIGKILL, &sweeper)) ==
           LEFT_UNKNOWN)
        poll(NULL, 0, 5);
    return (int)left;
}

static inline void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static inline void command(struct fixture *f, const char *script)
{
    f->argv[0] = mutable("sh");
    f->argv[1] = mutable("-c");
    f->argv[2] = mutable(script);
    f->argv[3] = NULL;
    f->request.argument_count = 3;
}

/* A daemon's usual state: a shepherd that finds the socket full waits. */
static inline void drain(const struct fixture *f)
{
    char text[64];

    while (recv(f->socket, text, sizeof text, MSG_DONTWAIT) > 0)
        ;
}

/* A launch that goes at once. */
static inline int launch_start(struct fixture *f, struct error *err)
{
    struct launch_begun begun;
    int code = launch_begin(&f->request, &begun, err);

    if (code < 0)
        return code;
    launch_go(&begun);
    f->shepherd = begun.shepherd;
    f->ticks = begun.start_ticks;
    return 0;
}

static inline void start(struct fixture *f)
{
    struct error err = {{0}};

    if (f->drains)
        drain(f);
    f->request.launch = ++f->launches;
    snprintf(f->run, sizeof f->run, "%s/runs/42.%u", f->root, f->launches);
    fail_if(launch_start(f, &err) < 0, err);
}

/* Waits until the launch has this phase, or is over. */
static inline void await_phase(struct fixture *f, enum launch_phase phase)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        struct error err;
        int code = launch_read_status(f->run, &f->status, &err);
        fail_if(code < 0 && code != -ENOENT, err);
        if (code == 0 &&
            (f->status.phase == phase || f->status.phase == LAUNCH_ENDED || f->status.phase == LAUNCH_FAILED)) {
            if (f->status.phase != phase)
                fail_msg("phase %s instead of %s: exit %d signal %d %s", launch_phase_name(f->status.phase),
                         launch_phase_name(phase), f->status.exit_status, f->status.signal, f->status.message);
            return;
        }
        pause_ms(5);
    }
    fail_msg("still no phase %s", launch_phase_name(phase));
}

/* The file's text, until the next call. */
static inline const char *contents(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    text[length] = '\0';
    return text;
}

static inline void await_end(struct fixture *f, enum launch_phase phase)
{
    char path[200];

    await_phase(f, phase);
    for (int i = 0; i < PATIENCE_MS / 5 && launch_alive(f->shepherd, f->ticks); i++)
        pause_ms(5);
    assert_false(launch_alive(f->shepherd, f->ticks));
    snprintf(path, sizeof path, "%s/shepherd.log", f->run);
    if (*contents(path)) /* a sanitizer's words end up there too */
        fail_msg("%s", contents(path));
}

static inline void start_and_end(struct fixture *f, enum launch_phase phase)
{
    start(f);
    await_end(f, phase);
}

static inline void run(struct fixture *f, const char *script, enum launch_phase phase)
{
    command(f, script);
    start_and_end(f, phase);
}

/* Runs the script, of which the end has this cause. */
#define assert_ends(f, script, end)                                                                                    \
    do {                                                                                                               \
        run(f, script, LAUNCH_ENDED);                                                                                  \
        assert_int_equal((f)->status.cause, end);                                                                      \
    } while (0)

/* It exits with this status, of itself. */
#define assert_exits(f, script, with)                                                                                  \
    do {                                                                                                               \
        run(f, script, LAUNCH_ENDED);                                                                                  \
        assert_int_equal((f)->status.exit_status, with);                                                               \
    } while (0)

/* The launch fails before the command, for this reason. */
static inline void assert_fails(struct fixture *f, const char *says)
{
    run(f, "echo unreachable", LAUNCH_FAILED);
    assert_has(f->status.message, says);
}

/* It is refused, and nothing is begun. */
static inline void assert_refused(struct fixture *f, int code, const char *says)
{
    struct error err = {{0}};

    command(f, "true");
    f->request.launch = 1;
    snprintf(f->run, sizeof f->run, "%s/runs/42.1", f->root);
    assert_int_equal(launch_start(f, &err), code);
    assert_has(err.text, says);
}

static inline pid_t pid_in(const char *path)
{
    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        const char *text = contents(path);
        if (strchr(text, '\n'))
            return (pid_t)atoi(text);
        pause_ms(5);
    }
    fail_msg("nothing in %s", path);
    return 0;
}

/* Of the file in which a process of the job has left its number. */
static inline pid_t pid_of(const struct fixture *f, const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "%s/%s", f->work, name);
    return pid_in(path);
}

static inline void start_and_run(struct fixture *f, const char *script)
{
    command(f, script);
    start(f);
    await_phase(f, LAUNCH_RUNNING);
}

static inline void stop(struct fixture *f, enum launch_phase phase)
{
    assert_int_equal(launch_stop(f->shepherd, f->ticks, NULL), 0);
    await_end(f, phase);
}

static inline bool gone(pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(pid, &stat) < 0 || stat.state == 'Z';
}

/* Waits until the file has a line. */
static inline void await_line(const char *path)
{
    for (int i = 0; i < PATIENCE_MS / 5 && !strchr(contents(path), '\n'); i++)
        pause_ms(5);
    assert_non_null(strchr(contents(path), '\n'));
}

static inline void start_and_await_line(struct fixture *f, const char *script)
{
    command(f, script);
    start(f);
    await_line(f->output);
}

/* LAUNCH_TEST(name) { ... }: a test with `struct fixture *f`. */
#define LAUNCH_TEST(name) TEST_ON(name, struct fixture *f, setup, teardown)

/* All the tests of a file, where there is a shepherd to test. */
#define RUN_LAUNCH_TESTS                                                                                               \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        if (getenv("CARMA_SHEPHERD"))                                                                                  \
            return unit_tests_run("tests", NULL, NULL);                                                                \
        fputs("CARMA_SHEPHERD names no shepherd to test\n", stderr);                                                   \
        return 1;                                                                                                      \
    }

#endif
