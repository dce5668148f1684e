/* How this file works: backfill_pass, called by decide.c, places the head as long as it fits (place.c). Then, with
 * backfill, GPUs are reserved for a head that is starved, and all others are looked at in order, those first that may
 * fit in a room that has opened (find_rooms). backfill_reaches says the same of one job for its reason. */
#include "core/waiting/backfill.h"

#include "core/apply.h"
#include "core/place.h"
#include "core/qualify.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/alike.h"
#include "core/waiting/eligible.h"
#include "core/waiting/order.h"

/* ---- Jobs that have waited too long ---- */

/* The GPUs that are likely to have enough memory for the job first: those with the most free memory. False when the
 * node has too few that could ever take it. */
static bool choose_reserved(const struct core *core, const struct job *job, struct record_reserved *reserved)
{
    const struct gpu *chosen[RECORD_MAX_GPUS];

    for (uint32_t i = 0; i < core->gpu_count; i++) {
        const struct gpu *gpu = core->gpus[i];
        uint32_t at;
        if (!gpu_is_for(core, job, gpu))
            continue;
        for (at = reserved->count; at > 0; at--) {
            const struct gpu *other = chosen[at - 1];
            if (gpu_free_bytes(core, other) >= gpu_free_bytes(core, gpu))
                break;
            if (at < job->wants->gpus)
                chosen[at] = other;
        }
        if (at < job->wants->gpus)
            chosen[at] = gpu;
        if (reserved->count < job->wants->gpus)
            reserved->count++;
    }
    for (uint32_t i = 0; i < reserved->count; i++)
        reserved->gpus[i] = chosen[i]->number;
    return reserved->count == job->wants->gpus;
}

/* Jobs that wait since then are starved. */
static int64_t starved_ns(const struct core *core, int64_t now_ns)
{
    return now_ns - core->config.starvation_timeout_ns;
}

static bool is_starved(const struct core *core, const struct job *job, int64_t now_ns)
{
    return core->config.backfill && job_waits_since_ns(job) <= starved_ns(core, now_ns);
}

/* With backfill a head that needs much could wait for ever. Once it has waited for the starvation timeout, only jobs
 * that fit beside it start on the GPUs reserved for it. So it starts at the latest when the jobs that run there now
 * have ended. True where it starts at once. */
static bool reserve_for_head(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct job *head = order_head(core);
    struct record decision = {.type = RECORD_RESERVED, .at_ns = now_ns};

    if (!head || core->reserved_job == head->id || !is_starved(core, head, now_ns))
        return false;
    decision.job = head->id;
    return choose_reserved(core, head, &decision.reserved) && core_decided(core, out, &decision) &&
           core_place(core, head, now_ns, out); /* a GPU that was reserved for another job may be free */
}

/* Jobs behind a starved twin of the head, which is alike it, must not overtake the twin. */
static struct order_turn last_turn(const struct core *core, const struct job *head, int64_t now_ns)
{
    const struct job *twin = alike_behind(head);

    return twin && is_starved(core, twin, now_ns) ? twin->turn : core->waiting.tail->turn;
}

bool backfill_reaches(const struct core *core, const struct job *job, int64_t now_ns)
{
    const struct search starved = {.since_ns = starved_ns(core, now_ns)};
    const struct job *head = order_head(core);
    const struct alike *alike;

    if (job == head || !core->config.backfill)
        return job == head;
    if (turn_is_before(last_turn(core, head, now_ns), job->turn))
        return false;
    alike = alike_next(core, head->turn, &starved);
    while (alike && (!is_starved(core, alike->first, now_ns) || !job_is_eligible(core, alike->first, NULL)))
        alike = alike_next(core, alike->turn, &starved);
    return !alike || !turn_is_before(alike->turn, job->turn);
}

/* ---- Where there may be room ---- */

struct pass {
    struct core *core;
    int64_t now_ns;
    struct record_list *out;
    bool moved;           /* a limit may keep others now than at its beginning */
    struct search search; /* for jobs that may have become placeable: in the room of the GPUs that have opened */
    bool knows_most;      /* the most that jobs of several GPUs find (alikes_of_width.most) */
};

static struct room room_of(const struct core *core, const struct gpu *gpu, int64_t now_ns)
{
    if (gpu_idle(gpu))
        return room_whole;
    if (gpu->lost || !gpu->measured || gpu_exclusive_resident(gpu) ||
        gpu->resident_count >= core->config.max_jobs_per_gpu || gpu_settling(core, gpu, now_ns))
        return room_none;
    return room_beside(gpu_free_bytes(core, gpu), core_gates_slowdown(core) ? slowdown_bands(core, gpu) : UINT64_MAX);
}

/* What a job of several GPUs may find on each of them: at least that many GPUs have as much. */
static void find_most(struct core *core, struct alikes_of_width *width)
{
    struct room best[RECORD_MAX_GPUS]; /* in each band, descending */

    for (uint32_t k = 0; k < width->gpus; k++)
        best[k] = room_none;
    for (uint32_t i = 0; i < core->gpu_count; i++) {
        struct room room = core->rooms[i];
        for (uint32_t k = 0; k < width->gpus; k++) {
            struct room less = best[k];
            room_widen(&best[k], &room);
            room_narrow(&room, &less);
        }
    }
    width->most = best[width->gpus - 1];
}

/* Costs a look at every GPU: only where jobs of several GPUs come to be looked at. */
static void find_all_most(struct pass *pass)
{
    struct core *core = pass->core;

    array_reserve(core->rooms, core->room_capacity, core->gpu_count);
    for (uint32_t i = 0; i < core->gpu_count; i++)
        core->rooms[i] = room_of(core, core->gpus[i], pass->now_ns);
    for (uint32_t i = 0; i < core->width_count; i++)
        if (core->widths[i].gpus > 1)
            find_most(core, &core->widths[i]);
    pass->knows_most = true;
}

static void find_rooms(struct pass *pass)
{
    struct core *core = pass->core;

    pass->search.room = room_none;
    for (const struct gpu *gpu = core->last_opened; gpu && gpu->opened > core->searched; gpu = gpu->opened_before) {
        struct room room = room_of(core, gpu, pass->now_ns);
        room_widen(&pass->search.room, &room);
    }
    for (uint32_t i = 0; i < core->width_count; i++)
        core->widths[i].most = room_whole;
    pass->knows_most = false;
}

/* ---- The passes ---- */

/* Looks at a job behind the head. False: nobody passes it. */
static bool look(struct pass *pass, struct job *job)
{
    struct core *core = pass->core;

    if (!core_place(core, job, pass->now_ns, pass->out))
        return !is_starved(core, job, pass->now_ns);
    pass->moved |= eligible_turns(core, RECORD_PLACED);
    find_rooms(pass);
    return true;
}

/* All jobs up to the last turn, but for the head. False: the pass did not come to its end. */
static bool look_at_others(struct pass *pass, const struct job *head, struct order_turn last)
{
    struct core *core = pass->core;
    struct alike *alike;

    find_rooms(pass);
    for (struct order_turn turn = order_start; (alike = alike_next(core, turn, &pass->search));) {
        struct job *job = alike->first;
        if (job->wants->gpus > 1 && !pass->knows_most) {
            find_all_most(pass);
            continue;
        }
        turn = alike->turn;
        if (turn_is_before(last, turn) || !core_decision_due(core, pass->now_ns))
            return false;
        if (!job_is_eligible(core, job, NULL))
            alike_set_examined(core, alike, 0); /* not even where it would fit */
        else if (job != head && !look(pass, job))
            return false;
    }
    return true;
}

bool backfill_pass(struct core *core, int64_t now_ns, struct record_list *out)
{
    struct pass pass = {.core = core, .now_ns = now_ns, .out = out};
    uint64_t openings = core->openings;
    struct job *head;

    while ((head = order_head(core)) && core_decision_due(core, now_ns) && core_place(core, head, now_ns, out))
        ;
    if (!head || !core_decision_due(core, now_ns) || !core->config.backfill)
        return false;
    if (reserve_for_head(core, now_ns, out))
        return true;
    pass.search.since_ns = starved_ns(core, now_ns);
    if (look_at_others(&pass, head, last_turn(core, head, now_ns)))
        core->searched = openings;
    return pass.moved;
}
