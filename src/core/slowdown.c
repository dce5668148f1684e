/* How this file works: the activities of those that share a GPU are gathered (takers_of: kept until the residents or
 * any activity are others), the prediction follows from them, and measures of pairs (learn/company.c) correct it. The
 * model is in the header. qualify.c asks whether a bound is kept and whether it pays, learn/readings.c what a sample
 * shows. */
#include "core/slowdown.h"

#include <string.h>

#include "base/memory.h"
#include "core/learn/company.h"
#include "core/learn/learn.h"
#include "core/sharing.h"
#include "core/state.h"

#define PPM INT64_C(1000000)

/* A job with the turn keeps this part of the SMs busy, in permille, or its activity where that is more. */
#define TURN_WIDTH 650

/* The part of the time in which several want the turn that goes to switching, in permille. */
#define SWITCH_COST 100

/* Two jobs that take turns leave users with longer runs for little. They must get at least this much more done. */
#define TURNS_LEAST_GAIN_PPM (PPM / 5)

/* In permille, beyond the spread of two readings: clients of a server got less done than the others would without one
 * of them. They start earlier by sharing, so they need not get more done. */
#define MPS_MOST_LOSS 50

/* How far a slowdown by three readings of SM activity may be off, in permille. */
#define ACTIVITY_ERROR 100

/* Step by which an activity is moved to see the effect. */
#define STEP_PERMILLE 10

/* One that takes turns: a process, or all clients of a server. */
struct taker {
    uint64_t server;  /* 0: it is a process by itself */
    int64_t idle_ppm; /* the share of its turns in which it would leave the SMs idle */
    int64_t sum;      /* of activities, in permille */
    int64_t worst;    /* by the part of the GPU that it has, in permille */
    int64_t rates;    /* the sum of the clients' rates without others, relative to `sum` / U, in permille */
};

#define TAKERS_MOST 64 /* more jobs than a GPU may have */

struct slowdown_takers {
    uint64_t version, residents; /* core.activity_version and gpu.residents_version then */
    uint32_t count;
    int32_t room_permille;     /* slowdown_room; -1: not asked for yet */
    struct slowdown together;  /* as predicted */
    struct slowdown corrected; /* by measurements */
    struct taker list[TAKERS_MOST];
};

/* How much an instance slows a job alone: in the turns that it wants, its kernels find fewer SMs. */
static int64_t slowed_by_part(int64_t activity, int64_t part)
{
    int64_t width = activity > TURN_WIDTH ? activity : TURN_WIDTH, wanted = activity * 1000 / width;

    return part >= width ? 1000 : 1000 - wanted + wanted * width / part;
}

/* Jobs with the same number are clients of one server; 0: none. */
static uint64_t server_of(const struct core *core, const struct job *job, uint32_t share)
{
    const struct core_config *config = &core->config;

    if (share != SHARE_MPS)
        return 0;
    return config->mps_multiuser || config->mps_domain == MPS_DOMAIN_NODE ? 1 : UINT64_C(2) + job->wants->uid;
}

/* The part of the instance's SMs that a job alone there keeps busy, in permille. */
static int64_t activity_there(int64_t activity, int64_t part)
{
    int64_t there = activity * 1000 / part * 1000 / slowed_by_part(activity, part);

    return there > 1000 ? 1000 : there;
}

static void add(struct slowdown_takers *takers, int64_t part, uint64_t server, int64_t activity)
{
    int64_t by_part = slowed_by_part(activity, part), there = activity_there(activity, part);
    uint32_t i = 0;

    while (i < takers->count && (!server || takers->list[i].server != server))
        i++;
    if (i == TAKERS_MOST)
        return;
    if (i == takers->count)
        takers->list[takers->count++] = (struct taker){.server = server, .idle_ppm = PPM};
    takers->list[i].idle_ppm = takers->list[i].idle_ppm * (1000 - there) / 1000;
    takers->list[i].sum += there;
    takers->list[i].rates += PPM / by_part;
    if (by_part > takers->list[i].worst)
        takers->list[i].worst = by_part;
}

/* The part of the time in which it wants the turn. */
static int64_t turn_demand_ppm(int64_t activity_ppm)
{
    return activity_ppm >= TURN_WIDTH * 1000 ? PPM : activity_ppm * 1000 / TURN_WIDTH;
}

/* How much its clients slow one another, in permille. */
static int64_t slowed_inside(const struct taker *taker)
{
    int64_t busy = PPM - taker->idle_ppm, slowed = busy > 0 ? taker->sum * PPM / busy : 1000;

    return slowed < 1000 ? 1000 : slowed;
}

/* The rate of all that take turns, in parts per million: the time in which at least one wants the turn, less the cost
 * of switching while several do, in parts of all the wanted time. */
static int64_t rate_of_turns(const struct slowdown_takers *takers)
{
    int64_t nobody = PPM, one = 0, delivered = 0, wanted = 0, rate;

    if (takers->count < 2)
        return PPM;
    for (uint32_t i = 0; i < takers->count; i++) {
        int64_t demand = turn_demand_ppm(PPM - takers->list[i].idle_ppm);
        delivered += demand * (nobody - one * SWITCH_COST / 1000) / PPM;
        one = (one * (PPM - demand) + nobody * demand) / PPM;
        nobody = nobody * (PPM - demand) / PPM;
        wanted += demand;
    }
    rate = wanted ? delivered * PPM / wanted : PPM;
    return rate < PPM ? rate : PPM;
}

static int64_t delivered_ppm(const struct slowdown_takers *takers, int64_t rate)
{
    int64_t delivered = 0;

    for (uint32_t i = 0; i < takers->count; i++)
        delivered += (PPM - takers->list[i].idle_ppm) * rate / PPM;
    return delivered;
}

static struct slowdown together(const struct slowdown_takers *takers)
{
    int64_t rate = rate_of_turns(takers);
    struct slowdown slowdown = {
        .worst_permille = 1000, .delivered_ppm = delivered_ppm(takers, rate), .turns = takers->count};

    for (uint32_t i = 0; i < takers->count; i++) {
        const struct taker *taker = &takers->list[i];
        int64_t inside = slowed_inside(taker), worst = inside * taker->worst / 1000 * PPM / (rate ? rate : 1);
        slowdown.progress_ppm += taker->rates * rate / inside;
        if (worst > slowdown.worst_permille)
            slowdown.worst_permille = worst > INT32_MAX ? INT32_MAX : (int32_t)worst;
    }
    return slowdown;
}

/* Of two jobs, how they ran together before: by their speeds, else by the GPU's activity. The latter says that it was
 * clearly worse than predicted, and never that it was better: SMs that wait for memory are active, too. */
static void correct_pair(const struct core *core, const struct gpu *gpu, const struct job *one, const struct job *other,
                         uint32_t share, bool only_they, struct slowdown *slowdown)
{
    int64_t first, second, worst, rates;

    if (!one->profile || !other->profile || !one->profile->measures || !other->profile->measures)
        return;
    first = company_slowdown(core, gpu, one->profile, other->profile, share);
    second = company_slowdown(core, gpu, other->profile, one->profile, share);
    rates = (first ? PPM * 1000 / first : slowdown->progress_ppm / 2) +
            (second ? PPM * 1000 / second : slowdown->progress_ppm / 2);
    worst = first > second ? first : second;
    if (!first && !second) {
        worst = company_slowdown_by_activity(core, gpu, one->profile, other->profile, share);
        if (worst <= slowdown->worst_permille + slowdown->worst_permille * ACTIVITY_ERROR / 1000)
            return;
        rates = 2 * PPM * 1000 / worst;
    }
    if (only_they && first && second)
        slowdown->worst_permille = (int32_t)worst;
    else if (worst > slowdown->worst_permille)
        slowdown->worst_permille = (int32_t)worst;
    else if (!only_they || !(first || second))
        return;
    slowdown->measured = true;
    if (only_they && one->user != other->user && rates > slowdown->progress_ppm / 4 * 5)
        rates = slowdown->progress_ppm / 4 * 5; /* each user could claim it */
    if (only_they)
        slowdown->progress_ppm = rates;
}

/* The residents, or `joining` (may be NULL) with them. */
static void correct(const struct core *core, const struct gpu *gpu, const struct job *joining, uint32_t share,
                    struct slowdown *slowdown)
{
    bool only_they = gpu->resident_count + (joining ? 1 : 0) == 2;

    if (!core->measures || !core->config.learn || gpu->part_permille < 1000)
        return;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *resident = gpu->residents[i];
        for (uint32_t k = 0; k < i && !joining; k++)
            correct_pair(core, gpu, resident, gpu->residents[k], resident->share, only_they, slowdown);
        if (joining)
            correct_pair(core, gpu, joining, resident, share, only_they, slowdown);
    }
}

/* The residents; `moved` (may be NULL) with another activity than is known of it. */
static void gather(const struct core *core, const struct gpu *gpu, const struct job *moved, int32_t moved_permille,
                   struct slowdown_takers *takers)
{
    takers->count = 0;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        add(takers, gpu->part_permille, server_of(core, job, job->share),
            job == moved ? moved_permille : learned_activity(job));
    }
    takers->together = together(takers);
    takers->room_permille = -1;
    takers->corrected = takers->together;
    if (!moved)
        correct(core, gpu, NULL, SHARE_ANY, &takers->corrected);
}

struct slowdown_takers *slowdown_takers_new(void)
{
    return xcalloc(1, sizeof(struct slowdown_takers));
}

static int32_t bound_of(const struct core *core, const struct job *job)
{
    return job->wants->max_slowdown_permille ? job->wants->max_slowdown_permille : core->config.max_slowdown_permille;
}

int32_t gpu_slowdown_bound(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    int32_t least = job ? bound_of(core, job) : 0;

    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        int32_t bound = bound_of(core, gpu->residents[i]);
        if (bound && (!least || bound < least))
            least = bound;
    }
    return least;
}

/* Of a GPU that is only imagined, in *room. */
static const struct slowdown_takers *takers_of(const struct core *core, const struct gpu *gpu,
                                               struct slowdown_takers *room)
{
    struct slowdown_takers *takers = gpu->takers ? gpu->takers : room;

    if (takers == room || takers->version != core->activity_version || takers->residents != gpu->residents_version) {
        gather(core, gpu, NULL, 0, takers);
        takers->version = core->activity_version;
        takers->residents = gpu->residents_version;
    }
    return takers;
}

/* The residents and the joining job, by the mode in which it would share the GPU. */
static enum share_mode join(const struct core *core, const struct gpu *gpu, const struct slowdown_takers *takers,
                            const struct job *joining, struct slowdown_takers *with)
{
    enum share_mode share = sharing_mode_of(core, joining, gpu);

    with->count = takers->count;
    memcpy(with->list, takers->list, takers->count * sizeof *with->list);
    add(with, gpu->part_permille, server_of(core, joining, share), learned_activity(joining));
    return share;
}

struct slowdown slowdown_predict(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct slowdown_takers room, with;
    const struct slowdown_takers *takers = takers_of(core, gpu, &room);
    struct slowdown slowdown;
    enum share_mode share;

    if (!joining)
        return takers->corrected;
    share = join(core, gpu, takers, joining, &with);
    slowdown = together(&with);
    if (takers->corrected.measured && takers->corrected.worst_permille > slowdown.worst_permille) {
        slowdown.worst_permille = takers->corrected.worst_permille;
        slowdown.measured = true;
    }
    correct(core, gpu, joining, share, &slowdown);
    return slowdown;
}

int64_t slowdown_added_ppm(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct slowdown_takers room, with;
    const struct slowdown_takers *takers = takers_of(core, gpu, &room);

    join(core, gpu, takers, joining, &with);
    return delivered_ppm(&with, rate_of_turns(&with)) - takers->together.delivered_ppm;
}

int64_t slowdown_sensitivity(const struct core *core, const struct gpu *gpu, const struct job *resident)
{
    int32_t activity = learned_activity(resident);
    int32_t step = activity + STEP_PERMILLE <= 1000 ? STEP_PERMILLE : -STEP_PERMILLE;
    struct slowdown_takers moved;

    gather(core, gpu, resident, activity + step, &moved);
    return (moved.together.delivered_ppm - slowdown_predict(core, gpu, NULL).delivered_ppm) / step;
}

/* Of more than two jobs, both are predictions. */
static int64_t least_progress_ppm(const struct slowdown *with, const struct slowdown *before)
{
    if (before->turns == 0)
        return 0;
    if (with->turns > 1)
        return before->progress_ppm + TURNS_LEAST_GAIN_PPM;
    return with->measured ? before->progress_ppm - before->progress_ppm * MPS_MOST_LOSS / 1000 : 0;
}

int64_t slowdown_least_progress_ppm(const struct core *core, const struct gpu *gpu, const struct slowdown *with)
{
    struct slowdown_takers room;

    return least_progress_ppm(with, &takers_of(core, gpu, &room)->together);
}

bool slowdown_pays(const struct core *core, const struct gpu *gpu, const struct slowdown *with)
{
    return (with->turns < 2 && !with->measured) || with->progress_ppm >= slowdown_least_progress_ppm(core, gpu, with);
}

/* Whether any job of this activity may come, as a client of a server that is there or with turns of its own. */
static bool takes(const struct slowdown_takers *takers, const struct gpu *gpu, int32_t activity, int32_t bound)
{
    struct slowdown_takers with;

    for (uint32_t i = 0; i <= takers->count; i++) {
        struct slowdown there;
        if (i < takers->count && !takers->list[i].server)
            continue;
        with.count = takers->count;
        memcpy(with.list, takers->list, takers->count * sizeof *with.list);
        add(&with, gpu->part_permille, i < takers->count ? takers->list[i].server : 0, activity);
        there = together(&with);
        if ((!bound || there.worst_permille <= bound) &&
            there.progress_ppm >= least_progress_ppm(&there, &takers->together))
            return true;
    }
    return false;
}

/* Steps in which the greatest activity is looked for: to 16 permille. */
#define ROOM_STEPS 6

int32_t slowdown_room(const struct core *core, const struct gpu *gpu)
{
    struct slowdown_takers *takers = gpu->takers;
    int32_t bound, below = 0, above = 1000;

    takers_of(core, gpu, NULL);
    if (takers->room_permille >= 0)
        return takers->room_permille;
    bound = gpu_slowdown_bound(core, NULL, gpu);
    if (takes(takers, gpu, above, bound))
        below = above;
    for (int step = 0; step < ROOM_STEPS && below < above; step++) {
        int32_t middle = (below + above) / 2;
        if (takes(takers, gpu, middle, bound))
            below = middle;
        else
            above = middle;
    }
    takers->room_permille = above;
    return above;
}

uint64_t slowdown_server(const struct core *core, const struct job *job)
{
    return server_of(core, job, job->share);
}

static const struct taker *taker_of(const struct slowdown_takers *takers, uint64_t server)
{
    for (uint32_t i = 0; i < takers->count; i++)
        if (takers->list[i].server == server)
            return &takers->list[i];
    return NULL;
}

void slowdown_busy(const struct slowdown_party *parties, size_t count, int32_t part_permille, int32_t *busy_permille)
{
    struct slowdown_takers takers = {.count = 0};
    int64_t rate;

    for (size_t i = 0; i < count; i++)
        if (parties[i].activity_permille)
            add(&takers, part_permille, parties[i].server, parties[i].activity_permille);
    rate = rate_of_turns(&takers);
    for (size_t i = 0; i < count; i++) {
        const struct taker *server = parties[i].server ? taker_of(&takers, parties[i].server) : NULL;
        int64_t there = activity_there(parties[i].activity_permille, part_permille);
        busy_permille[i] = (int32_t)(there * rate / PPM * 1000 / (server ? slowed_inside(server) : 1000));
    }
}
