/* What a job's command leaves behind, as `python train.py &` in a script's last line does: it is ended with the launch,
 * and named. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "launch/shepherd/shepherd.h"

#define LEFT_NS    (500 * NS_PER_MS) /* wall; a part of a pipeline may end a moment after the main process */
#define COMM_LIMIT 64

/* The caller's to free; NULL: it is gone. */
static char *name_of(pid_t pid)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/comm", (int)pid);
    char *name = NULL;
    size_t length;

    if (file_read(path, COMM_LIMIT, &name, &length, NULL) < 0)
        return NULL;
    name[strcspn(name, "\n")] = '\0';
    return name;
}

/* How many they are, and their names, each once. Our own children that read the job's files are not among them. */
static void note(struct shepherd *s)
{
    CLEANUP(free_ptr) char *own = name_of(getpid());
    struct launch_status *status = &s->status;
    size_t used = 0;

    tree_read(&s->tree);
    tree_select_descendants(&s->tree, getpid());
    for (size_t i = 0; i < s->tree.count; i++) {
        const struct tree_process *process = &s->tree.items[i];
        CLEANUP(free_ptr) char *name = process->member && !process->ended ? name_of(process->pid) : NULL;
        if (!name || (own && strcmp(name, own) == 0) || (s->tree.spares && s->tree.spares(process->pid)))
            continue;
        status->left_count++;
        if (strstr(status->left, name) || used + strlen(name) + 3 > sizeof status->left)
            continue;
        used += (size_t)snprintf(status->left + used, sizeof status->left - used, "%s%s", used ? ", " : "", name);
    }
    printable_replace(status->left);
}

bool left_is_settled(struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (s->kill_at_ns || s->status.stopped || !s->exec_said || !WIFEXITED(s->wait_status))
        return true;
    if (!s->left_at_ns)
        s->left_at_ns = now_ns + LEFT_NS;
    if (now_ns < s->left_at_ns)
        return false;
    note(s);
    return true;
}
