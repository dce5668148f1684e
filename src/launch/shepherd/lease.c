/* The shepherd of a lease: it watches processes that it did not start, and takes their end from the daemon. */
#include "launch/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "launch/cause.h"
#include "launch/cgroup/cgroup.h"
#include "launch/shepherd/shepherd.h"
#include "launch/shepherd/variables.h"

#define LOOK_MS 500

/* The process that was forked for a job has read that there is none. */
static void drop_process(struct shepherd *s)
{
    if (s->process > 0) {
        kill(s->process, SIGKILL);
        waitpid(s->process, NULL, 0);
    }
    s->process = s->status.process = 0;
    s->status.process_start_ticks = 0;
    close_fd(&s->report_fd);
    s->report_fd = -1;
}

int lease_prepare(struct shepherd *s, struct error *err)
{
    CLEANUP(free_ptr) char *path = lease_environment_file(s->request.run_directory);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    sigset_t watched;

    drop_process(s);
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGUSR1);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_SETMASK, &watched, NULL);
    signal(SIGUSR1, SIG_DFL);
    signalfd(s->signal_fd, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*s->status.cgroup) {
        s->memory_group = xstrdup(s->status.cgroup);
        s->oom_kills = cgroup_oom_kills(s->memory_group);
    }
    variables_print(&s->request, &text);
    return file_replace(path, text.text, text.length, 0600, err);
}

static bool anybody_lives(const struct shepherd *s, const struct lease *lease)
{
    if ((*s->status.cgroup && cgroup_is_populated(s->status.cgroup)) || lease_living_task(lease))
        return true;
    for (size_t i = 0; i < lease->count; i++)
        if (lease->steps[i].cgroup && cgroup_is_populated(lease->steps[i].cgroup))
            return true;
    return false;
}

/* The first process has come: the time counts from here on. */
static void begin(struct shepherd *s)
{
    s->status.started_ns = nodetime_now_ns();
    s->status.phase = LAUNCH_RUNNING;
    shepherd_write_status(s);
}

static void end_without_word(struct shepherd *s, enum exit_cause cause, const char *why)
{
    s->status.cause = cause;
    status_set_message(&s->status, why, strlen(why));
}

/* A file that the job's user can read, so that a child with his rights classifies it as a job's own output. */
static int open_output(const char *text)
{
    CLEANUP(close_fd) int fd = memfd_create("carma-lease-output", MFD_CLOEXEC);
    CLEANUP(free_ptr) char *path = xasprintf("/proc/self/fd/%d", fd);
    size_t length = strlen(text);

    return fd >= 0 && write(fd, text, length) == (ssize_t)length && fchmod(fd, 0444) == 0
               ? open(path, O_PATH | O_CLOEXEC)
               : -1;
}

static void take_end(struct shepherd *s, const struct lease *lease)
{
    struct launch_status *status = &s->status;
    struct cause_evidence evidence;

    status->exit_status = lease->exit_status;
    status->signal = lease->signal;
    status->stopped |= lease->stopped;
    if (status->exit_status != 0 && !status->stopped) {
        s->output.fd = lease->output ? open_output(lease->output) : -1;
        ending_examine(s);
    }
    evidence = launch_evidence(status);
    status->cause = cause_decide(&evidence);
}

static bool is_of_an_earlier_step(const struct lease *lease, size_t number, const char *cgroup)
{
    for (size_t i = 0; i < number; i++)
        if (lease->steps[i].cgroup && strcmp(lease->steps[i].cgroup, cgroup) == 0)
            return true;
    return false;
}

/* A step may have come with a group of its own: the lease's own group, which has the filter, is then empty. */
static void filter_devices(const struct shepherd *s, const struct lease *lease, size_t *filtered)
{
    for (; *filtered < lease->count; ++*filtered) {
        const char *cgroup = lease->steps[*filtered].cgroup;

        if (cgroup && strcmp(cgroup, s->status.cgroup) != 0 && !is_of_an_earlier_step(lease, *filtered, cgroup))
            group_filter_devices(s, cgroup);
    }
}

static int64_t patience_ms(const struct lease *lease)
{
    for (size_t i = 0; i < lease->count; i++)
        if (strcmp(lease->steps[i].name, "batch") == 0)
            return LEASE_BATCH_MS;
    return LEASE_ORPHAN_MS;
}

void lease_watch(struct shepherd *s)
{
    CLEANUP(lease_release) struct lease lease = {0};
    size_t filtered = 0;
    int64_t now_ns = nodetime_monotonic_wall_ns(), expires_ns = now_ns + s->request.start_timeout_ns, seen_ns = now_ns;

    shepherd_write_status(s); /* its user waits for that */
    for (;;) {
        struct pollfd ready = {.fd = s->signal_fd, .events = POLLIN};
        bool stop;

        poll(&ready, 1, LOOK_MS);
        stop = shepherd_stop_is_pending(s); /* before the file: the sender of the signal has written that */
        lease_release(&lease);
        if (lease_read(s->request.run_directory, &lease, NULL) == -ENOENT)
            break;
        now_ns = nodetime_monotonic_wall_ns();
        filter_devices(s, &lease, &filtered);
        if (lease.count && s->status.phase == LAUNCH_STARTING) {
            begin(s);
            seen_ns = now_ns;
        }
        if (anybody_lives(s, &lease) || lease_has_teller(&lease))
            seen_ns = now_ns;
        if (lease.ended) {
            take_end(s, &lease);
            break;
        }
        if (stop) {
            lease.stopped = true;
            lease.exit_status = -1;
            lease.signal = SIGTERM;
            take_end(s, &lease);
            break;
        }
        if (s->status.phase == LAUNCH_STARTING && now_ns >= expires_ns) {
            end_without_word(s, EXIT_EXPIRED, "no process of its job came to use it");
            break;
        }
        if (s->status.phase == LAUNCH_RUNNING && now_ns >= seen_ns + patience_ms(&lease) * NS_PER_MS) {
            end_without_word(s, EXIT_ORPHAN, "its processes have gone, and nobody said how they ended");
            break;
        }
    }
    s->status.phase = LAUNCH_ENDED;
    s->status.ended_ns = nodetime_now_ns();
}
