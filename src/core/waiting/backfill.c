/* How this file works: backfill_pass, called by decide.c, places the head as long as it fits (place.c). Then, with
 * backfill, GPUs are reserved where that is due (reserve.c), and all others are looked at, line by line, those that may
 * fit where memory has become free (search_of). Under fair turns each placement begins that anew: it may be another's
 * turn. backfill_reaches says of one job whether a pass comes to it, for its reason. */
#include "core/waiting/backfill.h"

#include "core/apply.h"
#include "core/place.h"
#include "core/qualify.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"
#include "core/waiting/reserve.h"

/* In the order of arrival: jobs behind a starved twin of the head (one of its autocluster) must not overtake the twin.
 */
static struct order_turn last_turn(const struct core *core, const struct job *head, int64_t now_ns)
{
    const struct job *twin = core->config.order == ORDER_FIFO ? autocluster_behind(head) : NULL;

    return twin && reserve_is_starved(core, twin, now_ns) ? twin->turn : core->waiting.tail->turn;
}

bool backfill_reaches(const struct core *core, const struct job *job, int64_t now_ns)
{
    const struct job *head = order_head(core, now_ns), *starved = NULL;
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    if (job == head || job->id == core->reserved_job || !core->config.backfill || core->config.order == ORDER_FAIR)
        return job == head || core->config.backfill;
    if (turn_is_before(last_turn(core, head, now_ns), job->turn))
        return false;
    for (uint32_t i = 0; i < count && !starved; i++)
        starved = order_first(core, lines[i], head->turn, reserve_starved_ns(core, now_ns));
    return !starved || !turn_is_before(starved->turn, job->turn);
}

/* ---- Vacancies ---- */

struct pass {
    struct core *core;
    int64_t now_ns;
    struct record_list *out;
    uint64_t openings; /* core.openings at its beginning */
    bool moved;        /* a limit may keep others now than at its beginning */
    bool knows_most;   /* the most that jobs of several GPUs find (autoclusters_of_width.most) */
};

/* To others than the one that has it reserved. */
static void keep_reserved(const struct core *core, const struct gpu *gpu, struct space *space)
{
    const struct beside_reserved *left = gpu_beside_reserved(core, gpu);
    int64_t margin = core->config.memory_view == MEMORY_MONITOR ? core->config.margin_bytes : 0; /* counted twice */
    int16_t units = left->bytes < 0 ? 0 : (int16_t)(vacancy_need(left->bytes + margin) + 1);

    if (units < space->units)
        space->units = units;
    space->bands &= left->bands;
}

/* For jobs of the user (NULL: of any) that need more than so many units. */
static struct space space_of(const struct core *core, const struct gpu *gpu, const struct user *user, int16_t least,
                             int64_t now_ns)
{
    struct space space = {.bands = UINT64_MAX};

    if (gpu_idle(gpu))
        return SPACE_WHOLE;
    if (!gpu_is_open(gpu) || !gpu->measured || gpu_exclusive_resident(gpu) ||
        gpu->resident_count >= core->config.max_jobs_per_gpu || gpu_settling(core, gpu, now_ns))
        return SPACE_NONE;
    space.units = (int16_t)(vacancy_need(gpu_free_bytes(core, gpu)) + 1);
    if (space.units > least && gpu->reserved_for)
        keep_reserved(core, gpu, &space);
    if (space.units <= least)
        return SPACE_NONE;
    if (core_gates_slowdown(core))
        space.bands &= slowdown_bands(core, gpu, user);
    return space;
}

/* What a job of several GPUs may find on each of them: at least that many GPUs have as much. `spaces` are the largest
 * first. */
static void find_most(struct autoclusters_of_width *width, const struct gpu_space *spaces, uint32_t count)
{
    uint64_t seen[RECORD_MAX_GPUS] = {0}; /* the bands of more than k GPUs, so far */
    uint32_t last = width->gpus - 1;

    width->most = vacancy_none;
    for (uint32_t i = 0; i < count && spaces[i].space.units > 0; i++) {
        uint64_t before = seen[last], bands = spaces[i].space.bands;
        for (uint32_t k = last; k > 0; k--)
            seen[k] |= seen[k - 1] & bands;
        seen[0] |= bands;
        vacancy_widen(&width->most, (struct space){spaces[i].space.units, seen[last] & ~before});
    }
}

/* They stand as they were sorted last, and few have changed since: by insertion. */
static void sort_spaces(struct gpu_space *spaces, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct gpu_space moved = spaces[i];
        uint32_t at = i;
        for (; at > 0 && moved.space.units > spaces[at - 1].space.units; at--)
            spaces[at] = spaces[at - 1];
        spaces[at] = moved;
    }
}

/* Costs a look at every GPU: only where jobs of several GPUs come to be looked at. */
static void find_all_most(struct pass *pass)
{
    struct core *core = pass->core;
    int16_t least = VACANCY_NEED_NONE;

    for (const struct line *line = core->lines; line; line = line->next) {
        int16_t units = autocluster_least_units(core, line, true);
        least = units < least ? units : least;
    }
    array_reserve(core->spaces, core->space_capacity, core->gpu_count);
    for (; core->space_count < core->gpu_count; core->space_count++)
        core->spaces[core->space_count].gpu = core->space_count;
    for (uint32_t i = 0; i < core->space_count; i++)
        core->spaces[i].space = space_of(core, core->gpus[core->spaces[i].gpu], NULL, least, pass->now_ns);
    sort_spaces(core->spaces, core->space_count);
    for (uint32_t i = 0; i < core->width_count; i++)
        if (core->widths[i].gpus > 1)
            find_most(&core->widths[i], core->spaces, core->space_count);
    pass->knows_most = true;
}

/* For jobs that may have become placeable: in the vacancy of the GPUs that have opened. In the order of arrival also
 * for those that nobody may pass. */
static struct search search_of(const struct pass *pass, const struct line *line)
{
    const struct core *core = pass->core;
    bool fair = core->config.order == ORDER_FAIR;
    int16_t least = autocluster_least_units(core, line, false);
    struct search search = {.vacancy = vacancy_none,
                            .anywhere = true,
                            .since_ns = fair ? INT64_MIN : reserve_starved_ns(core, pass->now_ns)};

    for (const struct gpu *gpu = core->last_opened; gpu && gpu->opened > line->searched; gpu = gpu->opened_before)
        vacancy_widen(&search.vacancy, space_of(core, gpu, line->user, least, pass->now_ns));
    return search;
}

static void forget_most(struct pass *pass)
{
    for (uint32_t i = 0; i < pass->core->width_count; i++)
        pass->core->widths[i].most = vacancy_whole;
    pass->knows_most = false;
}

/* ---- The passes ---- */

enum looked { LOOKED_ON, LOOKED_PLACED, LOOKED_STOP };

/* Looks at a job behind the head. */
static enum looked look(struct pass *pass, struct job *job)
{
    struct core *core = pass->core;

    if (!core_place(core, job, pass->now_ns, pass->out))
        return core->config.order == ORDER_FIFO && reserve_is_starved(core, job, pass->now_ns) ? LOOKED_STOP
                                                                                               : LOOKED_ON;
    pass->moved |= eligible_turns(core, RECORD_PLACED) ||
                   (core->config.order == ORDER_FAIR && !core->reserved_job); /* one may have been passed too often */
    forget_most(pass);
    return LOOKED_PLACED;
}

/* The jobs of a line up to the last turn, but for the head. */
static enum looked look_along(struct pass *pass, struct line *line, const struct job *head, struct order_turn last)
{
    struct core *core = pass->core;
    struct search search = search_of(pass, line);
    struct autocluster *autocluster;

    for (struct order_turn turn = order_start; (autocluster = autocluster_next(core, line, turn, &search));) {
        struct job *job = autocluster->first;
        enum looked looked = LOOKED_ON;
        if (job->wants->gpus > 1 && !pass->knows_most) {
            find_all_most(pass);
            continue;
        }
        turn = autocluster->turn;
        if (turn_is_before(last, turn) || !core_decision_due(core, pass->now_ns))
            return LOOKED_STOP;
        if (!job_is_eligible(core, job, NULL))
            autocluster_set_examined(core, autocluster, 0); /* not even where it would fit */
        else if (job != head)
            looked = look(pass, job);
        if (looked == LOOKED_STOP || (looked == LOOKED_PLACED && core->config.order == ORDER_FAIR))
            return looked;
        if (looked == LOOKED_PLACED)
            search = search_of(pass, line);
    }
    line->searched = pass->openings;
    return LOOKED_ON;
}

/* All jobs up to the last turn, but for the head. */
static void look_at_others(struct pass *pass, const struct job *head, struct order_turn last)
{
    uint32_t count, i = 0;
    struct line **lines = order_lines(pass->core, pass->now_ns, &count);

    forget_most(pass);
    while (i < count) {
        if (pass->core->config.order == ORDER_FAIR && pass->core->openings != pass->openings)
            return; /* what has opened is the head's first */
        enum looked looked = look_along(pass, lines[i++], head, last);
        if (looked == LOOKED_STOP)
            return;
        lines = order_lines(pass->core, pass->now_ns, &count);
        if (looked == LOOKED_PLACED)
            i = 0; /* another's turn may be next */
    }
}

/* In the order of arrival others may have come before it since it was the head, as a retry does. Not even a starved one
 * of them may come to its GPUs, which would stand idle. */
static bool place_reserved(const struct pass *pass)
{
    struct core *core = pass->core;
    struct job *job = core->reserved_job ? core_job_by_id(core, core->reserved_job) : NULL;

    return job && core->config.order == ORDER_FIFO && job_is_eligible(core, job, NULL) &&
           core_decision_due(core, pass->now_ns) && core_place(core, job, pass->now_ns, pass->out);
}

bool backfill_pass(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct pass pass = {.core = core, .now_ns = now_ns, .out = out, .openings = core->openings};
    struct job *head;

    while ((head = order_head(core, now_ns)) && core_decision_due(core, now_ns) && core_place(core, head, now_ns, out))
        ;
    if (!head || !core_decision_due(core, now_ns) || !core->config.backfill)
        return false;
    if (reserve_gpus(core, head, now_ns, out))
        return true;
    look_at_others(&pass, head, last_turn(core, head, now_ns));
    return place_reserved(&pass) || pass.moved;
}
