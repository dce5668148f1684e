/* How this file works: forecast_start makes the core anew for each draw, and go_on drives it from event to event until
 * the job is placed. In the draws a job's run times are the quantiles of its earlier runs, each once, in an order of
 * its own (draw_of): draws are a prime number, so steps of any length come to all of them. Runs teach the core nothing
 * here: their memory is not observed. */
#include "sim/forecast.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/core.h"
#include "core/ledger.h"
#include "core/learn/learn.h"

#define HORIZON_NS  (INT64_C(90) * 24 * 3600 * NS_PER_SEC)
#define MOST_EVENTS 3000              /* of a draw */
#define STOPPING_NS (10 * NS_PER_SEC) /* until a job that is being stopped has ended */

struct run {
    uint64_t job;
    int64_t end_ns;
};

struct arrival {
    int64_t at_ns;
    size_t like;
};

struct world {
    const struct forecast_question *question;
    struct core *core;
    int64_t now_ns;
    size_t draw;
    struct arrival *arrivals; /* owned: the next one like each, in the order of time, from `next` on and around */
    size_t next;
    uint64_t arrived;
    struct run *runs; /* owned */
    size_t run_count, run_capacity;
    struct record_list decisions;
    struct forecast *forecast;
};

static int compare_jobs(const void *left, const void *right)
{
    const struct forecast_job *a = left, *b = right;

    return a->job < b->job ? -1 : a->job > b->job;
}

/* Numbers of jobs that are submitted in the draw: beyond any real one. */
#define FIRST_ARRIVAL (UINT64_C(1) << 60)

static const struct forecast_job *find(const struct world *world, uint64_t job)
{
    const struct forecast_question *question = world->question;
    const struct forecast_job key = {.job = job};

    if (job >= FIRST_ARRIVAL)
        return &question->arrivals[(job - FIRST_ARRIVAL) % question->arrival_count].job;
    return question->count ? bsearch(&key, question->jobs, question->count, sizeof key, compare_jobs) : NULL;
}

/* Of the draws, the one whose quantile the job has in this one. */
static size_t draw_of(uint64_t number, size_t draw)
{
    uint64_t drawn = number * UINT64_C(0x9e3779b97f4a7c15);

    return (draw * (1 + (drawn >> 32) % (FORECAST_DRAWS - 1)) + (drawn & 0xffff)) % FORECAST_DRAWS;
}

/* Of the gaps between known times, and before and behind them, each as likely (forecast.h). */
static int64_t drawn_time(const struct forecast_job *known, size_t draw)
{
    int64_t ran_ns = known->ran_ns > 0 ? known->ran_ns : 0, from_ns, to_ns;
    size_t first = 0, left, at, gap;

    while (first < known->count && known->times_ns[first] <= ran_ns)
        first++;
    left = known->count - first;
    at = (2 * draw + 1) * (left + 1);
    gap = at / (2 * FORECAST_DRAWS);
    from_ns = gap ? known->times_ns[first + gap - 1] : left ? known->times_ns[first] / 2 : ran_ns;
    from_ns = from_ns > ran_ns ? from_ns : ran_ns;
    to_ns = gap < left ? known->times_ns[first + gap] : from_ns > INT64_MAX / 4 ? from_ns : 2 * from_ns;
    return from_ns + (to_ns - from_ns) / (2 * FORECAST_DRAWS) * (int64_t)(at % (2 * FORECAST_DRAWS));
}

/* How long it runs in this draw, from its start on; INT64_MAX: nobody knows. */
static int64_t time_of(const struct world *world, const struct forecast_job *known, uint64_t job)
{
    int64_t time_ns = INT64_MAX;

    if (known && known->count)
        time_ns = drawn_time(known, draw_of(known->drawn_by ? known->drawn_by : job, world->draw));
    return known && known->limit_ns && known->limit_ns < time_ns ? known->limit_ns : time_ns;
}

static void start_run(struct world *world, uint64_t job, int64_t ran_ns)
{
    int64_t time_ns = time_of(world, find(world, job), job), left_ns = time_ns - (ran_ns > 0 ? ran_ns : 0);

    array_reserve(world->runs, world->run_capacity, world->run_count + 1);
    world->runs[world->run_count++] = (struct run){
        job, time_ns == INT64_MAX ? INT64_MAX : world->now_ns + (left_ns > NS_PER_SEC ? left_ns : NS_PER_SEC)};
}

/* The residents of the job's GPUs have changed, and the monitor sees what they do now. */
static void look_at_gpus(struct world *world, const uint32_t *gpus, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct gpu *gpu = core_gpu(world->core, gpus[i]);
        struct record sample = {.type = RECORD_SAMPLE, .at_ns = world->now_ns};
        int64_t free_permille = 1000;
        sample.sample = (struct record_sample){.gpu = gpus[i],
                                               .used_bytes = gpu->unmanaged_bytes > 0 ? gpu->unmanaged_bytes : 0,
                                               .unmanaged_bytes = gpu->unmanaged_bytes,
                                               .smocc_permille = -1,
                                               .dram_permille = -1,
                                               .others = true}; /* and teaches nothing */
        for (uint32_t k = 0; k < gpu->resident_count; k++) {
            free_permille = free_permille * (1000 - learned_activity(gpu->residents[k])) / 1000;
            sample.sample.used_bytes += gpu->residents[k]->reserved_bytes > 0 ? gpu->residents[k]->reserved_bytes : 0;
        }
        if (sample.sample.used_bytes > gpu->total_bytes)
            sample.sample.used_bytes = gpu->total_bytes;
        sample.sample.smact_permille = (int32_t)(1000 - free_permille);
        core_apply(world->core, &sample, NULL);
    }
}

static void end_run(struct world *world, size_t at)
{
    struct record exited = {.type = RECORD_EXITED,
                            .at_ns = world->now_ns,
                            .job = world->runs[at].job,
                            .exited = {.cause = EXIT_COMPLETED,
                                       .requested_bytes = -1,
                                       .free_bytes = -1,
                                       .used_bytes = -1,
                                       .failed_gpu = RECORD_NO_GPU}};
    const struct job *job = core_find_job(world->core, exited.job);
    const struct forecast_job *known = find(world, exited.job);
    uint32_t gpus[RECORD_MAX_GPUS], count = job->placement_count;

    for (uint32_t i = 0; i < count; i++)
        gpus[i] = job->placements[i].gpu;
    if (known && known->basis > world->forecast->basis)
        world->forecast->basis = known->basis;
    world->runs[at] = world->runs[--world->run_count];
    core_apply(world->core, &exited, NULL);
    look_at_gpus(world, gpus, count);
}

/* True: the job has come to its start. */
static bool decide(struct world *world)
{
    world->decisions.count = 0;
    core_decide(world->core, world->now_ns, &world->decisions);
    for (size_t i = 0; i < world->decisions.count; i++) {
        const struct record *decision = &world->decisions.items[i];
        if (decision->type != RECORD_PLACED)
            continue;
        if (decision->job == world->question->job)
            return true;
        core_apply(world->core, &(struct record){.type = RECORD_STARTED, .at_ns = world->now_ns, .job = decision->job},
                   NULL);
        start_run(world, decision->job, -1);
        look_at_gpus(world, decision->placed.gpus, decision->placed.count);
    }
    return false;
}

static int64_t next_end(const struct world *world)
{
    int64_t next_ns = INT64_MAX;

    for (size_t i = 0; i < world->run_count; i++)
        if (world->runs[i].end_ns < next_ns)
            next_ns = world->runs[i].end_ns;
    return next_ns;
}

static int64_t next_arrival(const struct world *world)
{
    return world->question->arrival_count ? world->arrivals[world->next].at_ns : INT64_MAX;
}

static int compare_arrivals(const void *left, const void *right)
{
    const struct arrival *a = left, *b = right;

    return a->at_ns != b->at_ns ? (a->at_ns < b->at_ns ? -1 : 1) : a->like < b->like ? -1 : a->like > b->like;
}

/* In each draw the span begins at another time of it. */
static void expect_arrivals(struct world *world)
{
    const struct forecast_question *question = world->question;
    int64_t shift_ns = FORECAST_SPAN_NS / FORECAST_DRAWS * (int64_t)world->draw;

    world->arrivals = xcalloc(question->arrival_count + 1, sizeof *world->arrivals);
    for (size_t i = 0; i < question->arrival_count; i++)
        world->arrivals[i] = (struct arrival){
            question->now_ns + (question->arrivals[i].at_ns + shift_ns) % FORECAST_SPAN_NS + NS_PER_SEC, i};
    qsort(world->arrivals, question->arrival_count, sizeof *world->arrivals, compare_arrivals);
}

static void let_arrive(struct world *world)
{
    const struct forecast_question *question = world->question;

    while (next_arrival(world) <= world->now_ns) {
        struct arrival *arrival = &world->arrivals[world->next];
        struct record record = {.type = RECORD_SUBMITTED, .at_ns = world->now_ns};
        record.job = FIRST_ARRIVAL + world->arrived++ * question->arrival_count + arrival->like;
        record.submitted = question->arrivals[arrival->like].wants;
        record.submitted.array = record.submitted.array_most = 0; /* the numbers of an array's jobs lie side by side */
        core_apply(world->core, &record, NULL);
        arrival->at_ns += FORECAST_SPAN_NS;
        world->next = (world->next + 1) % question->arrival_count;
    }
}

static void let_end(struct world *world)
{
    for (size_t i = world->run_count; i-- > 0;)
        if (world->runs[i].end_ns <= world->now_ns)
            end_run(world, i);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When the job starts; INT64_MAX: not within the horizon. */
static int64_t go_on(struct world *world)
{
    int64_t begin_ns = world->now_ns;

    for (int events = 0; events < MOST_EVENTS && world->now_ns - begin_ns < HORIZON_NS; events++) {
        int64_t next_ns;
        if (decide(world))
            return world->now_ns;
        next_ns = least(next_end(world), core_next_wake_ns(world->core, world->now_ns));
        if (next_ns == INT64_MAX)
            break; /* more jobs do not help */
        world->now_ns = least(next_ns, next_arrival(world));
        let_end(world);
        let_arrive(world);
        core_apply(world->core, &(struct record){.type = RECORD_TIMER, .at_ns = world->now_ns}, NULL);
    }
    return INT64_MAX;
}

/* Those that have GPUs go on. */
static void take_runs(struct world *world)
{
    for (const struct job *job = core_jobs(world->core); job; job = job->hh.next) {
        const struct forecast_job *known = find(world, job->id);
        if (!job_state_has_gpus(job->state))
            continue;
        start_run(world, job->id, known ? known->ran_ns : -1);
        if (job->state == JOB_SUSPENDED)
            world->runs[world->run_count - 1].end_ns = INT64_MAX;
        else if (job_state_stops(job->state))
            world->runs[world->run_count - 1].end_ns = world->now_ns + STOPPING_NS;
    }
}

/* One that has GPUs, and of which nobody knows for how long. */
static uint64_t find_unknown(const struct world *world)
{
    for (size_t i = 0; i < world->run_count; i++)
        if (world->runs[i].end_ns == INT64_MAX && world->runs[i].job < FIRST_ARRIVAL)
            return world->runs[i].job;
    return 0;
}

static int make(struct world *world, struct error *err)
{
    const struct record_list *state = world->question->state;
    int rc = 0;

    world->core = core_new();
    for (size_t i = 0; i < state->count && rc == 0; i++)
        rc = core_apply(world->core, &state->items[i], err);
    if (rc == 0)
        rc = core_apply(world->core, &(struct record){.type = RECORD_TIMER, .at_ns = world->now_ns}, err);
    return rc ? -EINVAL : 0;
}

static int compare_times(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static int64_t after(int64_t at_ns, int64_t now_ns)
{
    return at_ns == INT64_MAX ? INT64_MAX : at_ns - now_ns;
}

int forecast_start(const struct forecast_question *question, struct forecast *forecast, struct error *err)
{
    int64_t starts_ns[FORECAST_DRAWS];
    int rc = 0;

    *forecast = (struct forecast){.basis = FORECAST_BY_RUNS};
    for (size_t draw = 0; draw < FORECAST_DRAWS && rc == 0; draw++) {
        struct world world = {.question = question, .now_ns = question->now_ns, .draw = draw, .forecast = forecast};
        rc = make(&world, err);
        if (rc == 0) {
            take_runs(&world);
            expect_arrivals(&world);
            starts_ns[draw] = go_on(&world);
            if (starts_ns[draw] == INT64_MAX && !forecast->unknown)
                forecast->unknown = find_unknown(&world);
        }
        core_free(world.core);
        free(world.runs);
        free(world.arrivals);
        record_list_release(&world.decisions);
    }
    if (rc)
        return rc;
    qsort(starts_ns, FORECAST_DRAWS, sizeof *starts_ns, compare_times);
    forecast->low_ns = after(starts_ns[FORECAST_DRAWS / 10], question->now_ns);
    forecast->median_ns = after(starts_ns[FORECAST_DRAWS / 2], question->now_ns);
    forecast->high_ns = after(starts_ns[FORECAST_DRAWS - 1 - FORECAST_DRAWS / 10], question->now_ns);
    if (forecast->median_ns == INT64_MAX)
        forecast->basis = FORECAST_BY_NOTHING;
    return 0;
}
