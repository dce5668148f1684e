#include "sim/past.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/units.h"
#include "sim/sim_internal.h"

#define LEAST_WORK_NS NS_PER_MS /* of a job that ended before it trained */

/* How long a job may take to load, where samples are concerned: no record says it. */
#define SAMPLE_LOAD_NS (30 * NS_PER_SEC)

struct past_job {
    uint64_t id;
    struct record_submitted wants;
    int64_t submitted_ns;
    int64_t peak_bytes;
    int64_t activity_permille; /* sum of samples */
    int64_t samples;
    struct past_run *open;  /* where it is now; NULL: nowhere */
    struct past_run *final; /* that ended by itself; NULL: none */
    struct sim_use use;
    UT_hash_handle hh;
};

struct past_run {
    struct past_job *job;
    int64_t begin_ns, end_ns;
    int64_t updated_ns;
    double done_ns, rate;
    uint32_t share;     /* as it was placed; SHARE_ANY: not recorded */
    bool for_all_users; /* an MPS server was */
    double threads;     /* of a GPU's, that it may use at most; 1: all */
    uint32_t gpu_count;
    struct past_side {
        uint32_t gpu;
        double rate;
    } sides[RECORD_MAX_GPUS];
};

/* Runs that are on a GPU: while records come, those that hold it; later, those that train. */
struct past_gpu {
    int64_t total_bytes;
    struct past_run **runs; /* owned array of borrowed runs */
    size_t count, capacity;
    int64_t changed_ns;
};

struct past {
    struct past_job *by_id;
    struct past_job **jobs; /* owned, in the order of submission */
    size_t job_count, job_capacity;
    struct past_run **runs; /* owned, in the order of placement */
    size_t run_count, run_capacity;
    struct past_gpu *gpus; /* owned */
    size_t gpu_count, gpu_capacity;
    int64_t window_ns;
    bool for_all_users;                /* an MPS server is */
    int64_t last_ns;                   /* of all records */
    struct record_share_given *shares; /* owned: those that were given, each user's last */
    size_t share_count, share_capacity;
    struct sim_job *items; /* owned */
};

struct past *past_new(void)
{
    return xcalloc(1, sizeof(struct past));
}

void past_free(struct past *past)
{
    if (!past)
        return;
    HASH_CLEAR(hh, past->by_id);
    for (size_t i = 0; i < past->job_count; i++)
        free(past->jobs[i]);
    for (size_t i = 0; i < past->run_count; i++)
        free(past->runs[i]);
    for (size_t i = 0; i < past->gpu_count; i++)
        free(past->gpus[i].runs);
    free(past->jobs);
    free(past->runs);
    free(past->gpus);
    free(past->items);
    free(past->shares);
    free(past);
}

/* ---- Records ---- */

static struct past_job *find(const struct past *past, uint64_t id)
{
    struct past_job *job;

    HASH_FIND(hh, past->by_id, &id, sizeof id, job);
    return job;
}

static struct past_gpu *gpu_at(struct past *past, uint32_t number)
{
    while (past->gpu_count <= number) {
        array_reserve(past->gpus, past->gpu_capacity, past->gpu_count + 1);
        past->gpus[past->gpu_count++] = (struct past_gpu){0};
    }
    return &past->gpus[number];
}

static void gpu_add(struct past_gpu *gpu, struct past_run *run)
{
    array_reserve(gpu->runs, gpu->capacity, gpu->count + 1);
    gpu->runs[gpu->count++] = run;
}

static void gpu_remove(struct past_gpu *gpu, const struct past_run *run)
{
    size_t kept = 0;

    for (size_t i = 0; i < gpu->count; i++)
        if (gpu->runs[i] != run)
            gpu->runs[kept++] = gpu->runs[i];
    gpu->count = kept;
}

static void take_submitted(struct past *past, const struct record *record)
{
    struct past_job *job;

    if (record->submitted.gpus == 0)
        return; /* it has nothing of the GPUs */
    job = xcalloc(1, sizeof *job);
    job->id = record->job;
    job->wants = record->submitted;
    job->submitted_ns = record->at_ns;
    array_reserve(past->jobs, past->job_capacity, past->job_count + 1);
    past->jobs[past->job_count++] = job;
    HASH_ADD(hh, past->by_id, id, sizeof job->id, job);
}

static void take_placed(struct past *past, struct past_job *job, const struct record *record)
{
    struct past_run *run = xcalloc(1, sizeof *run);

    run->job = job;
    run->begin_ns = record->at_ns;
    run->share = record->placed.share;
    run->for_all_users = past->for_all_users;
    run->threads = sim_threads(record);
    run->gpu_count = record->placed.count;
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        struct past_gpu *gpu = gpu_at(past, record->placed.gpus[k]);
        run->sides[k].gpu = record->placed.gpus[k];
        gpu_add(gpu, run);
        gpu->changed_ns = record->at_ns;
    }
    array_reserve(past->runs, past->run_capacity, past->run_count + 1);
    past->runs[past->run_count++] = run;
    job->open = run;
}

static void take_end(struct past *past, struct past_job *job, const struct record *record)
{
    struct past_run *run = job->open;

    if (!run)
        return;
    run->end_ns = record->at_ns;
    for (uint32_t k = 0; k < run->gpu_count; k++) {
        struct past_gpu *gpu = gpu_at(past, run->sides[k].gpu);
        gpu_remove(gpu, run);
        gpu->changed_ns = record->at_ns;
    }
    if (record->type == RECORD_EXITED && record->exited.cause != EXIT_GPU_OOM)
        job->final = run;
    job->open = NULL;
}

/* The window's readings of a GPU that one job has had alone all the while are that job's own. */
static void take_sample(struct past *past, const struct record *record)
{
    struct past_gpu *gpu = gpu_at(past, record->sample.gpu);

    if (gpu->count != 1 || record->sample.smact_permille < 0 ||
        record->at_ns < gpu->changed_ns + past->window_ns + SAMPLE_LOAD_NS)
        return;
    gpu->runs[0]->job->activity_permille += record->sample.smact_permille;
    gpu->runs[0]->job->samples++;
}

static void take_job(struct past *past, const struct record *record)
{
    struct past_job *job = find(past, record->job);

    if (!job)
        return;
    switch (record->type) {
    case RECORD_PLACED:
        take_placed(past, job, record);
        break;
    case RECORD_STARTED:
        if (job->open)
            job->open->begin_ns = record->at_ns;
        break;
    case RECORD_FIRST_USE:
    case RECORD_OBSERVED:
        if (record->memory.bytes > job->peak_bytes)
            job->peak_bytes = record->memory.bytes;
        break;
    case RECORD_EXITED:
    case RECORD_LAUNCH_FAILED:
    case RECORD_LOST:
        take_end(past, job, record);
        break;
    default:
        break;
    }
}

static struct record_share_given *share_at(struct past *past, uint32_t uid)
{
    for (size_t i = 0; i < past->share_count; i++)
        if (past->shares[i].uid == uid)
            return &past->shares[i];
    array_reserve(past->shares, past->share_capacity, past->share_count + 1);
    past->shares[past->share_count++] = (struct record_share_given){.uid = uid, .share = 1};
    return &past->shares[past->share_count - 1];
}

static void give(struct sim_job *job, const struct record_share_given *given)
{
    job->user_share = given->share;
    job->group_share = given->group_share;
    memcpy(job->group, given->group, sizeof job->group);
}

void past_record(struct past *past, const struct record *record)
{
    struct record_share_given *given;

    past->last_ns = record->at_ns;
    switch (record->type) {
    case RECORD_RECONFIGURED:
        past->window_ns = record->config.window_ns;
        past->for_all_users = record->config.mps_multiuser || record->config.mps_domain == MPS_DOMAIN_NODE;
        break;
    case RECORD_GPU_BACK:
        gpu_at(past, record->gpu.gpu)->total_bytes = record->gpu.total_bytes;
        break;
    case RECORD_SUBMITTED:
        take_submitted(past, record);
        break;
    case RECORD_SAMPLE:
        take_sample(past, record);
        break;
    case RECORD_SHARE_GIVEN:
        *share_at(past, record->share_given.uid) = record->share_given;
        break;
    case RECORD_STATE_USER:
        given = share_at(past, record->state_user.uid);
        given->share = record->state_user.share;
        given->group_share = record->state_user.group_share;
        memcpy(given->group, record->state_user.group, sizeof given->group);
        break;
    default:
        take_job(past, record);
        break;
    }
}

/* ---- SM activity ---- */

struct mean {
    const char *workload;
    double sum;
    size_t count;
    UT_hash_handle hh;
};

static double own_activity(const struct past_job *job)
{
    return fmin(1, (double)job->activity_permille / (double)job->samples / 1000);
}

static void add_to_mean(struct mean **means, const char *workload, double activity)
{
    struct mean *mean;

    HASH_FIND_STR(*means, workload, mean);
    if (!mean) {
        mean = xcalloc(1, sizeof *mean);
        mean->workload = workload;
        HASH_ADD_KEYPTR(hh, *means, mean->workload, strlen(mean->workload), mean);
    }
    mean->sum += activity;
    mean->count++;
}

static double inferred_activity(struct mean *means, const char *workload, double sum, size_t count)
{
    struct mean *mean = NULL;

    if (*workload)
        HASH_FIND_STR(means, workload, mean);
    if (mean)
        return mean->sum / (double)mean->count;
    return count ? sum / (double)count : PAST_ACTIVITY_ASSUMED;
}

static void find_activities(struct past *past)
{
    struct mean *means = NULL, *mean, *next;
    size_t known = 0;
    double sum = 0;

    for (size_t i = 0; i < past->job_count; i++) {
        const struct past_job *job = past->jobs[i];
        if (!job->samples)
            continue;
        add_to_mean(&means, job->wants.workload, own_activity(job));
        sum += own_activity(job);
        known++;
    }
    for (size_t i = 0; i < past->job_count; i++) {
        struct past_job *job = past->jobs[i];
        job->use.activity =
            job->samples ? own_activity(job) : inferred_activity(means, job->wants.workload, sum, known);
        job->use.resident_bytes = job->use.need_bytes = job->peak_bytes;
    }
    HASH_ITER (hh, means, mean, next) {
        HASH_DEL(means, mean);
        free(mean);
    }
}

/* ---- Work ---- */

struct moment {
    int64_t at_ns;
    bool ends;
    struct past_run *run;
};

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->ends != b->ends ? (a->ends ? -1 : 1)
                              : (a->run->job->id > b->run->job->id) - (a->run->job->id < b->run->job->id);
}

static void set_rate(struct past_run *run, int64_t now_ns)
{
    double rate = 1;

    for (uint32_t k = 0; k < run->gpu_count; k++)
        rate = fmin(rate, run->sides[k].rate);
    run->done_ns += run->rate * (double)(now_ns - run->updated_ns);
    run->updated_ns = now_ns;
    run->rate = rate;
}

static struct past_side *side_on(struct past_run *run, const struct past *past, const struct past_gpu *gpu)
{
    uint32_t k = 0;

    while (&past->gpus[run->sides[k].gpu] != gpu)
        k++;
    return &run->sides[k];
}

static void share(const struct past *past, struct past_gpu *gpu, enum share_mode mode,
                  const struct contention_params *contention, int64_t now_ns)
{
    CLEANUP(free_ptr) double *activities = xcalloc(gpu->count + 1, sizeof *activities);
    CLEANUP(free_ptr) double *threads = xcalloc(gpu->count + 1, sizeof *threads);
    CLEANUP(free_ptr) double *rates = xcalloc(gpu->count + 1, sizeof *rates);
    CLEANUP(free_ptr) uint64_t *servers = xcalloc(gpu->count + 1, sizeof *servers);

    for (size_t i = 0; i < gpu->count; i++) {
        const struct past_run *run = gpu->runs[i];
        activities[i] = run->job->use.activity;
        threads[i] = run->threads;
        servers[i] = sim_server(run->share == SHARE_ANY ? mode : (enum share_mode)run->share, run->job->wants.uid,
                                run->for_all_users);
    }
    contention_rates(contention, gpu->count, activities, servers, threads, rates);
    for (size_t i = 0; i < gpu->count; i++) {
        side_on(gpu->runs[i], past, gpu)->rate = rates[i];
        set_rate(gpu->runs[i], now_ns);
    }
}

/* Goes through the past once more, counting each run's results. */
static void count_work(struct past *past, enum share_mode mode, const struct contention_params *contention,
                       int64_t load_ns)
{
    CLEANUP(free_ptr) struct moment *moments = xcalloc(2 * past->run_count + 1, sizeof *moments);
    size_t count = 0;

    for (size_t i = 0; i < past->gpu_count; i++)
        past->gpus[i].count = 0;
    for (size_t i = 0; i < past->run_count; i++) {
        struct past_run *run = past->runs[i];
        if (run == run->job->open)
            run->end_ns = past->last_ns; /* it runs still, beside others */
        if (run->end_ns <= run->begin_ns + load_ns)
            continue; /* it never trained */
        run->updated_ns = run->begin_ns + load_ns;
        moments[count++] = (struct moment){.at_ns = run->updated_ns, .run = run};
        moments[count++] = (struct moment){.at_ns = run->end_ns, .ends = true, .run = run};
    }
    qsort(moments, count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < count; i++) {
        struct past_run *run = moments[i].run;
        if (moments[i].ends)
            set_rate(run, moments[i].at_ns);
        for (uint32_t k = 0; k < run->gpu_count; k++) {
            struct past_gpu *gpu = &past->gpus[run->sides[k].gpu];
            if (moments[i].ends)
                gpu_remove(gpu, run);
            else
                gpu_add(gpu, run);
            run->sides[k].rate = 1;
        }
        for (uint32_t k = 0; k < run->gpu_count; k++)
            share(past, &past->gpus[run->sides[k].gpu], mode, contention, moments[i].at_ns);
    }
}

/* ---- Jobs ---- */

static void fill_job(struct sim_job *item, const struct past_job *job, int64_t first_ns)
{
    *item = (struct sim_job){
        .arrival_ns = job->submitted_ns - first_ns,
        .work_ns = job->final->done_ns > LEAST_WORK_NS ? (int64_t)job->final->done_ns : LEAST_WORK_NS,
        .gpus = job->wants.gpus,
        .use_count = 1,
        .uses = &job->use,
        .workload = job->wants.workload,
        .request_bytes = job->wants.request_bytes,
        .expected_permille = job->wants.smact_permille,
        .request_source = job->wants.request_source,
        .max_slowdown_permille = job->wants.max_slowdown_permille,
        .exclusive = job->wants.exclusive,
        .uid = job->wants.uid,
        .share = job->wants.share,
        .excluded_gpus = job->wants.excluded_gpus,
    };
}

void past_finish(struct past *past, enum share_mode mode, const struct contention_params *contention, int64_t load_ns,
                 int64_t last_ns, struct past_jobs *jobs)
{
    int64_t first_ns = INT64_MAX, since_ns = last_ns ? past->last_ns - last_ns : INT64_MIN;

    *jobs = (struct past_jobs){.gpu_count = (uint32_t)past->gpu_count};
    for (size_t i = 0; i < past->gpu_count; i++)
        if (past->gpus[i].total_bytes > jobs->total_bytes)
            jobs->total_bytes = past->gpus[i].total_bytes;
    find_activities(past);
    count_work(past, mode, contention, load_ns);
    past->items = xcalloc(past->job_count + 1, sizeof *past->items);
    for (size_t i = 0; i < past->job_count; i++) {
        struct past_job *job = past->jobs[i];
        if (job->submitted_ns < since_ns)
            continue;
        if (!job->final) {
            jobs->left_out++;
            continue;
        }
        first_ns = job->submitted_ns < first_ns ? job->submitted_ns : first_ns;
        jobs->inferred += job->samples == 0;
        fill_job(&past->items[jobs->count], job, first_ns);
        for (size_t k = 0; k < past->share_count; k++)
            if (past->shares[k].uid == job->wants.uid)
                give(&past->items[jobs->count], &past->shares[k]);
        if (jobs->count && past->items[jobs->count].arrival_ns < past->items[jobs->count - 1].arrival_ns)
            past->items[jobs->count].arrival_ns = past->items[jobs->count - 1].arrival_ns; /* a clock was set */
        jobs->count++;
    }
    jobs->items = past->items;
}
