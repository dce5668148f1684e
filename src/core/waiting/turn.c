/* How this file works: the job's rank (order.c) is compared with that of the first job in the order, by the same
 * grounds in the same order, and the first that differs is told. To add a ground to the order: a row of its name, and a
 * line in why_before. A class is a row of classes.def alone. */
#include "core/waiting/turn.h"

#include "core/state.h"
#include "core/use.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/order.h"
#include "core/waiting/reserve.h"

const char *turn_why_name(uint32_t why)
{
    static const char *const names[TURN_WHY_COUNT] = {"first",
#define CLASS(name, holds, by, why, words) why,
#include "core/waiting/classes.def"
                                                      "priority", "nothing-running", "use", "own", "turns", "earlier"};

    return why < TURN_WHY_COUNT ? names[why] : "unknown";
}

static uint32_t why_before(const struct order_rank *rank, const struct order_rank *before)
{
    const struct job *job = rank->job, *first = before->job;
    const struct line *line = job->autocluster->line, *others = first->autocluster->line;
    int by_use;

    if (job == first)
        return TURN_NOBODY;
    if (turn_is_apart(first->turn))
        return first->turn.class;
    if (job->turn.behind != first->turn.behind)
        return TURN_PRIORITY;
    if (job->user == first->user)
        return TURN_OWN;
    if (line == others)
        return TURN_EARLIER;
    if (!others->user->gpus && line->user->gpus)
        return TURN_RUNNING;
    by_use = use_compare(order_first_use(others), user_first_share(first->user), order_first_use(line),
                         user_first_share(job->user));
    if (by_use == 0)
        by_use = use_compare(others->use, first->user->share, line->use, job->user->share);
    if (by_use < 0)
        return TURN_USE;
    return rank->own_place > 1 ? TURN_TURNS : TURN_EARLIER;
}

struct turn core_turn(const struct core *core, uint64_t id, int64_t now_ns)
{
    const struct job *job = core_job_by_id(core, id);
    const struct order_rank *rank = job ? order_rank(core, job, now_ns) : NULL, *before;
    struct turn turn = {0};

    if (!rank)
        return turn;
    before = order_rank_before(core, job);
    turn.place = job->rank;
    turn.of = order_ranked(core);
    turn.why = why_before(rank, before);
    turn.before = turn.why == TURN_NOBODY ? NULL : before->job;
    turn.running = job->user->running;
    if (job->autocluster->line->user) {
        turn.own_place = rank->own_place;
        turn.own_of = job->autocluster->line->first->eligible;
    }
    turn.priority = job->wants->priority;
    turn.before_priority = before->job->wants->priority;
    if (job->user->group != before->job->user->group && job->autocluster->line->user &&
        before->job->autocluster->line->user) {
        turn.group = job->user->group;
        turn.before_group = before->job->user->group;
    }
    turn.use = turn.group ? turn.group->use : job->autocluster->line->use;
    turn.before_use = turn.before_group ? turn.before_group->use : before->job->autocluster->line->use;
    turn.share = turn.group ? turn.group->share : job->user->share;
    turn.before_share = turn.before_group ? turn.before_group->share : before->job->user->share;
    return turn;
}

struct kept core_kept(const struct core *core)
{
    struct kept kept = {.job = core->reserved_job};

    if (!kept.job)
        return kept;
    for (uint32_t i = 0; i < core->gpu_count && kept.count < RECORD_MAX_GPUS; i++)
        if (core->gpus[i]->reserved_for == kept.job)
            kept.gpus[kept.count++] = i;
    kept.until_ns = reserve_until_ns(core);
    return kept;
}
