#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/nodetime.h"
#include "base/units.h"
#include "launch/shepherd/shepherd.h"

#define LOOK_NS        (10 * NS_PER_SEC)
#define MPS_TIMEOUT_NS (15 * NS_PER_SEC) /* for the daemon, if there is one, to see to a job's MPS clients */

void deadlines_set(struct shepherd *s)
{
    int64_t now_ns = nodetime_now_ns(), before_ns = s->request.time_limit_ns - s->request.signal_before_ns;

    if (s->request.start_timeout_ns)
        s->start_until_ns = nodetime_monotonic_wall_ns() + s->request.start_timeout_ns;
    if (s->request.time_limit_ns == 0)
        return;
    s->limit_at_ns = now_ns + s->request.time_limit_ns;
    if (s->request.signal)
        s->signal_at_ns = now_ns + (before_ns > 0 ? before_ns : 0);
}

/* That its time will be up. */
static void warn(struct shepherd *s)
{
    s->status.warned = tree_signal_who_heeds(&s->tree, getpid(), s->request.signal) > 0;
}

void deadlines_move(struct shepherd *s)
{
    int64_t now_ns = nodetime_now_ns();

    if (!s->limit_at_ns || !s->request.signal || s->status.warned || s->status.timed_out)
        return;
    warn(s);
    if (!s->status.warned) /* it would lose what it has done: it goes on */
        return;
    s->signal_at_ns = 0;
    if (s->limit_at_ns > now_ns + s->request.signal_before_ns)
        s->limit_at_ns = now_ns + s->request.signal_before_ns;
}

void deadlines_end_idle(struct shepherd *s, int64_t limit_ns)
{
    if (s->status.timed_out)
        return;
    s->status.idle = true;
    s->idle_limit_ns = limit_ns;
    s->limit_at_ns = nodetime_now_ns();
    s->signal_at_ns = 0;
}

void deadlines_put_off(struct shepherd *s, int64_t stood_ns)
{
    if (stood_ns < 0)
        return;
    if (s->limit_at_ns)
        s->limit_at_ns += stood_ns;
    if (s->signal_at_ns)
        s->signal_at_ns += stood_ns;
}

/* Without MPS the job has an empty directory in that of its run. */
static bool is_under_mps(const struct shepherd *s)
{
    return strncmp(s->request.mps_pipe_directory, s->request.run_directory, strlen(s->request.run_directory)) != 0;
}

void deadlines_tell(struct shepherd *s)
{
    int64_t now_ns = nodetime_now_ns();

    if (s->kill_at_ns || s->suspended_at_ns)
        return;
    if (s->start_until_ns && nodetime_monotonic_wall_ns() >= s->start_until_ns) {
        start_give_up(s);
        return;
    }
    if (s->signal_at_ns && now_ns >= s->signal_at_ns) {
        s->signal_at_ns = 0;
        warn(s);
    }
    if (s->limit_at_ns && now_ns >= s->limit_at_ns) {
        bool told = s->status.timed_out;
        s->status.stopped = s->status.timed_out = true;
        if (is_under_mps(s) && !told) /* the daemon ends its clients first, and then asks for the rest */
            s->limit_at_ns = now_ns + nodetime_from_wall_ns(MPS_TIMEOUT_NS);
        else
            ending_begin(s);
        if (!told)
            shepherd_write_status(s);
    }
}

/* When to look again at a deadline of node time. Where the machine sleeps, node time goes on and a wait does not. */
static int64_t look_again_ns(int64_t now_ns, int64_t deadline_ns)
{
    int64_t left_ns = nodetime_to_wall_ns(deadline_ns - nodetime_now_ns());

    return now_ns + (left_ns < LOOK_NS ? left_ns : LOOK_NS);
}

int deadlines_wait_ms(const struct shepherd *s)
{
    int64_t now_ns = nodetime_monotonic_wall_ns(), until_ns = progress_next_ns(s), ms;
    bool counts; /* the job's time */

    if (writers_next_ns(s) < until_ns)
        until_ns = writers_next_ns(s);
    if (s->heal_at_ns < until_ns && !s->not_run)
        until_ns = s->heal_at_ns;
    if (s->running_at_ns && s->running_at_ns < until_ns)
        until_ns = s->running_at_ns;
    if (s->left_at_ns && s->left_at_ns < until_ns && !s->kill_at_ns)
        until_ns = s->left_at_ns;
    if (s->kill_at_ns && s->kill_at_ns < until_ns)
        until_ns = s->kill_at_ns > now_ns ? s->kill_at_ns : now_ns + s->kill_pause_ms * NS_PER_MS;
    if (s->start_until_ns && s->start_until_ns < until_ns && !s->kill_at_ns)
        until_ns = s->start_until_ns;
    counts = !s->kill_at_ns && !s->suspended_at_ns;
    if (s->limit_at_ns && look_again_ns(now_ns, s->limit_at_ns) < until_ns && counts)
        until_ns = look_again_ns(now_ns, s->limit_at_ns);
    if (s->signal_at_ns && look_again_ns(now_ns, s->signal_at_ns) < until_ns && counts)
        until_ns = look_again_ns(now_ns, s->signal_at_ns);
    ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / NS_PER_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}
