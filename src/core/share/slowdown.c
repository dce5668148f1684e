/* How this file works: the activities of those that share a GPU are gathered (takers_of: kept until the residents or
 * any activity are others), the prediction follows from them, and measures of pairs (learn/pairs.c) correct it. The
 * model is in the header. qualify.c asks whether a bound is kept and whether it pays, learn/readings.c what a sample
 * shows. */
#include "core/share/slowdown.h"

#include <string.h>

#include "base/memory.h"
#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/share/rates.h"
#include "core/share/sharing.h"
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
    int64_t worst;    /* slowdown of one of its jobs while nobody else takes turns, in permille */
    int64_t progress; /* the sum of its jobs' rates then, in ppm */
    uint32_t jobs;
    bool shared;    /* the two before them, and its jobs' rates, are of all its jobs */
    uint64_t bands; /* as slowdown_takers.bands: of further clients of the server */
};

/* A job of a taker. */
struct client {
    uint32_t taker;
    struct rates_client alone; /* on this part of a GPU */
    int64_t by_part;           /* how much the part, and its limit of threads, slow it, in permille */
    int32_t rate;              /* among the taker's jobs, in ppm */
};

#define TAKERS_MOST RATES_CLIENT /* more jobs than a GPU may have */

/* Between ends of bands that admit nobody, activities are not looked at where those are so near. */
#define BANDS_APART 4

/* Rounding, and clients that cannot use what they get, bend the prediction within a band by at most this part. That of
 * one with turns of its own on a whole GPU only rises or only falls with its activity: rounding alone bends it. */
#define BAND_SLACK     64
#define ROUNDING_SLACK 1000

struct slowdown_takers {
    uint64_t version, residents; /* core.activity_version and gpu.residents_version then */
    uint32_t count, clients;
    uint64_t bands;            /* of jobs with turns of their own; 0: not asked for yet (slowdown_bands) */
    uint64_t all_bands;        /* of jobs of any user: the same */
    struct slowdown together;  /* as predicted */
    struct slowdown corrected; /* by measurements */
    struct taker list[TAKERS_MOST];
    struct client of[TAKERS_MOST];
};

/* Jobs with the same number are clients of one server; 0: none. */
static uint64_t users_server(const struct core *core, uint32_t uid)
{
    return core->config.mps_multiuser || core->config.mps_domain == MPS_DOMAIN_NODE ? 1 : UINT64_C(2) + uid;
}

static uint64_t server_of(const struct core *core, const struct job *job, uint32_t share)
{
    return share == SHARE_MPS ? users_server(core, job->wants->uid) : 0;
}

/* The part of the instance's SMs that a job alone there keeps busy, in permille. */
static int64_t activity_there(int64_t activity, int64_t part)
{
    int64_t there = part >= 1000 ? activity : activity * 1000 / part * 1000 / rates_slowed_by_part(activity, part);

    return there > 1000 ? 1000 : there;
}

/* As rates_of_idle. Most are one, and without a limit of threads: at a lower cost. */
static void rates_of_few(uint32_t count, const struct rates_client *clients, int64_t idle_ppm, int32_t *rates)
{
    if (count == 1 && clients[0].threads_percent == RATES_ALL_THREADS)
        rates[0] = RATES_PPM;
    else
        rates_of_idle(count, clients, idle_ppm, rates);
}

/* How the taker's jobs share its turns. Most who ask for what all deliver need not know that. */
static void share_turns(struct slowdown_takers *takers, uint32_t number)
{
    struct taker *taker = &takers->list[number];
    struct rates_client clients[TAKERS_MOST];
    int32_t rates[TAKERS_MOST];
    uint32_t jobs = 0;

    for (uint32_t k = 0; k < takers->clients; k++)
        if (takers->of[k].taker == number)
            clients[jobs++] = takers->of[k].alone;
    rates_of_few(jobs, clients, taker->idle_ppm, rates);
    taker->shared = true;
    taker->worst = 1000;
    taker->progress = 0;
    jobs = 0;
    for (uint32_t k = 0; k < takers->clients; k++) {
        struct client *client = &takers->of[k];
        int64_t slowed;
        if (client->taker != number)
            continue;
        client->rate = rates[jobs++];
        slowed = client->by_part * PPM / client->rate;
        taker->progress += (int64_t)client->rate * 1000 / client->by_part;
        if (slowed > taker->worst)
            taker->worst = slowed;
    }
}

/* A job that comes to an instance with that part of the SMs. */
struct comer {
    uint64_t server;
    int64_t activity;         /* alone on a whole GPU */
    uint32_t threads_percent; /* 0: no limit */
};

static struct client client_of(int64_t part, const struct comer *comer)
{
    int64_t there = activity_there(comer->activity, part), slowed = rates_slowed_by_part(comer->activity, part),
            threads = comer->threads_percent ? comer->threads_percent : RATES_ALL_THREADS,
            by_threads = rates_slowed_by_part(there, threads * 1000 / RATES_ALL_THREADS);
    struct client client = {.by_part = slowed * by_threads / 1000};

    client.alone = (struct rates_client){.activity_permille = (int32_t)(there * 1000 / by_threads),
                                         .threads_percent = (int32_t)threads};
    return client;
}

static void add(struct slowdown_takers *takers, int64_t part, const struct comer *comer)
{
    struct client client = client_of(part, comer);
    uint64_t server = comer->server;
    uint32_t i = 0;

    while (i < takers->count && (!server || takers->list[i].server != server))
        i++;
    if (takers->clients == TAKERS_MOST)
        return;
    if (i == takers->count)
        takers->list[takers->count++] = (struct taker){.server = server, .idle_ppm = PPM};
    takers->list[i].idle_ppm = takers->list[i].idle_ppm * rates_left_by(client.alone) / PPM;
    takers->list[i].jobs++;
    client.taker = i;
    takers->of[takers->clients++] = client;
    takers->list[i].shared = false;
}

/* The part of the time in which it wants the turn. */
static int64_t turn_demand_ppm(int64_t activity_ppm)
{
    return activity_ppm >= TURN_WIDTH * 1000 ? PPM : activity_ppm * 1000 / TURN_WIDTH;
}

/* What comes of the turns of several: the parts of the time in which none of them wants the turn, or just one; in which
 * they get something done; and which they want in sum. */
struct turns {
    uint32_t count;
    int64_t nobody, one, delivered, wanted;
};

static void take_turns(struct turns *turns, int64_t idle_ppm)
{
    int64_t demand = turn_demand_ppm(PPM - idle_ppm);

    turns->delivered += demand * (turns->nobody - turns->one * SWITCH_COST / 1000) / PPM;
    turns->one = (turns->one * (PPM - demand) + turns->nobody * demand) / PPM;
    turns->nobody = turns->nobody * (PPM - demand) / PPM;
    turns->wanted += demand;
    turns->count++;
}

/* The rate of all that take them, in parts per million: the time in which at least one wants the turn, less the cost of
 * switching while several do, in parts of all the wanted time. */
static int64_t rate_of(const struct turns *turns)
{
    int64_t rate = turns->count > 1 && turns->wanted ? turns->delivered * PPM / turns->wanted : PPM;

    return rate < PPM ? rate : PPM;
}

static const struct turns no_turns = {.nobody = PPM};

static int64_t rate_of_turns(const struct slowdown_takers *takers)
{
    struct turns turns = no_turns;

    for (uint32_t i = 0; i < takers->count; i++)
        take_turns(&turns, takers->list[i].idle_ppm);
    return rate_of(&turns);
}

static int64_t delivered_ppm(const struct slowdown_takers *takers, int64_t rate)
{
    int64_t delivered = 0;

    for (uint32_t i = 0; i < takers->count; i++)
        delivered += (PPM - takers->list[i].idle_ppm) * rate / PPM;
    return delivered;
}

/* What is the slowdown of so much where this is the rate of all turns? */
static int64_t slowed_by_turns(int64_t slowed, int64_t rate)
{
    return slowed * PPM / (rate ? rate : 1);
}

static struct slowdown together(struct slowdown_takers *takers)
{
    int64_t rate = rate_of_turns(takers);
    struct slowdown slowdown = {
        .worst_permille = 1000, .delivered_ppm = delivered_ppm(takers, rate), .turns = takers->count};

    for (uint32_t i = 0; i < takers->count; i++) {
        const struct taker *taker = &takers->list[i];
        int64_t worst;
        if (!taker->shared)
            share_turns(takers, i);
        worst = slowed_by_turns(taker->worst, rate);
        slowdown.progress_ppm += taker->progress * rate / PPM;
        slowdown.crowded |= taker->jobs > 1;
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
    first = pairs_slowdown(core, gpu, one->profile, other->profile, share);
    second = pairs_slowdown(core, gpu, other->profile, one->profile, share);
    rates = (first ? PPM * 1000 / first : slowdown->progress_ppm / 2) +
            (second ? PPM * 1000 / second : slowdown->progress_ppm / 2);
    worst = first > second ? first : second;
    if (!first && !second) {
        worst = pairs_slowdown_by_activity(core, gpu, one->profile, other->profile, share);
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
    takers->count = takers->clients = 0;
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        add(takers, gpu->part_permille,
            &(struct comer){.server = server_of(core, job, job->share),
                            .activity = job == moved ? moved_permille : learned_activity(job),
                            .threads_percent = job->run->threads_percent});
    }
    takers->together = together(takers);
    takers->bands = takers->all_bands = 0;
    takers->corrected = takers->together;
    if (!moved)
        correct(core, gpu, NULL, SHARE_ANY, &takers->corrected);
}

struct slowdown_takers *slowdown_takers_new(void)
{
    return xcalloc(1, sizeof(struct slowdown_takers));
}

int32_t job_slowdown_bound(const struct core *core, const struct job *job)
{
    return job->wants->max_slowdown_permille ? job->wants->max_slowdown_permille : core->config.max_slowdown_permille;
}

int32_t gpu_slowdown_bound(const struct core *core, const struct job *job, const struct gpu *gpu)
{
    int32_t least = job ? job_slowdown_bound(core, job) : 0;

    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        int32_t bound = job_slowdown_bound(core, gpu->residents[i]);
        if (bound && (!least || bound < least))
            least = bound;
    }
    return least;
}

/* The sums of the GPU's residents: kept by the GPU; of one that is only imagined, in *imagined. */
static const struct slowdown_takers *takers_of(const struct core *core, const struct gpu *gpu,
                                               struct slowdown_takers *imagined)
{
    struct slowdown_takers *takers = gpu->takers ? gpu->takers : imagined;

    if (takers == imagined || takers->version != core->activity_version ||
        takers->residents != gpu->residents_version) {
        gather(core, gpu, NULL, 0, takers);
        takers->version = core->activity_version;
        takers->residents = gpu->residents_version;
    }
    return takers;
}

static void copy(struct slowdown_takers *with, const struct slowdown_takers *takers)
{
    with->count = takers->count;
    with->clients = takers->clients;
    memcpy(with->list, takers->list, takers->count * sizeof *with->list);
    memcpy(with->of, takers->of, takers->clients * sizeof *with->of);
}

/* The limit of a job that comes as a further client of the server; 0: with turns of its own. */
static uint32_t threads_of(const struct core *core, const struct slowdown_takers *takers, uint64_t server)
{
    uint32_t i = 0;

    if (!server)
        return RATES_ALL_THREADS;
    if (core->config.mps_threads_percent)
        return core->config.mps_threads_percent;
    while (i < takers->count && takers->list[i].server != server)
        i++;
    return (uint32_t)rates_thread_percent(i < takers->count ? takers->list[i].jobs + 1 : 1);
}

uint32_t slowdown_threads(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct slowdown_takers imagined;

    return threads_of(core, takers_of(core, gpu, &imagined), server_of(core, joining, SHARE_MPS));
}

/* The residents and the joining job, by the mode in which it would share the GPU. */
static enum share_mode join(const struct core *core, const struct gpu *gpu, const struct slowdown_takers *takers,
                            const struct job *joining, struct slowdown_takers *with)
{
    enum share_mode share = sharing_mode_of(core, joining, gpu);
    struct comer comer = {.server = server_of(core, joining, share), .activity = learned_activity(joining)};

    copy(with, takers);
    comer.threads_percent = threads_of(core, takers, comer.server);
    add(with, gpu->part_permille, &comer);
    return share;
}

struct slowdown slowdown_predict(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct slowdown_takers imagined, with;
    const struct slowdown_takers *takers = takers_of(core, gpu, &imagined);
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
    struct slowdown_takers imagined, with;
    const struct slowdown_takers *takers = takers_of(core, gpu, &imagined);

    join(core, gpu, takers, joining, &with);
    return (delivered_ppm(&with, rate_of_turns(&with)) - takers->together.delivered_ppm) * gpu->part_permille / 1000;
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
    struct slowdown_takers imagined;

    return least_progress_ppm(with, &takers_of(core, gpu, &imagined)->together);
}

int32_t slowdown_most_predicted(const struct slowdown *with, int32_t bound_permille)
{
    return with->crowded && !with->measured ? rates_admitted_permille(bound_permille) : bound_permille;
}

bool slowdown_pays(const struct core *core, const struct gpu *gpu, const struct slowdown *with)
{
    return (with->turns < 2 && !with->measured) || with->progress_ppm >= slowdown_least_progress_ppm(core, gpu, with);
}

/* A way to come: as a client of a server that is there, or with turns of its own (0). All but what depends on the
 * activity of the one who comes. */
struct way {
    const struct gpu *gpu;
    const struct slowdown_takers *takers;
    int64_t idle_ppm;    /* what the jobs of the taker leave whose client it is */
    uint32_t number;     /* of that taker; takers->count: a new one */
    struct turns before; /* of those before that one */
    uint32_t jobs;       /* the taker's, without it, and what slows each: */
    struct rates_client alone[TAKERS_MOST];
    int64_t by_part[TAKERS_MOST];
    int64_t others;          /* the worst slowdown of all other takers' jobs, by themselves */
    int64_t others_progress; /* the sum of their rates then, in ppm */
    uint32_t threads_percent;
    int64_t most;           /* the worst slowdown that is admitted */
    int64_t least_progress; /* what has to be done at least */
    bool bends;             /* what is predicted does not only rise, or only fall, with the activity */
    int64_t slack;
};

static void begin_way(const struct core *core, struct way *way, uint64_t server)
{
    const struct slowdown_takers *takers = way->takers;
    struct slowdown with = {.turns = takers->count};
    int32_t bound = gpu_slowdown_bound(core, NULL, way->gpu);

    way->idle_ppm = PPM;
    way->number = takers->count;
    way->before = no_turns;
    way->jobs = 0;
    way->others = 1000;
    way->others_progress = 0;
    way->threads_percent = threads_of(core, takers, server);
    for (uint32_t i = 0; i < takers->count; i++) {
        bool its = server && takers->list[i].server == server;
        with.crowded |= its || takers->list[i].jobs > 1;
        if (its) {
            way->idle_ppm = takers->list[i].idle_ppm;
            way->number = i;
        } else {
            way->others_progress += takers->list[i].progress;
            if (takers->list[i].worst > way->others)
                way->others = takers->list[i].worst;
        }
        if (way->number == takers->count)
            take_turns(&way->before, takers->list[i].idle_ppm);
    }
    with.turns += way->number == takers->count;
    for (uint32_t k = 0; k < takers->clients; k++)
        if (takers->of[k].taker == way->number) {
            way->alone[way->jobs] = takers->of[k].alone;
            way->by_part[way->jobs++] = takers->of[k].by_part;
        }
    way->most = bound ? slowdown_most_predicted(&with, bound) : INT32_MAX / 2;
    way->bends = server || way->gpu->part_permille < 1000;
    way->slack = way->bends ? BAND_SLACK : ROUNDING_SLACK;
    way->most += way->most / way->slack;
    way->least_progress = least_progress_ppm(&with, &takers->together);
}

/* The rate of all turns where the taker leaves so much idle with it. */
static int64_t rate_of_way(const struct way *way, int64_t idle_ppm)
{
    struct turns turns = way->before;

    take_turns(&turns, idle_ppm);
    for (uint32_t i = way->number + 1; i < way->takers->count; i++)
        take_turns(&turns, way->takers->list[i].idle_ppm);
    return rate_of(&turns);
}

/* What admits a job; and that a busier one is never admitted, since other takers already do not bear the turns: their
 * rate only falls with what the taker wants. */
enum { OTHERS_BEAR_IT = 1, IT_BEARS_OTHERS = 2, IT_PAYS = 4, ADMITTED = 7, NONE_BUSIER = 8 };

/* For one with the activity of a band's end. */
static unsigned asked_at(struct way *way, int end)
{
    int32_t activity = end * SLOWDOWN_BAND_PERMILLE < 1000 ? end * SLOWDOWN_BAND_PERMILLE : 1000;
    struct client comer = client_of(way->gpu->part_permille,
                                    &(struct comer){.activity = activity, .threads_percent = way->threads_percent});
    int64_t idle_ppm = way->idle_ppm * rates_left_by(comer.alone) / PPM, rate = rate_of_way(way, idle_ppm),
            others = way->others, its = 1000, progress = way->others_progress;
    int32_t rates[TAKERS_MOST];

    way->alone[way->jobs] = comer.alone;
    way->by_part[way->jobs] = comer.by_part;
    rates_of_few(way->jobs + 1, way->alone, idle_ppm, rates);
    for (uint32_t k = 0; k <= way->jobs; k++) {
        int64_t slowed = way->by_part[k] * PPM / rates[k];
        progress += (int64_t)rates[k] * 1000 / way->by_part[k];
        if (k == way->jobs)
            its = slowed;
        else if (slowed > others)
            others = slowed;
    }
    progress = progress * rate / PPM;
    return (slowed_by_turns(others, rate) <= way->most ? OTHERS_BEAR_IT : 0) |
           (slowed_by_turns(its, rate) <= way->most ? IT_BEARS_OTHERS : 0) |
           (progress + progress / way->slack >= way->least_progress ? IT_PAYS : 0) |
           (slowed_by_turns(way->others, rate) > way->most ? NONE_BUSIER : 0);
}

static bool admits(unsigned asked)
{
    return (asked & ADMITTED) == ADMITTED;
}

/* The bands between two ends, for which the answers are known. A busier job slows the others more, and its own slowdown
 * has one peak: what no end admits is not admitted between two of them, where they are near, or it does not bend. */
static uint64_t between(struct way *way, int first, int end, unsigned at_first, unsigned at_end)
{
    bool near = end - first <= BANDS_APART || !way->bends;
    int middle = (first + end) / 2;
    unsigned at_middle;

    if (at_first & NONE_BUSIER)
        return 0;
    if (end - first == 1)
        return admits(at_first | at_end) ? UINT64_C(1) << first : 0;
    if (near && !admits(at_first | at_end))
        return 0;
    if (near && admits(at_first & at_end))
        return UINT64_MAX >> (SLOWDOWN_BANDS - (end - first)) << first;
    at_middle = asked_at(way, middle);
    return between(way, first, middle, at_first, at_middle) | between(way, middle, end, at_middle, at_end);
}

static uint64_t bands_of(const struct core *core, const struct gpu *gpu, uint64_t server)
{
    struct way way;
    unsigned at_first;

    if (gpu->takers->clients == TAKERS_MOST)
        return UINT64_MAX;
    way.takers = gpu->takers;
    way.gpu = gpu;
    begin_way(core, &way, server);
    at_first = asked_at(&way, 0);
    if (at_first & NONE_BUSIER)
        return 1;
    return 1 | between(&way, 0, SLOWDOWN_BANDS, at_first, asked_at(&way, SLOWDOWN_BANDS));
}

uint64_t slowdown_bands(const struct core *core, const struct gpu *gpu, const struct user *user)
{
    struct slowdown_takers *takers = gpu->takers;
    uint64_t bands;

    takers_of(core, gpu, NULL);
    if (!user && takers->all_bands)
        return takers->all_bands;
    if (!takers->bands)
        takers->bands = bands_of(core, gpu, 0);
    bands = takers->bands;
    for (uint32_t i = 0; i < takers->count; i++) {
        struct taker *taker = &takers->list[i];
        if (!taker->server || (user && taker->server != users_server(core, user->uid)))
            continue;
        if (!taker->bands)
            taker->bands = bands_of(core, gpu, taker->server);
        bands |= taker->bands;
    }
    if (!user)
        takers->all_bands = bands;
    return bands;
}

uint64_t slowdown_server(const struct core *core, const struct job *job)
{
    return server_of(core, job, job->share);
}

void slowdown_busy(const struct slowdown_party *parties, size_t count, int32_t part_permille, int32_t *busy_permille)
{
    struct slowdown_takers takers = {.count = 0};
    uint32_t next = 0;
    int64_t rate;

    for (size_t i = 0; i < count; i++)
        if (parties[i].activity_permille)
            add(&takers, part_permille,
                &(struct comer){.server = parties[i].server,
                                .activity = parties[i].activity_permille,
                                .threads_percent = parties[i].threads_percent});
    rate = rate_of_turns(&takers);
    for (uint32_t i = 0; i < takers.count; i++)
        share_turns(&takers, i);
    for (size_t i = 0; i < count; i++) {
        const struct client *client = &takers.of[next];
        busy_permille[i] = 0;
        if (!parties[i].activity_permille || next == takers.clients)
            continue;
        busy_permille[i] = (int32_t)(client->alone.activity_permille * rate / PPM * client->rate / PPM);
        next++;
    }
}
