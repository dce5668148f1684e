#include "trace/build.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"

#define MAX_SPAN_S 1e9 /* as in the format */

/* Splitmix64 (Steele, Lea, Flood 2014): small, and the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 to below `bound`, each as likely as any other. */
static size_t draw_below(uint64_t *state, size_t bound)
{
    uint64_t excess = (UINT64_MAX % bound + 1) % bound, value;

    do
        value = next_random(state);
    while (value > UINT64_MAX - excess);
    return value % bound;
}

static int64_t to_whole_ms(double ns)
{
    return llround(ns / (double)NS_PER_MS) * NS_PER_MS;
}

static int take_window(struct trace *built, const struct trace *source, const struct trace_build *plan,
                       struct trace_build_report *report, struct error *err)
{
    built->items = xcalloc(source->count, sizeof *built->items);
    for (size_t i = 0; i < source->count; i++) {
        const struct trace_job *job = &source->items[i];

        if (job->arrival_ns < plan->from_ns || (plan->to_ns >= 0 && job->arrival_ns >= plan->to_ns))
            continue;
        report->in_window++;
        if (plan->max_gpus && job->gpus > plan->max_gpus)
            report->too_large++;
        else
            built->items[built->count++] = *job;
    }
    if (report->in_window == 0)
        return error_set(err, EINVAL, "no job arrives in that window: they arrive from %.12g s to %.12g s",
                         (double)source->items[0].arrival_ns / 1e9,
                         (double)source->items[source->count - 1].arrival_ns / 1e9);
    if (built->count == 0)
        return error_set(err, EINVAL, "each of the window's %zu jobs takes more than %" PRIu32 " GPUs: allow more",
                         report->in_window, plan->max_gpus);
    return 0;
}

/* Keeps `jobs` of them in their order, every choice as likely as any other (selection sampling). */
static int trim(struct trace *built, size_t jobs, uint64_t *random, struct error *err)
{
    size_t kept = 0;

    if (jobs > built->count)
        return error_set(err, EINVAL, "%zu jobs are asked for and the window has %zu: widen it or ask for fewer", jobs,
                         built->count);
    for (size_t i = 0; kept < jobs; i++)
        if (draw_below(random, built->count - i) < jobs - kept)
            built->items[kept++] = built->items[i];
    built->count = kept;
    return 0;
}

/* How many jobs each class gets: the mix by largest remainders. */
static void apportion(const uint32_t mix[static WORKLOAD_CLASS_COUNT], size_t jobs,
                      size_t counts[static WORKLOAD_CLASS_COUNT])
{
    uint64_t sum = 0, remainders[WORKLOAD_CLASS_COUNT];
    size_t given = 0;

    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        sum += mix[c];
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++) {
        counts[c] = jobs * mix[c] / sum;
        remainders[c] = jobs * mix[c] % sum;
        given += counts[c];
    }
    for (; given < jobs; given++) {
        size_t best = 0;
        for (size_t c = 1; c < WORKLOAD_CLASS_COUNT; c++)
            if (remainders[c] > remainders[best])
                best = c;
        counts[best]++;
        remainders[best] = 0;
    }
}

/* The workloads of a class by rising GPUs. */
struct pool {
    const struct workload **items;       /* owned */
    size_t up_to[WORKLOAD_MAX_GPUS + 1]; /* at most this many run on at most that many GPUs */
};

static void pool_init(struct pool *pool, const struct workloads *workloads, enum workload_class class)
{
    size_t count = 0;

    *pool = (struct pool){.items = xcalloc(workloads->count + 1, sizeof *pool->items)};
    for (uint32_t gpus = 1; gpus <= WORKLOAD_MAX_GPUS; gpus++) {
        for (size_t i = 0; i < workloads->count; i++)
            if (workloads->items[i].gpus == gpus && workload_class(&workloads->items[i]) == class)
                pool->items[count++] = &workloads->items[i];
        pool->up_to[gpus] = count;
    }
}

static int64_t kept_duration_ns(const struct trace_job *job, const struct trace_build *plan)
{
    int64_t ns = trace_job_duration_ns(job);

    if (plan->max_duration_ns && ns > plan->max_duration_ns)
        ns = plan->max_duration_ns;
    return ns < plan->min_duration_ns ? plan->min_duration_ns : ns;
}

static int map_job(struct trace_job *job, enum workload_class class, const struct pool *pool,
                   const struct trace_build *plan, uint64_t *random, struct error *err)
{
    uint32_t limit = plan->keep_gpus ? job->gpus : plan->max_gpus;
    size_t fitting = pool->up_to[limit == 0 || limit > WORKLOAD_MAX_GPUS ? WORKLOAD_MAX_GPUS : limit];

    if (fitting == 0 && limit == 0)
        return error_set(err, EINVAL, "there is no %s workload: give that class no share of the mix",
                         workload_class_name(class));
    if (fitting == 0)
        return error_set(err, EINVAL,
                         "no %s workload runs on at most %" PRIu32 " GPUs: give that class no share of the mix",
                         workload_class_name(class), limit);
    job->duration_ns = plan->keep_durations ? kept_duration_ns(job, plan) : -1;
    job->workload = pool->items[draw_below(random, fitting)];
    if (!plan->keep_gpus)
        job->gpus = job->workload->gpus;
    job->gpu_permille = 1000;
    return 0;
}

static void shuffle(enum workload_class *classes, size_t count, uint64_t *random)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = draw_below(random, i + 1);
        enum workload_class class = classes[i];
        classes[i] = classes[other];
        classes[other] = class;
    }
}

static int map(struct trace *built, const struct trace_build *plan, uint64_t *random, struct error *err)
{
    CLEANUP(free_ptr) enum workload_class *classes = xcalloc(built->count, sizeof *classes);
    struct pool pools[WORKLOAD_CLASS_COUNT];
    size_t counts[WORKLOAD_CLASS_COUNT], at = 0;
    int rc = 0;

    apportion(plan->mix, built->count, counts);
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++) {
        pool_init(&pools[c], plan->workloads, (enum workload_class)c);
        for (size_t i = 0; i < counts[c]; i++)
            classes[at++] = (enum workload_class)c;
    }
    shuffle(classes, built->count, random);
    for (size_t i = 0; rc == 0 && i < built->count; i++)
        rc = map_job(&built->items[i], classes[i], &pools[classes[i]], plan, random, err);
    for (size_t c = 0; c < WORKLOAD_CLASS_COUNT; c++)
        free(pools[c].items);
    return rc;
}

static double gpu_seconds(const struct trace *trace)
{
    double sum = 0;

    for (size_t i = 0; i < trace->count; i++)
        sum += (double)trace->items[i].gpus * (double)trace_job_duration_ns(&trace->items[i]) / 1e9;
    return sum;
}

static int scale_arrivals(struct trace *built, const struct trace_build *plan, double *stretch, struct error *err)
{
    int64_t begin_ns = built->items[0].arrival_ns;
    double span_s = (double)(built->items[built->count - 1].arrival_ns - begin_ns) / 1e9;

    *stretch = plan->stretch;
    if (plan->load > 0 && span_s <= 0)
        return error_set(err, EINVAL, "all jobs arrive at once: no times between them make a load of %g", plan->load);
    if (plan->load > 0)
        *stretch = gpu_seconds(built) / (plan->load * plan->load_gpus) / span_s;
    if (span_s * *stretch > MAX_SPAN_S)
        return error_set(err, ERANGE, "stretched %g times, the last job arrives after %g s: the most is %g s", *stretch,
                         span_s * *stretch, MAX_SPAN_S);
    for (size_t i = 0; i < built->count; i++)
        built->items[i].arrival_ns = to_whole_ms((double)(built->items[i].arrival_ns - begin_ns) * *stretch);
    return 0;
}

int trace_build(struct trace *built, const struct trace *source, const struct trace_build *plan,
                struct trace_build_report *report, struct error *err)
{
    uint64_t random = plan->seed;
    int rc;

    *built = (struct trace){.format = TRACE_CARMA};
    *report = (struct trace_build_report){0};
    if ((rc = take_window(built, source, plan, report, err)) ||
        (plan->jobs && (rc = trim(built, plan->jobs, &random, err))) ||
        (plan->draw && (rc = map(built, plan, &random, err))) ||
        (rc = scale_arrivals(built, plan, &report->stretch, err))) {
        trace_release(built);
        return rc;
    }
    for (size_t i = 0; i < built->count; i++) {
        struct trace_job *job = &built->items[i];

        if (job->duration_ns >= 0)
            job->duration_ns = job->duration_ns < NS_PER_MS ? NS_PER_MS : to_whole_ms((double)job->duration_ns);
        report->class_jobs[workload_class(job->workload)]++;
    }
    return 0;
}

/* Seconds, with decimals where they need some. */
static void put_seconds(struct strbuf *out, int64_t ns)
{
    int64_t ms = ns / NS_PER_MS;

    strbuf_printf(out, "%" PRId64, ms / 1000);
    if (ms % 1000)
        strbuf_printf(out, ".%03" PRId64, ms % 1000);
}

void trace_write(const struct trace *trace, struct strbuf *out)
{
    bool with_gpus = false, with_durations = false;

    for (size_t i = 0; i < trace->count; i++) {
        with_gpus = with_gpus || trace->items[i].gpus != trace->items[i].workload->gpus;
        with_durations = with_durations || trace->items[i].duration_ns >= 0;
    }
    strbuf_printf(out, "arrival_s,workload%s%s\n", with_gpus ? ",gpus" : "", with_durations ? ",duration_s" : "");
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->items[i];

        put_seconds(out, job->arrival_ns);
        strbuf_printf(out, ",%s", job->workload->id);
        if (with_gpus)
            strbuf_printf(out, ",%" PRIu32, job->gpus);
        if (with_durations)
            strbuf_puts(out, ",");
        if (job->duration_ns >= 0)
            put_seconds(out, job->duration_ns);
        strbuf_puts(out, "\n");
    }
}
