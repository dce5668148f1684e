#include "launch/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "launch/tree.h"

#define FILE_LIMIT (1 << 20)

static const char head[] = "carma-lease 1\n";
static const char output_mark[] = "output\n";

void lease_release(struct lease *lease)
{
    for (size_t i = 0; i < lease->count; i++) {
        free(lease->steps[i].cgroup);
        free(lease->steps[i].tasks);
    }
    free(lease->steps);
    free(lease->output);
    *lease = (struct lease){0};
}

pid_t lease_living_task(const struct lease *lease)
{
    for (size_t i = 0; i < lease->count; i++)
        for (size_t k = 0; k < lease->steps[i].task_count; k++)
            if (proc_alive(lease->steps[i].tasks[k].pid, lease->steps[i].tasks[k].start_ticks))
                return lease->steps[i].tasks[k].pid;
    return 0;
}

bool lease_has_teller(const struct lease *lease)
{
    for (size_t i = 0; i < lease->count; i++)
        for (size_t k = 0; k < lease->steps[i].task_count; k++)
            if (lease->steps[i].tasks[k].parent > 0 &&
                proc_alive(lease->steps[i].tasks[k].parent, lease->steps[i].tasks[k].parent_start_ticks))
                return true;
    return false;
}

struct lease_step *lease_step(struct lease *lease, const char *name)
{
    for (size_t i = 0; i < lease->count; i++)
        if (strcmp(lease->steps[i].name, name) == 0)
            return &lease->steps[i];
    if (lease->count >= LEASE_MAX_STEPS)
        return NULL;
    array_reserve(lease->steps, lease->capacity, lease->count + 1);
    lease->steps[lease->count] = (struct lease_step){0};
    snprintf(lease->steps[lease->count].name, LEASE_STEP_SIZE, "%s", name);
    return &lease->steps[lease->count++];
}

bool lease_add_task(struct lease *lease, struct lease_step *step, struct lease_task task)
{
    size_t count = 0;

    for (size_t i = 0; i < step->task_count; i++)
        if (step->tasks[i].pid == task.pid && step->tasks[i].start_ticks == task.start_ticks)
            return true;
    for (size_t i = 0; i < lease->count; i++)
        count += lease->steps[i].task_count;
    if (count >= LEASE_MAX_TASKS)
        return false;
    array_reserve(step->tasks, step->task_capacity, step->task_count + 1);
    step->tasks[step->task_count++] = task;
    return true;
}

static char *file_of(const char *run_directory)
{
    return xasprintf("%s/lease", run_directory);
}

int lease_write(const char *run_directory, const struct lease *lease, struct error *err)
{
    CLEANUP(free_ptr) char *path = file_of(run_directory);
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_puts(&text, head);
    for (size_t i = 0; i < lease->count; i++) {
        const struct lease_step *step = &lease->steps[i];
        strbuf_printf(&text, "step %s\n", step->name);
        if (step->cgroup)
            strbuf_printf(&text, "cgroup %s\n", step->cgroup);
        for (size_t k = 0; k < step->task_count; k++)
            strbuf_printf(&text, "task %d %" PRIu64 " %d %" PRIu64 "\n", (int)step->tasks[k].pid,
                          step->tasks[k].start_ticks, (int)step->tasks[k].parent, step->tasks[k].parent_start_ticks);
    }
    if (lease->ended)
        strbuf_printf(&text, "end %" PRId32 " %" PRId32 " %d\n", lease->exit_status, lease->signal, lease->stopped);
    if (lease->output)
        strbuf_printf(&text, "%s%s", output_mark, lease->output);
    return file_replace(path, text.text, text.length, 0600, err); /* no process outlives the machine */
}

static bool take_line(const char *line, struct lease *lease)
{
    struct lease_step *step = lease->count ? &lease->steps[lease->count - 1] : NULL;
    struct lease_task task = {0};
    int stopped;

    if (strncmp(line, "step ", 5) == 0 && line[5] && strlen(line + 5) < LEASE_STEP_SIZE)
        return lease_step(lease, line + 5);
    if (step && !step->cgroup && strncmp(line, "cgroup /", 8) == 0) {
        step->cgroup = xstrdup(line + 7);
        return true;
    }
    /* An earlier version wrote no parent. */
    if (step &&
        sscanf(line, "task %d %" SCNu64 " %d %" SCNu64, &task.pid, &task.start_ticks, &task.parent,
               &task.parent_start_ticks) >= 2 &&
        task.pid > 0)
        return lease_add_task(lease, step, task);
    if (lease->ended ||
        sscanf(line, "end %" SCNd32 " %" SCNd32 " %d", &lease->exit_status, &lease->signal, &stopped) != 3)
        return false;
    lease->ended = true;
    lease->stopped = stopped;
    return true;
}

int lease_parse(const char *name, const char *text, size_t length, struct lease *lease, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrndup(text, length);
    char *next = copy;

    *lease = (struct lease){0};
    if (strlen(copy) != length || strncmp(copy, head, sizeof head - 1) != 0)
        return error_set(err, EINVAL, "'%s' is not a lease of this version", name);
    for (next += sizeof head - 1; *next && !lease->output;) {
        char *line = next;
        if (strncmp(line, output_mark, sizeof output_mark - 1) == 0) {
            lease->output = xstrdup(line + sizeof output_mark - 1);
            break;
        }
        next += strcspn(next, "\n");
        if (*next)
            *next++ = '\0';
        if (!take_line(line, lease)) {
            lease_release(lease);
            return error_set(err, EINVAL, "'%s' has a bad line: '%.60s'", name, line);
        }
    }
    return 0;
}

int lease_read(const char *run_directory, struct lease *lease, struct error *err)
{
    CLEANUP(free_ptr) char *path = file_of(run_directory);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int code = file_read(path, FILE_LIMIT, &text, &length, err);

    *lease = (struct lease){0};
    return code == -ENOENT ? 0 : code < 0 ? code : lease_parse(path, text, length, lease, err);
}

void lease_wake(pid_t shepherd, uint64_t start_ticks)
{
    tree_signal_one(shepherd, start_ticks, SIGUSR1);
}

char *lease_environment_file(const char *run_directory)
{
    return xasprintf("%s/environment", run_directory);
}

int lease_read_environment(const char *run_directory, char **text, size_t *length, struct error *err)
{
    CLEANUP(free_ptr) char *path = lease_environment_file(run_directory);

    return file_read(path, FILE_LIMIT, text, length, err);
}
