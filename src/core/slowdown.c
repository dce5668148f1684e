#include "core/slowdown.h"

#include "core/core_internal.h"
#include "core/sharing.h"

#define PPM INT64_C(1000000)

/* A job with the turn keeps this part of the SMs busy, in permille, or its activity where that is more. */
#define TURN_WIDTH 650

/* The part of the time in which several want the turn that goes to switching, in permille. */
#define SWITCH_COST 100

/* Two jobs that take turns leave users with longer runs for little. They must get at least this much more done. */
#define TURNS_LEAST_GAIN_PPM (PPM / 5)

/* Step by which an activity is moved to see the effect. */
#define STEP_PERMILLE 10

/* The jobs together on a GPU, one of them with another activity than is known of it. */
struct company {
    const struct core *core;
    const struct gpu *gpu;
    const struct job *joining, *moved;
    enum share_mode joins_by;
};

static uint32_t company_size(const struct company *company)
{
    return company->gpu->resident_count + (company->joining != NULL);
}

static const struct job *member(const struct company *company, uint32_t i)
{
    return i < company->gpu->resident_count ? company->gpu->residents[i] : company->joining;
}

static int32_t solo_activity(const struct company *company, const struct job *job)
{
    int32_t activity = learned_activity(job);

    if (job != company->moved)
        return activity;
    return activity + STEP_PERMILLE <= 1000 ? activity + STEP_PERMILLE : activity - STEP_PERMILLE;
}

/* How much an instance slows the job alone: in the turns that it wants, its kernels find fewer SMs. */
static int64_t slowed_by_part(const struct company *company, const struct job *job)
{
    int64_t activity = solo_activity(company, job), part = company->gpu->part_permille;
    int64_t width = activity > TURN_WIDTH ? activity : TURN_WIDTH, wanted = activity * 1000 / width;

    return part >= width ? 1000 : 1000 - wanted + wanted * width / part;
}

/* Of the instance's SMs, where it is one. */
static int32_t activity_there(const struct company *company, const struct job *job)
{
    int64_t activity =
        solo_activity(company, job) * INT64_C(1000) / company->gpu->part_permille * 1000 / slowed_by_part(company, job);

    return activity > 1000 ? 1000 : (int32_t)activity;
}

/* Members with the same number are clients of one server; 0: none. */
static uint64_t server_of(const struct company *company, uint32_t i)
{
    const struct job *job = member(company, i);
    const struct core_config *config = &company->core->config;

    if ((i < company->gpu->resident_count ? job->share : company->joins_by) != SHARE_MPS)
        return 0;
    return config->mps_multiuser || config->mps_domain == MPS_DOMAIN_NODE ? 1 : UINT64_C(2) + job->wants->uid;
}

static bool is_first_of(const struct company *company, uint64_t server, uint32_t i)
{
    for (uint32_t k = 0; server && k < i; k++)
        if (server_of(company, k) == server)
            return false;
    return true;
}

/* The part of the time in which it wants the turn. */
static int64_t turn_demand_ppm(int64_t activity_ppm)
{
    return activity_ppm >= TURN_WIDTH * 1000 ? PPM : activity_ppm * 1000 / TURN_WIDTH;
}

/* One that takes turns: a process, or all clients of a server. */
struct taker {
    int64_t idle_ppm; /* the share of its turns in which it would leave the SMs idle */
    int64_t sum;      /* of activities, in permille */
    int64_t worst;    /* by the part of the GPU that it has, in permille */
    int64_t rates;    /* the sum of the clients' rates without others, relative to `sum` / U, in permille */
};

static struct taker taker_of(const struct company *company, uint32_t first)
{
    uint64_t server = server_of(company, first);
    struct taker taker = {.idle_ppm = PPM};

    for (uint32_t i = first; i < company_size(company); i++) {
        const struct job *job = member(company, i);
        int64_t by_part = slowed_by_part(company, job);
        int32_t activity = activity_there(company, job);
        if (i != first && (!server || server_of(company, i) != server))
            continue;
        taker.idle_ppm = taker.idle_ppm * (1000 - activity) / 1000;
        taker.sum += activity;
        taker.rates += PPM / by_part;
        taker.worst = by_part > taker.worst ? by_part : taker.worst;
    }
    return taker;
}

/* How much its clients slow one another, in permille. */
static int64_t slowed_inside(const struct taker *taker)
{
    int64_t busy = PPM - taker->idle_ppm, slowed = busy > 0 ? taker->sum * PPM / busy : 1000;

    return slowed < 1000 ? 1000 : slowed;
}

/* The rate of all that take turns, in parts per million of the time that they want. It is the time in which at least
 * one wants the turn, less the cost of switching while several do. */
static int64_t rate_of_turns(const struct company *company, uint32_t *turns)
{
    int64_t nobody = PPM, one = 0, delivered = 0, wanted = 0, rate;

    *turns = 0;
    for (uint32_t i = 0; i < company_size(company); i++)
        if (is_first_of(company, server_of(company, i), i)) {
            struct taker taker = taker_of(company, i);
            int64_t demand = turn_demand_ppm(PPM - taker.idle_ppm);
            delivered += demand * (nobody - one * SWITCH_COST / 1000) / PPM;
            one = (one * (PPM - demand) + nobody * demand) / PPM;
            nobody = nobody * (PPM - demand) / PPM;
            wanted += demand;
            ++*turns;
        }
    if (*turns < 2 || wanted == 0)
        return PPM;
    rate = delivered * PPM / wanted;
    return rate < PPM ? rate : PPM;
}

static struct slowdown predict(const struct company *company)
{
    struct slowdown slowdown = {.worst_permille = 1000};
    int64_t rate = rate_of_turns(company, &slowdown.turns);

    for (uint32_t i = 0; i < company_size(company); i++)
        if (is_first_of(company, server_of(company, i), i)) {
            struct taker taker = taker_of(company, i);
            int64_t inside = slowed_inside(&taker), worst = inside * taker.worst / 1000 * PPM / (rate ? rate : 1);
            slowdown.delivered_ppm += (PPM - taker.idle_ppm) * rate / PPM;
            slowdown.progress_ppm += taker.rates * rate / inside;
            if (worst > slowdown.worst_permille)
                slowdown.worst_permille = worst > INT32_MAX ? INT32_MAX : (int32_t)worst;
        }
    return slowdown;
}

static struct company company_of(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    return (struct company){.core = core,
                            .gpu = gpu,
                            .joining = joining,
                            .joins_by = joining ? sharing_mode_of(core, joining, gpu) : SHARE_ANY};
}

struct slowdown slowdown_predict(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct company company = company_of(core, gpu, joining);

    return predict(&company);
}

int64_t slowdown_sensitivity(const struct core *core, const struct gpu *gpu, const struct job *resident)
{
    struct company company = company_of(core, gpu, NULL);
    int64_t before = predict(&company).delivered_ppm, change;

    company.moved = resident;
    change = predict(&company).delivered_ppm - before;
    return (learned_activity(resident) + STEP_PERMILLE <= 1000 ? change : -change) / STEP_PERMILLE;
}

bool slowdown_pays(const struct core *core, const struct gpu *gpu, const struct job *joining)
{
    struct slowdown with = slowdown_predict(core, gpu, joining);

    return with.turns < 2 || gpu->resident_count == 0 ||
           with.progress_ppm >= slowdown_predict(core, gpu, NULL).progress_ppm + TURNS_LEAST_GAIN_PPM;
}
