#include "daemon/node/series.h"

#include <string.h>
#include <utlist.h>

#include "base/hash.h"
#include "base/memory.h"

#define UNKNOWN   UINT32_MAX
#define KIB_SHIFT 10
#define LEVELS    2

static const int64_t level_step_ns[LEVELS] = {SERIES_FINE_NS, SERIES_COARSE_NS};

struct gpu_mean {
    uint32_t values[SERIES_GPU_VALUES]; /* bytes in KiB */
};

/* The latest step is summed up, those before it are in the ring. */
struct ring {
    int64_t slot;                                               /* the latest step: its begin over its length */
    double sums[SERIES_GPU_VALUES], weights[SERIES_GPU_VALUES]; /* by nanoseconds */
    struct gpu_mean means[SERIES_POINTS];                       /* by slot modulo their number */
};

struct gpu_series {
    int64_t at_ns; /* of the last reading; 0: none */
    struct ring rings[LEVELS];
};

struct job_point {
    uint32_t most[SERIES_JOB_SM_PERMILLE]; /* KiB */
    float sm_permille;                     /* mean over ... */
    float sm_weight;                       /* ... this many nanoseconds; 0: unknown */
};

struct job_series {
    uint64_t id;
    int64_t from_ns, step_ns;
    int64_t at_ns; /* of the last reading */
    uint32_t count;
    struct job_point *points; /* owned */
    size_t capacity;
    UT_hash_handle hh;
    struct job_series *prev, *next; /* by the last reading */
};

struct series {
    int64_t period_ns, hold_ns;
    struct gpu_series **gpus; /* owned array of owned, by number; NULL: none yet */
    size_t gpu_count, gpu_capacity;
    struct job_series *jobs;    /* by id */
    struct job_series *by_time; /* as a list, the one read longest ago first */
    int64_t at_ns;              /* of the latest reading of a job */
    uint32_t running;           /* jobs with a reading then */
};

struct series *series_new(int64_t period_ns, int64_t hold_ns)
{
    struct series *series = xcalloc(1, sizeof *series);

    series->period_ns = period_ns;
    series->hold_ns = hold_ns;
    return series;
}

static void forget_job(struct series *series, struct job_series *job)
{
    HASH_DEL(series->jobs, job);
    DL_DELETE(series->by_time, job);
    free(job->points);
    free(job);
}

void series_free(struct series *series)
{
    if (!series)
        return;
    while (series->by_time)
        forget_job(series, series->by_time);
    for (size_t i = 0; i < series->gpu_count; i++)
        free(series->gpus[i]);
    free(series->gpus);
    free(series);
}

/* Since when a reading stands. */
static int64_t stands_from(const struct series *series, int64_t last_ns, int64_t at_ns)
{
    return last_ns && at_ns - last_ns <= series->hold_ns ? last_ns : at_ns - series->period_ns;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint32_t kept(int64_t value, bool is_bytes)
{
    int64_t small = is_bytes ? value >> KIB_SHIFT : value;

    return value < 0 ? UNKNOWN : (uint32_t)earlier(small, UNKNOWN - 1);
}

static int64_t shown(uint32_t value, bool is_bytes)
{
    return value == UNKNOWN ? -1 : is_bytes ? (int64_t)value << KIB_SHIFT : value;
}

/* ---- GPUs ---- */

static bool gpu_value_is_bytes(enum series_gpu_value value)
{
    return value <= SERIES_UNMANAGED_BYTES;
}

static uint32_t mean_of(const struct ring *ring, enum series_gpu_value value)
{
    return ring->weights[value] > 0
               ? kept((int64_t)(ring->sums[value] / ring->weights[value] + 0.5), gpu_value_is_bytes(value))
               : UNKNOWN;
}

/* The time between the steps was not read. */
static void go_to(struct ring *ring, int64_t slot)
{
    if (slot <= ring->slot)
        return;
    for (int value = 0; value < SERIES_GPU_VALUES; value++)
        ring->means[ring->slot % SERIES_POINTS].values[value] = mean_of(ring, value);
    for (int64_t between = later(ring->slot + 1, slot - SERIES_POINTS); between < slot; between++)
        memset(&ring->means[between % SERIES_POINTS], 0xff, sizeof ring->means[0]);
    memset(ring->sums, 0, sizeof ring->sums);
    memset(ring->weights, 0, sizeof ring->weights);
    ring->slot = slot;
}

static void add_to_ring(struct ring *ring, int64_t step_ns, int64_t from_ns, int64_t to_ns, const int64_t *values)
{
    for (int64_t at_ns = from_ns; at_ns < to_ns;) {
        int64_t slot = at_ns / step_ns, end_ns = earlier((slot + 1) * step_ns, to_ns);

        go_to(ring, slot);
        for (int value = 0; value < SERIES_GPU_VALUES; value++) {
            if (values[value] < 0)
                continue;
            ring->sums[value] += (double)values[value] * (double)(end_ns - at_ns);
            ring->weights[value] += (double)(end_ns - at_ns);
        }
        at_ns = end_ns;
    }
}

static void begin_afresh(struct gpu_series *gpu)
{
    memset(gpu, 0, sizeof *gpu);
    for (int level = 0; level < LEVELS; level++)
        memset(gpu->rings[level].means, 0xff, sizeof gpu->rings[level].means);
}

static struct gpu_series *gpu_of(struct series *series, uint32_t gpu)
{
    array_reserve(series->gpus, series->gpu_capacity, (size_t)gpu + 1);
    while (series->gpu_count <= gpu)
        series->gpus[series->gpu_count++] = NULL;
    if (!series->gpus[gpu]) {
        series->gpus[gpu] = xmalloc(sizeof **series->gpus);
        begin_afresh(series->gpus[gpu]);
    }
    return series->gpus[gpu];
}

void series_add_gpu(struct series *series, uint32_t number, int64_t at_ns,
                    const int64_t values[static SERIES_GPU_VALUES])
{
    struct gpu_series *gpu = gpu_of(series, number);

    if (at_ns < gpu->at_ns - series->hold_ns)
        begin_afresh(gpu);
    if (at_ns <= gpu->at_ns)
        return;
    for (int level = 0; level < LEVELS; level++)
        add_to_ring(&gpu->rings[level], level_step_ns[level], later(stands_from(series, gpu->at_ns, at_ns), 0), at_ns,
                    values);
    gpu->at_ns = at_ns;
}

int64_t series_gpu_mean(const struct series *series, uint32_t gpu, int64_t step_ns, int64_t from_ns,
                        enum series_gpu_value value)
{
    const struct ring *ring;
    int64_t slot = from_ns / step_ns;
    uint32_t mean;

    if (gpu >= series->gpu_count || !series->gpus[gpu])
        return -1;
    ring = &series->gpus[gpu]->rings[step_ns == SERIES_FINE_NS ? 0 : 1];
    if (slot > ring->slot || slot <= ring->slot - SERIES_POINTS)
        return -1;
    mean = slot == ring->slot ? mean_of(ring, value) : ring->means[slot % SERIES_POINTS].values[value];
    return shown(mean, gpu_value_is_bytes(value));
}

/* ---- Jobs ---- */

static void merge_sm(struct job_point *point, float permille, float weight)
{
    if (weight <= 0)
        return;
    point->sm_weight += weight;
    point->sm_permille += (permille - point->sm_permille) * weight / point->sm_weight;
}

static void merge_most(uint32_t *most, uint32_t value)
{
    if (value != UNKNOWN && (*most == UNKNOWN || value > *most))
        *most = value;
}

static const struct job_point nothing = {.most = {UNKNOWN, UNKNOWN, UNKNOWN}};

static void double_step(struct job_series *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct job_point from = job->points[i], *to = &job->points[i / 2];

        if (i % 2 == 0)
            *to = nothing;
        for (int value = 0; value < SERIES_JOB_SM_PERMILLE; value++)
            merge_most(&to->most[value], from.most[value]);
        merge_sm(to, from.sm_permille, from.sm_weight);
    }
    job->count = (job->count + 1) / 2;
    job->step_ns *= 2;
}

/* The point of that time, which is not before the last one's. */
static struct job_point *point_at(struct job_series *job, int64_t at_ns)
{
    uint32_t index;

    while ((at_ns - job->from_ns) / job->step_ns >= SERIES_JOB_POINTS)
        double_step(job);
    index = (uint32_t)((at_ns - job->from_ns) / job->step_ns);
    array_reserve(job->points, job->capacity, (size_t)index + 1);
    while (job->count <= index)
        job->points[job->count++] = nothing;
    return &job->points[index];
}

static void add_to_job(struct job_series *job, int64_t from_ns, int64_t to_ns, const int64_t *values)
{
    for (int64_t at_ns = later(from_ns, job->from_ns); at_ns < to_ns;) {
        struct job_point *point = point_at(job, at_ns);
        int64_t end_ns = earlier(job->from_ns + ((at_ns - job->from_ns) / job->step_ns + 1) * job->step_ns, to_ns);

        for (int value = 0; value < SERIES_JOB_SM_PERMILLE; value++)
            merge_most(&point->most[value], kept(values[value], true));
        if (values[SERIES_JOB_SM_PERMILLE] >= 0)
            merge_sm(point, (float)values[SERIES_JOB_SM_PERMILLE], (float)(end_ns - at_ns));
        at_ns = end_ns;
    }
}

/* Those that ran in the latest reading stand last. */
static void count_reading(struct series *series, int64_t at_ns)
{
    if (at_ns != series->at_ns)
        series->running = 0;
    series->at_ns = at_ns;
    series->running++;
    while (HASH_COUNT(series->jobs) > series->running + SERIES_JOBS_OVER)
        forget_job(series, series->by_time);
}

static struct job_series *job_of(const struct series *series, uint64_t id)
{
    struct job_series *job;

    HASH_FIND(hh, series->jobs, &id, sizeof id, job);
    return job;
}

void series_add_job(struct series *series, uint64_t id, int64_t at_ns, const int64_t values[static SERIES_JOB_VALUES])
{
    struct job_series *job = job_of(series, id);

    if (job && at_ns < job->at_ns - series->hold_ns) {
        forget_job(series, job);
        job = NULL;
    }
    if (job && at_ns <= job->at_ns)
        return;
    if (!job) {
        job = xcalloc(1, sizeof *job);
        job->id = id;
        job->from_ns = at_ns - series->period_ns;
        job->step_ns = series->period_ns;
        HASH_ADD(hh, series->jobs, id, sizeof job->id, job);
    } else {
        DL_DELETE(series->by_time, job);
    }
    DL_APPEND(series->by_time, job);
    add_to_job(job, stands_from(series, job->at_ns, at_ns), at_ns, values);
    job->at_ns = at_ns;
    count_reading(series, at_ns);
}

bool series_find_job(const struct series *series, uint64_t id, struct series_job *found)
{
    const struct job_series *job = job_of(series, id);

    if (job)
        *found = (struct series_job){.from_ns = job->from_ns, .step_ns = job->step_ns, .count = job->count};
    return job;
}

int64_t series_job_at(const struct series *series, uint64_t id, uint32_t index, enum series_job_value value)
{
    const struct job_series *job = job_of(series, id);
    const struct job_point *point = job && index < job->count ? &job->points[index] : &nothing;

    if (value != SERIES_JOB_SM_PERMILLE)
        return shown(point->most[value], true);
    return point->sm_weight > 0 ? (int64_t)(point->sm_permille + 0.5F) : -1;
}
