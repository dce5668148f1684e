#include "daemon/run/runs_lease.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/lease.h"
#include "base/memory.h"
#include "base/proc.h"
#include "daemon/run/runs_internal.h"
#include "launch/cgroup/cgroup.h"

bool runs_is_lease(const struct job_view *view)
{
    return view->common->spec->engine;
}

static struct run *find(const struct runs *runs, uint64_t job)
{
    struct run *run = runs_run_of(runs, job);

    return run && run->status.shepherd && (run->status.phase == LAUNCH_STARTING || run->status.phase == LAUNCH_RUNNING)
               ? run
               : NULL;
}

const struct lease *runs_lease_of(const struct runs *runs, uint64_t job, struct launch_status *status)
{
    const struct run *run = find(runs, job);

    if (run)
        *status = run->status;
    return run ? &run->lease : NULL;
}

/* The group must hold nobody but the lease's processes: neither carmad nor other jobs. */
static int check_group(const char *cgroup, struct error *err)
{
    CLEANUP(close_fd) int fd = cgroup_open(cgroup);

    if (fd < 0)
        return error_set(err, ENOENT, "there is no control group '%.200s' of version 2: leave cgroup out", cgroup);
    if (!cgroup_is_apart(cgroup))
        return error_set(err, EINVAL, "control group '%.200s' is carma's, or has carmad in it: name the step's own",
                         cgroup);
    return 0;
}

/* carmad, whatever has it among its children, its own children, and the shepherds that an earlier one has left. */
static bool is_carmas(const struct runs *runs, pid_t pid, pid_t parent)
{
    struct proc_stat above = {.parent = getpid()};

    for (const struct run *run = runs->first; run; run = run->next)
        if (pid == run->shepherd)
            return true;
    do
        if (pid == above.parent)
            return true;
    while (above.parent > 1 && proc_read_stat(above.parent, &above) == 0);
    return parent == getpid();
}

/* A process of the lease's user, and of no other job. Slurm's task is still root's: it speaks for itself, or its
 * parent, a slurmstepd, is named. */
static int check_process(const struct runs *runs, const struct run *own, pid_t pid, pid_t teller, pid_t caller,
                         struct lease_task *task, struct error *err)
{
    struct proc_stat stat, again, parent;
    int gone = proc_read_stat(pid, &stat);
    uint64_t owner = gone ? 0 : runs_owner_of(runs, pid);
    bool own_word = pid == caller || (!gone && teller > 0 && teller == stat.parent);
    uid_t uid;

    if (gone || proc_read_uid(pid, &uid) < 0 || proc_read_stat(pid, &again) < 0 ||
        again.start_ticks != stat.start_ticks)
        return error_set(err, ENOENT, "there is no process %d", (int)pid);
    if (is_carmas(runs, pid, stat.parent))
        return error_set(err, EINVAL, "process %d is carma's own: name the step's", (int)pid);
    if (uid != own->uid && !own_word)
        return error_set(err, EINVAL, "process %d is of uid %u, and the lease of uid %u: name the step's", (int)pid,
                         (unsigned)uid, (unsigned)own->uid);
    if (owner != 0 && owner != own->job)
        return error_set(err, EINVAL, "process %d is job %" PRIu64 "'s: name the step's", (int)pid, owner);
    *task = (struct lease_task){.pid = pid, .start_ticks = stat.start_ticks};
    if (own_word && stat.parent > 1 && proc_read_stat(stat.parent, &parent) == 0) {
        task->parent = stat.parent;
        task->parent_start_ticks = parent.start_ticks;
    }
    return 0;
}

static int take(struct lease *lease, const char *name, const struct lease_attach *attach,
                const struct lease_task *tasks, struct error *err)
{
    struct lease_step *step = lease_step(lease, name);

    if (!step)
        return error_set(err, ENOSPC, "the lease has %d steps, which is the most", LEASE_MAX_STEPS);
    for (size_t i = 0; i < attach->count; i++)
        if (!lease_add_task(lease, step, tasks[i]))
            return error_set(err, ENOSPC, "the lease has %d processes, which is the most", LEASE_MAX_TASKS);
    if (attach->cgroup) {
        free(step->cgroup);
        step->cgroup = xstrdup(attach->cgroup);
    }
    return 0;
}

static int tell(const struct run *run, struct error *err)
{
    int code = lease_write(run->directory, &run->lease, err);

    if (code == 0)
        lease_wake(run->status.shepherd, run->status.shepherd_start_ticks);
    return code;
}

int runs_lease_attach(struct runs *runs, uint64_t job, const char *step, const struct lease_attach *attach,
                      pid_t caller, struct error *err)
{
    struct run *run = find(runs, job);
    struct lease_task tasks[LEASE_PIDS_MAX];
    int code = 0;

    if (!run || run->lease.ended)
        return error_set(err, ENOENT, "lease %" PRIu64 " is not under way", job);
    /* its own group is watched by itself */
    if (attach->cgroup && strcmp(attach->cgroup, run->status.cgroup) != 0 &&
        (code = check_group(attach->cgroup, err)) < 0)
        return code;
    for (size_t i = 0; i < attach->count && code == 0; i++)
        code = check_process(runs, run, attach->pids[i], attach->teller, caller, &tasks[i], err);
    if (code == 0)
        code = take(&run->lease, step, attach, tasks, err);
    return code < 0 ? code : tell(run, err);
}

static int tell_end(struct run *run, const struct lease_end *end, struct error *err)
{
    int code;

    run->lease.ended = true;
    run->lease.stopped = end->stopped;
    run->lease.exit_status = end->exit_status;
    run->lease.signal = end->signal;
    free(run->lease.output);
    run->lease.output = end->output ? xstrdup(end->output) : NULL;
    code = tell(run, err);
    run->lease.ended = code == 0; /* else it is said again */
    return code;
}

int runs_lease_end(struct runs *runs, uint64_t job, const struct lease_end *end, struct error *err)
{
    struct run *run = find(runs, job);
    int code;

    if (!run)
        return error_set(err, ENOENT, "lease %" PRIu64 " is not under way", job);
    code = run->lease.ended ? 0 : tell_end(run, end, err);
    if (code == 0)
        runs_told(run); /* maybe by an earlier carmad */
    return code;
}

int runs_lease_environment(const struct runs *runs, uint64_t job, char **text, size_t *length, struct error *err)
{
    const struct run *run = find(runs, job);

    return run ? lease_read_environment(run->directory, text, length, err)
               : error_set(err, ENOENT, "lease %" PRIu64 " is not under way", job);
}
