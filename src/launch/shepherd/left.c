/* What a script leaves behind, as `python train.py &` in its last line does: carma ends it with the launch, and says
 * so. */
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

/* Wall time for those that end with it: a `tee` that reads what it wrote, workers. */
#define SETTLE_NS (200 * NS_PER_MS)

#define COMM_LIMIT 64

static void read_name(pid_t pid, char *name, size_t size)
{
    CLEANUP(free_ptr) char *path = xasprintf("/proc/%d/comm", (int)pid);
    CLEANUP(free_ptr) char *text = NULL;
    size_t length = 0;

    *name = '\0';
    if (file_read(path, COMM_LIMIT, &text, &length, NULL) < 0)
        return;
    snprintf(name, size, "%.*s", (int)strcspn(text, "\n"), text);
    printable_replace(name);
}

/* Our own children that read the job's files are among them. */
static bool is_ours(const char *name)
{
    char own[sizeof((struct launch_status *)0)->left_name];

    read_name(getpid(), own, sizeof own);
    return strcmp(name, own) == 0;
}

static void count(struct shepherd *s)
{
    struct launch_status *status = &s->status;
    uint64_t first_ticks = 0;

    tree_read(&s->tree);
    tree_select_descendants(&s->tree, getpid());
    for (size_t i = 0; i < s->tree.count; i++) {
        const struct tree_process *process = &s->tree.items[i];
        char name[sizeof status->left_name];

        if (!process->member || process->state == 'Z' || process->state == 'X')
            continue;
        read_name(process->pid, name, sizeof name);
        if (!*name || is_ours(name))
            continue;
        if (!status->left_count++ || process->start_ticks < first_ticks) {
            first_ticks = process->start_ticks;
            memcpy(status->left_name, name, sizeof name);
        }
    }
}

bool left_is_settled(struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns();

    if (s->kill_at_ns || !s->exec_said || !WIFEXITED(s->wait_status))
        return true;
    if (!s->left_at_ns)
        s->left_at_ns = now_ns + SETTLE_NS;
    if (now_ns < s->left_at_ns)
        return false;
    count(s);
    return true;
}
