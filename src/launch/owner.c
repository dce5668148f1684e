#include "launch/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "launch/cgroup/cgroup.h"
#include "launch/lease.h"

/* Of a process tree. A job is rarely twenty deep; who is deeper is found by control group or session, or is nobody's.
 * Users can make many processes of any depth, and each parent costs a reading. */
#define DEPTH_MAX 64

static void facts_release(struct owner_facts *facts)
{
    free(facts->chain);
    free(facts->cgroup);
}

/* A parent that is younger than its child has come to its pid while we walked: there the chain ends. */
static bool facts_read(pid_t pid, struct owner_facts *facts)
{
    struct proc_stat stat;

    for (pid_t at = pid; at > 0 && facts->count < DEPTH_MAX && proc_read_stat(at, &stat) == 0; at = stat.parent) {
        if (facts->count == 0)
            facts->session = stat.session;
        else if (stat.start_ticks > facts->chain[facts->count - 1].start_ticks)
            break;
        array_reserve(facts->chain, facts->capacity, facts->count + 1);
        facts->chain[facts->count++] = (struct owner_link){at, stat.start_ticks};
    }
    if (facts->count == 0)
        return false;
    facts->cgroup = cgroup_of(pid);
    return true;
}

static bool is_in(const struct owner_facts *facts, const char *cgroup)
{
    return cgroup && *cgroup && facts->cgroup && cgroup_is_within(facts->cgroup, cgroup);
}

/* Nobody but the launch's processes is in its groups, however old they are. */
static bool in_cgroup(const struct owner_facts *facts, const struct owner_launch *launch)
{
    bool found = is_in(facts, launch->cgroup);

    for (size_t i = 0; launch->lease && i < launch->lease->count; i++)
        found |= is_in(facts, launch->lease->steps[i].cgroup);
    return found;
}

static bool is_task(const struct owner_link *link, const struct lease_step *step)
{
    for (size_t i = 0; i < step->task_count; i++)
        if (link->pid == step->tasks[i].pid && link->start_ticks == step->tasks[i].start_ticks)
            return true;
    return false;
}

static bool of_task(const struct owner_facts *facts, const struct owner_launch *launch)
{
    for (size_t i = 0; launch->lease && i < launch->lease->count; i++)
        for (size_t k = 0; k < facts->count; k++)
            if (is_task(&facts->chain[k], &launch->lease->steps[i]))
                return true;
    return false;
}

static bool descends(const struct owner_facts *facts, const struct owner_launch *launch)
{
    for (size_t i = 0; i < facts->count; i++)
        if (facts->chain[i].pid == launch->shepherd && facts->chain[i].start_ticks == launch->shepherd_start_ticks)
            return true;
    return false;
}

/* The number of a session that has members is given to no new process. So it is ours as long as the main process has
 * not been observed to be another. */
static bool in_session(const struct owner_facts *facts, const struct owner_launch *launch)
{
    if (launch->process <= 0 || facts->session != launch->process)
        return false;
    for (size_t i = 0; i < facts->count; i++)
        if (facts->chain[i].pid == launch->process)
            return facts->chain[i].start_ticks == launch->process_start_ticks;
    return facts->chain[0].start_ticks >= launch->process_start_ticks;
}

const struct owner_launch *owner_judge(const struct owner_facts *facts, const struct owner_launch *launches,
                                       size_t count)
{
    static bool (*const ways[])(const struct owner_facts *, const struct owner_launch *) = {in_cgroup, of_task,
                                                                                            descends, in_session};

    for (size_t way = 0; way < array_size(ways); way++)
        for (size_t i = 0; i < count; i++)
            if (ways[way](facts, &launches[i]))
                return &launches[i];
    return NULL;
}

const struct owner_launch *owner_find(pid_t pid, const struct owner_launch *launches, size_t count)
{
    CLEANUP(facts_release) struct owner_facts facts = {0};

    return facts_read(pid, &facts) ? owner_judge(&facts, launches, count) : NULL;
}

/* Not from its command line, which is read under the lock of its memory (aside.h). */
static void read_command(pid_t pid, char command[OWNER_COMMAND_SIZE])
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/comm", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    *command = '\0';
    if (file_read(path, 256, &text, &length, NULL) < 0)
        return;
    snprintf(command, OWNER_COMMAND_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    for (char *c = command; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
}

int owner_read(pid_t pid, struct owner_process *process)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d", (int)pid);
    struct proc_stat stat_line;
    struct stat st;
    int code = proc_read_stat(pid, &stat_line);

    if (code < 0)
        return code;
    if (stat(path, &st) < 0)
        return -errno;
    *process = (struct owner_process){.start_ticks = stat_line.start_ticks, .uid = st.st_uid};
    read_command(pid, process->command);
    return 0;
}
