/* Orders of carmad for a job that runs (launch/orders.h): a row of `orders` for each word. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "launch/cgroup/cgroup.h"
#include "launch/orders.h"
#include "launch/shepherd/shepherd.h"
#include "launch/shepherd/terminal.h"
#include "launch/tree.h"

/* As before its time limit, for a job that has said which signal that is. */
static void checkpoint(struct shepherd *s, int argument)
{
    (void)argument;
    if (s->request.signal)
        tree_signal_who_heeds(&s->tree, getpid(), s->request.signal);
}

/* A shell does not heed USR1, and would be ended by it: the job with it. Whoever sends one of these wants that. */
static bool is_to_end(int signal)
{
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

static void send_signal(struct shepherd *s, int signal)
{
    if (is_to_end(signal))
        tree_signal(&s->tree, getpid(), signal);
    else
        tree_signal_who_heeds(&s->tree, getpid(), signal);
}

#define STOP_ROUNDS   200 /* a process that hangs in the kernel is not stopped before it returns from there */
#define STOP_PAUSE_MS 2

/* Its control group, where there is one, keeps others from letting them go on. */
static void suspend(struct shepherd *s, int argument)
{
    (void)argument;
    if (s->suspended_at_ns)
        return;
    s->suspended_at_ns = nodetime_now_ns();
    for (int i = 0; i < STOP_ROUNDS && tree_stop(&s->tree, getpid()) > 0; i++)
        poll(NULL, 0, STOP_PAUSE_MS);
    if (*s->status.cgroup)
        cgroup_freeze(s->status.cgroup);
}

static void resume(struct shepherd *s, int argument)
{
    (void)argument;
    if (!s->suspended_at_ns)
        return;
    if (*s->status.cgroup)
        cgroup_thaw(s->status.cgroup);
    tree_signal(&s->tree, getpid(), SIGCONT);
    deadlines_put_off(s, nodetime_now_ns() - s->suspended_at_ns);
    s->suspended_at_ns = 0;
}

static void move(struct shepherd *s, int argument)
{
    (void)argument;
    deadlines_move(s);
}

/* `seconds` of node time: for which it has not used its GPUs. */
static void end_idle(struct shepherd *s, int seconds)
{
    deadlines_end_idle(s, seconds * NS_PER_SEC);
}

/* ... and after which it is ended, unless it does use them. */
static void warn_idle(struct shepherd *s, int seconds)
{
    char left[UNITS_TEXT];
    CLEANUP(free_ptr)
    char *text = xasprintf("\r\ncarma: this job does not use its GPUs: it is ended in %s unless it does\r\n",
                           format_duration(seconds * NS_PER_SEC, left));

    terminal_say(s, text);
}

static const struct {
    const char *word;
    void (*obey)(struct shepherd *s, int argument);
} orders[] = {{"checkpoint", checkpoint}, {"idle", end_idle},   {"idle-warning", warn_idle}, {"move", move},
              {"signal", send_signal},    {"suspend", suspend}, {"resume", resume}};

static void obey(struct shepherd *s, char *word)
{
    char *argument = strchr(word, ' ');

    if (argument)
        *argument++ = '\0';
    for (size_t i = 0; i < array_size(orders); i++)
        if (strcmp(word, orders[i].word) == 0 && !s->kill_at_ns && s->status.phase == LAUNCH_RUNNING)
            orders[i].obey(s, argument ? atoi(argument) : 0);
}

/* What was read before is not read again. A last line without its end is still being written: its writer wakes us. */
void orders_turn(struct shepherd *s)
{
    CLEANUP(free_ptr) char *path = NULL, *text = NULL;
    char *line, *end;
    size_t length;

    if (!s->told)
        return;
    s->told = false;
    path = orders_file(s->request.run_directory);
    if (file_read(path, ORDERS_LIMIT + 256, &text, &length, NULL) != 0 || length < s->orders_read)
        return;
    for (line = text + s->orders_read; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        obey(s, line);
    }
    s->orders_read = (size_t)(line - text);
}
