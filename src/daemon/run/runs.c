#include "daemon/run/runs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/spec.h"
#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/handle.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/run/run_directories.h"
#include "launch/owner.h"
#include "launch/spawn_shepherd.h"

/* Shepherds tell of each change. Looking at them all now and then finds the untold ones, e.g. their death. */
#define LOOK_WALL_MS 500

/* The number of tries that the job's launch has left a directory of. */
uint32_t runs_tries_of(const struct runs *runs, const struct job_view *view)
{
    return run_directory_tries(runs->directory, view->id, view->attempts);
}

char *runs_directory_of(const struct runs *runs, const struct job_view *view, uint32_t try)
{
    return run_directory(runs->directory, view->id, view->attempts, try);
}

char *runs_script_directory_of(const struct runs *runs, const char *run_directory)
{
    return xasprintf("%s%s", runs->scripts, strrchr(run_directory, '/'));
}

char *runs_terminal_of(const struct runs *runs, const struct job_view *view)
{
    const struct run *run = view->common->spec->attach ? runs_run_of(runs, view->id) : NULL;
    CLEANUP(free_ptr) char *script = run ? runs_script_directory_of(runs, run->directory) : NULL;

    return launch_terminal_socket(script);
}

static void run_free(struct run *run)
{
    free(run->directory);
    lease_release(&run->lease);
    free(run);
}

struct run *runs_add(struct runs *runs, const struct job_view *view, const char *directory, pid_t shepherd,
                     uint64_t start_ticks)
{
    struct run *run = xcalloc(1, sizeof *run);
    struct error err;

    *run = (struct run){.job = view->id,
                        .directory = xstrdup(directory),
                        .shepherd = shepherd,
                        .start_ticks = start_ticks,
                        .uid = view->wants->uid,
                        .is_lease = view->wants->external,
                        .next = runs->first};
    if (run->is_lease && lease_read(directory, &run->lease, &err) < 0)
        daemon_log("job %" PRIu64 ": %s", view->id, err.text);
    runs->first = run;
    return run;
}

/* The launch of the job that is under way. */
struct run *runs_run_of(const struct runs *runs, uint64_t job)
{
    for (struct run *run = runs->first; run; run = run->next)
        if (run->job == job && !run->over)
            return run;
    return NULL;
}

void runs_remove(struct runs *runs, struct run *run)
{
    struct run **at = &runs->first;

    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run_free(run);
}

void runs_input(struct runs *runs, const struct record *record)
{
    struct error err;

    if (engine_input(runs->daemon->engine, record, &err) != 0)
        daemon_log("job %" PRIu64 ": %s", record->job, err.text);
}

void runs_set_message(struct runs *runs, uint64_t job, const char *message)
{
    struct job_view *view = views_find(&runs->daemon->views, job);

    if (!view)
        return;
    job_view_set_message(view, message);
    views_touch(&runs->daemon->views, view);
}

void runs_feed_launch_failed(struct runs *runs, uint64_t job, const char *message)
{
    runs_set_message(runs, job, message);
    runs_input(runs, &(struct record){.type = RECORD_LAUNCH_FAILED, .at_ns = nodetime_now_ns(), .job = job});
}

void runs_feed_lost(struct runs *runs, uint64_t job, const char *message)
{
    runs_set_message(runs, job, message);
    runs_input(runs, &(struct record){.type = RECORD_LOST, .at_ns = nodetime_now_ns(), .job = job});
}

const char *runs_host_limits_gap(const struct runs *runs, const struct job_spec *spec)
{
    return spec->cpus > 0 || spec->host_memory_bytes > 0 ? runs->limits_gap : NULL;
}

uint64_t runs_owner_of(const struct runs *runs, pid_t pid)
{
    CLEANUP(free_ptr) struct owner_launch *attempts = NULL;
    const struct owner_launch *found;
    size_t count = 0, capacity = 0;

    for (const struct run *run = runs->first; run; run = run->next) {
        array_reserve(attempts, capacity, count + 1);
        attempts[count++] = (struct owner_launch){.job = run->job,
                                                  .shepherd = run->shepherd,
                                                  .shepherd_start_ticks = run->start_ticks,
                                                  .process = run->status.process,
                                                  .process_start_ticks = run->status.process_start_ticks,
                                                  .cgroup = run->status.cgroup,
                                                  .lease = run->is_lease ? &run->lease : NULL};
    }
    found = owner_find(pid, attempts, count);
    return found ? found->job : 0;
}

int runs_last_status(const struct runs *runs, const struct job_view *view, struct launch_status *status)
{
    CLEANUP(free_ptr) char *directory = runs_directory_of(runs, view, runs_tries_of(runs, view));

    return launch_read_status(directory, status, NULL);
}

uint32_t runs_count(const struct runs *runs)
{
    uint32_t count = 0;

    for (const struct run *run = runs->first; run; run = run->next)
        count += !run->over;
    return count;
}

const char *runs_directory(const struct runs *runs)
{
    return runs->directory;
}

/* On a descriptor that is there already, it takes the place of the socket behind that. */
static int open_notify_socket(struct runs *runs, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (strlen(runs->notify_path) >= sizeof address.sun_path)
        return error_set(err, ENAMETOOLONG,
                         "the state directory's path is too long for a socket: '%s' has more than %zu "
                         "characters; choose a shorter one",
                         runs->notify_path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, runs->notify_path, strlen(runs->notify_path) + 1);
    unlink(runs->notify_path); /* ours: the state directory is locked */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        (runs->notify_fd >= 0 && dup3(fd, runs->notify_fd, O_CLOEXEC) < 0))
        return error_set(err, errno, "cannot make the socket '%s': %s", runs->notify_path, strerror(errno));
    if (runs->notify_fd < 0) {
        runs->notify_fd = fd;
        fd = -1;
    }
    return 0;
}

/* Beside the socket, which jobs can reach; the state directory they cannot. */
static int make_scripts(struct runs *runs, struct error *err)
{
    int rc = file_make_dirs(runs->scripts, geteuid() == 0 ? 0755 : 0700, err); /* as that of the socket */

    if (rc)
        return rc;
    rc = guarded_own_directory(runs->scripts, 0711, err);
    if (rc)
        error_prefix(err, "the directory '%s', for the scripts of jobs, cannot be used", runs->scripts);
    return rc;
}

int runs_new(struct daemon *daemon, struct runs **result, struct error *err)
{
    struct runs *runs = xcalloc(1, sizeof *runs);
    int status;

    runs->daemon = daemon;
    runs->notify_fd = -1;
    runs->directory = xasprintf("%s/runs", daemon->config.state_directory);
    runs->notify_path = xasprintf("%s/notify", daemon->config.state_directory);
    runs->shepherd_path = install_path("lib/carma/carma-shepherd");
    runs->scripts = xasprintf("%s.scripts", daemon->config.socket);
    status = file_make_dirs(runs->directory, 0700, err);
    if (status == 0)
        status = make_scripts(runs, err);
    if (status == 0)
        status = open_notify_socket(runs, err);
    if (status != 0) {
        runs_free(runs);
        return status;
    }
    runs->notify_poll = xmalloc(sizeof *runs->notify_poll);
    uv_poll_init(daemon->loop, runs->notify_poll, runs->notify_fd);
    runs->notify_poll->data = runs;
    uv_poll_start(runs->notify_poll, UV_READABLE, runs_on_notified);
    runs->look = xmalloc(sizeof *runs->look);
    uv_timer_init(daemon->loop, runs->look);
    runs->look->data = runs;
    uv_timer_start(runs->look, runs_on_look, LOOK_WALL_MS, LOOK_WALL_MS);
    runs->prepare = xmalloc(sizeof *runs->prepare);
    uv_timer_init(daemon->loop, runs->prepare);
    runs->prepare->data = runs;
    uv_timer_start(runs->prepare, runs_on_prepare, PREPARE_WALL_MS, 0);
    *result = runs;
    return 0;
}

/* The kernel forgets what was waited for on a socket that is closed. */
static int open_notify_socket_again(struct runs *runs, struct error *err)
{
    int rc;

    uv_poll_stop(runs->notify_poll);
    rc = open_notify_socket(runs, err);
    uv_poll_start(runs->notify_poll, UV_READABLE, runs_on_notified);
    return rc;
}

static int make_runs(struct runs *runs, struct error *err)
{
    return file_make_dirs(runs->directory, 0700, err);
}

/* One line for each that was made again; one for a trouble that lasts. */
void runs_heal(struct runs *runs)
{
    const struct {
        const char *path;
        int (*make)(struct runs *runs, struct error *err);
    } places[] = {
        {runs->directory, make_runs}, {runs->scripts, make_scripts}, {runs->notify_path, open_notify_socket_again}};
    struct error err;

    for (size_t i = 0; i < array_size(places); i++) {
        if (access(places[i].path, F_OK) == 0 || errno != ENOENT)
            continue;
        if (places[i].make(runs, &err) == 0)
            daemon_log("%s was removed: carmad has made it again", places[i].path);
        else if (!runs->heal_told)
            daemon_log("%s was removed, and cannot be made again: %s", places[i].path, err.text);
        else
            continue;
        runs->heal_told = access(places[i].path, F_OK) < 0;
    }
}

void runs_free(struct runs *runs)
{
    if (!runs)
        return;
    if (runs->notify_poll)
        uv_close((uv_handle_t *)runs->notify_poll, free_handle);
    if (runs->look)
        uv_close((uv_handle_t *)runs->look, free_handle);
    if (runs->prepare)
        uv_close((uv_handle_t *)runs->prepare, free_handle);
    runs_drop_early(runs);
    spawn_unprepare();
    close_fd(&runs->notify_fd);
    for (struct run *run = runs->first, *next; run; run = next) {
        next = run->next;
        run_free(run);
    }
    free(runs->directory);
    free(runs->scripts);
    free(runs->shepherd_path);
    free(runs->notify_path);
    free(runs->limits_gap);
    free(runs);
}
