/* bench-forecast: how good the expected starts of waiting jobs are, in simulated worlds, and what one costs.
 *
 * Users submit runs of some programs of theirs at random times, in an order that no forecast knows. At each third
 * submission of a job that has to wait, its start is foreseen as carmad does it, by runs that have ended and jobs that
 * have come by then, and compared with the start that it comes to. Usage: bench-forecast [SEEDS] */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/units.h"
#include "config/config.h"
#include "core/core.h"
#include "core/snapshot.h"
#include "sim/forecast.h"
#include "sim/random.h"
#include "sim/sim.h"

#define JOBS     600
#define USERS    5
#define PROGRAMS 8 /* of each user */
#define RUNS     64
#define LEAST    5 /* as PAST_RUNS_LEAST */

struct times {
    size_t count;
    int64_t ns[JOBS];
};

struct asked {
    uint64_t job;
    int64_t at_ns;
    struct forecast forecast;
};

struct bench {
    struct core *core; /* the simulated one, by its records */
    struct sim_job jobs[JOBS];
    struct sim_use uses[USERS * PROGRAMS];
    char names[USERS * PROGRAMS][16];
    int64_t started_ns[JOBS];
    struct times of_program[USERS * PROGRAMS], of_user[USERS], of_all;
    uint64_t pending; /* its start is to be foreseen at the end of this moment */
    int64_t now_ns;
    struct asked asked[JOBS];
    size_t count;
    double cost_s;
};

static double uniform(uint64_t seed, uint64_t i)
{
    return 0.5 * erfc(-random_normal(seed, i) / sqrt(2));
}

/* Half more than four GPUs can do one after the other: they do it by sharing. */
static void make_jobs(struct bench *bench, uint64_t seed)
{
    double at_s = 0, work_s[USERS * PROGRAMS];

    for (uint64_t p = 0; p < array_size(work_s); p++) {
        int64_t bytes = (int64_t)((2 + 30 * uniform(seed, p)) * (double)GIB);
        work_s[p] = 1800 * exp(random_normal(seed, 100 + p));
        bench->uses[p] = (struct sim_use){
            .activity = 0.2 + 0.7 * uniform(seed, 200 + p), .resident_bytes = bytes, .need_bytes = bytes};
        snprintf(bench->names[p], sizeof bench->names[p], "p%" PRIu64 ":1", p);
    }
    for (uint64_t i = 0; i < JOBS; i++) {
        size_t program = (size_t)(uniform(seed, 1000 + i) * USERS * PROGRAMS * 0.999999);
        at_s += -log(uniform(seed, 2000 + i)) * 2968 / (4 * 1.5);
        bench->jobs[i] =
            (struct sim_job){.arrival_ns = (int64_t)(at_s * 1e9),
                             .work_ns = (int64_t)(work_s[program] * exp(0.3 * random_normal(seed, 3000 + i)) * 1e9),
                             .gpus = 1,
                             .use_count = 1,
                             .uses = &bench->uses[program],
                             .workload = bench->names[program],
                             .request_bytes = bench->uses[program].need_bytes + GIB,
                             .request_source = SOURCE_DECLARED,
                             .uid = 1000 + (uint32_t)(program / PROGRAMS)};
        bench->started_ns[i] = -1;
    }
}

static size_t program_of(const struct bench *bench, uint64_t job)
{
    return (size_t)(bench->jobs[job - 1].uses - bench->uses);
}

static int compare(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static void add_time(struct times *times, int64_t ns)
{
    times->ns[times->count++] = ns;
    qsort(times->ns, times->count, sizeof *times->ns, compare);
}

static struct forecast_job known(const struct bench *bench, uint64_t id)
{
    size_t program = program_of(bench, id);
    const struct times *choices[] = {&bench->of_program[program], &bench->of_user[program / PROGRAMS], &bench->of_all};
    struct forecast_job job = {
        .job = id, .ran_ns = bench->started_ns[id - 1] < 0 ? -1 : bench->now_ns - bench->started_ns[id - 1]};

    for (uint32_t k = 0; k < array_size(choices) && !job.count; k++)
        if (choices[k]->count >= (k ? LEAST : 1)) {
            job.basis = k;
            job.drawn_by = choices[0]->count < LEAST ? program + 1 : 0;
            job.times_ns = choices[k]->ns;
            job.count = choices[k]->count;
        }
    return job;
}

static void foresee(struct bench *bench, uint64_t job, struct forecast *forecast)
{
    struct forecast_job jobs[JOBS];
    static struct forecast_arrival arrivals[JOBS];
    struct forecast_question question;
    struct record_list state = {0};
    size_t count = 0, arrival_count = 0;
    struct error err;

    for (uint64_t id = 1; id <= JOBS; id++) {
        const struct job *it = core_find_job(bench->core, id);
        const struct sim_job *as = &bench->jobs[id - 1];
        int64_t ago_ns = bench->now_ns - as->arrival_ns;
        if (ago_ns >= 0 && ago_ns < FORECAST_SPAN_NS) {
            struct forecast_arrival *arrival = &arrivals[arrival_count++];
            *arrival = (struct forecast_arrival){.at_ns = FORECAST_SPAN_NS - ago_ns,
                                                 .wants = {.uid = as->uid,
                                                           .gpus = 1,
                                                           .request_bytes = as->request_bytes,
                                                           .request_source = as->request_source,
                                                           .smact_permille = -1},
                                                 .job = known(bench, id)};
            snprintf(arrival->wants.workload, sizeof arrival->wants.workload, "%s", as->workload);
            arrival->job.ran_ns = -1;
        }
        if (!it)
            continue;
        jobs[count] = known(bench, id);
        count++;
    }
    core_snapshot(bench->core, bench->now_ns, &state);
    question = (struct forecast_question){&state, bench->now_ns, job, jobs, count, arrivals, arrival_count};
    if (forecast_start(&question, forecast, &err) != 0) {
        fprintf(stderr, "bench-forecast: %s\n", err.text);
        exit(1);
    }
    record_list_release(&state);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look(struct bench *bench)
{
    const struct job *job = bench->pending ? core_find_job(bench->core, bench->pending) : NULL;

    if (job && job->state == JOB_QUEUED) {
        struct asked *asked = &bench->asked[bench->count++];
        double begin_s = seconds();
        *asked = (struct asked){.job = job->id, .at_ns = bench->now_ns};
        foresee(bench, job->id, &asked->forecast);
        bench->cost_s += seconds() - begin_s;
    }
    bench->pending = 0;
}

static void take(void *user, const struct record *record)
{
    struct bench *bench = user;
    size_t at = record->job ? record->job - 1 : 0, program;
    struct error err;

    if (record->at_ns > bench->now_ns)
        look(bench);
    bench->now_ns = record->at_ns;
    if (core_apply(bench->core, record, &err) != 0) {
        fprintf(stderr, "bench-forecast: %s\n", err.text);
        exit(1);
    }
    if (record->type == RECORD_SUBMITTED && record->job % 3 == 0)
        bench->pending = record->job;
    if (record->type == RECORD_PLACED)
        bench->started_ns[at] = record->at_ns;
    if (record->type != RECORD_EXITED || record->exited.cause != EXIT_COMPLETED)
        return;
    program = program_of(bench, record->job);
    add_time(&bench->of_program[program], record->at_ns - bench->started_ns[at]);
    add_time(&bench->of_user[program / PROGRAMS], record->at_ns - bench->started_ns[at]);
    add_time(&bench->of_all, record->at_ns - bench->started_ns[at]);
}

struct score {
    size_t asked, known, early, inside, late;
    double errors[JOBS * 100];
    double cost_s;
};

static void count(const struct bench *bench, struct score *score)
{
    for (size_t i = 0; i < bench->count; i++) {
        const struct asked *asked = &bench->asked[i];
        int64_t waited_ns = bench->started_ns[asked->job - 1] - asked->at_ns;
        score->asked++;
        if (asked->forecast.basis == FORECAST_BY_NOTHING)
            continue;
        score->early += waited_ns < asked->forecast.low_ns;
        score->late += waited_ns > asked->forecast.high_ns;
        score->errors[score->known++] =
            fabs(log((double)(waited_ns + 60 * NS_PER_SEC) / (double)(asked->forecast.median_ns + 60 * NS_PER_SEC)));
    }
    score->inside = score->known - score->early - score->late;
    score->cost_s += bench->cost_s;
}

static int compare_errors(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static void run_world(uint64_t seed, struct score *score)
{
    static const struct sim_node node = {.gpu_count = 4, .total_bytes = 40 * GIB, .idle_w = 50, .full_w = 400};
    struct bench *bench = xcalloc(1, sizeof *bench);
    struct sim_observer observer = {.user = bench, .on_record = take};
    struct sim_options options;
    struct sim_result result;
    struct config config;
    struct error err;

    config_init_default(&config);
    sim_options_default(&options);
    options.core = config.core;
    config_release(&config);
    bench->core = core_new();
    make_jobs(bench, seed);
    if (sim_run(bench->jobs, JOBS, &node, &options, &observer, &result, &err) != 0) {
        fprintf(stderr, "bench-forecast: %s\n", err.text);
        exit(1);
    }
    count(bench, score);
    sim_result_release(&result);
    core_free(bench->core);
    free(bench);
}

/* Forecasts the start of the last job of a queue, while 64 GPUs are busy. */
static void measure_cost(size_t waiting)
{
    struct bench *bench = xcalloc(1, sizeof *bench);
    size_t most = waiting + 64;
    struct forecast_job *jobs = xcalloc(most, sizeof *jobs);
    const int64_t times_ns[] = {1800 * NS_PER_SEC, 3600 * NS_PER_SEC, 7200 * NS_PER_SEC};
    struct record record = {.type = RECORD_RECONFIGURED};
    struct record_list state = {0};
    struct forecast_question question;
    struct forecast forecast;
    struct config config;
    struct error err;
    double begin_s;

    config_init_default(&config);
    record.config = config.core;
    config_release(&config);
    bench->core = core_new();
    core_apply(bench->core, &record, NULL);
    for (uint32_t i = 0; i < 64; i++) {
        record =
            (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = i, .total_bytes = 40 * GIB, .share = SHARE_AUTO}};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-%" PRIu32, i);
        core_apply(bench->core, &record, NULL);
        record =
            (struct record){.type = RECORD_SAMPLE, .sample = {.gpu = i, .smocc_permille = -1, .dram_permille = -1}};
        core_apply(bench->core, &record, NULL);
    }
    for (uint64_t id = 1; id <= most; id++) {
        record = (struct record){.type = RECORD_SUBMITTED, .job = id};
        record.submitted = (struct record_submitted){.uid = 1000 + (uint32_t)(id % 50),
                                                     .gpus = 1,
                                                     .request_bytes = 30 * GIB,
                                                     .request_source = SOURCE_DECLARED,
                                                     .smact_permille = 700};
        core_apply(bench->core, &record, NULL);
        jobs[id - 1] = (struct forecast_job){.job = id, .ran_ns = -1, .times_ns = times_ns, .count = 3};
    }
    core_decide(bench->core, 0, &state);
    state.count = 0;
    begin_s = seconds();
    core_snapshot(bench->core, 0, &state);
    printf("%5zu waiting jobs, 64 GPUs: snapshot %.1f ms, ", waiting, (seconds() - begin_s) * 1e3);
    begin_s = seconds();
    question = (struct forecast_question){.state = &state, .job = most, .jobs = jobs, .count = most};
    if (forecast_start(&question, &forecast, &err) != 0)
        exit(1);
    printf("forecast of the last %.0f ms, in %.1f h (%.1f to %.1f h)\n", (seconds() - begin_s) * 1e3,
           (double)forecast.median_ns / 3600e9, (double)forecast.low_ns / 3600e9, (double)forecast.high_ns / 3600e9);
    record_list_release(&state);
    core_free(bench->core);
    free(jobs);
    free(bench);
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    struct score *score = xcalloc(1, sizeof *score);

    for (uint64_t seed = 1; seed <= seeds && seed <= 100; seed++)
        run_world(seed, score);
    qsort(score->errors, score->known, sizeof *score->errors, compare_errors);
    printf("simulated, default settings, 4 GPUs, %d users, %" PRIu64 " worlds of %d jobs\n", USERS, seeds, JOBS);
    printf("starts foreseen %zu of %zu; started before the range %.0f%%, within it %.0f%%, later %.0f%%\n",
           score->known, score->asked, 100.0 * (double)score->early / (double)score->known,
           100.0 * (double)score->inside / (double)score->known, 100.0 * (double)score->late / (double)score->known);
    printf("wait against its median (a minute added to both): a factor of %.2f at the median, %.2f at p90\n",
           exp(score->errors[score->known / 2]), exp(score->errors[score->known * 9 / 10]));
    printf("one forecast: %.1f ms of a processor on average\n", score->cost_s * 1e3 / (double)score->asked);
    for (size_t waiting = 10; waiting <= 1000; waiting *= 10)
        measure_cost(waiting);
    free(score);
    return 0;
}
