/* bench-decide: time of a decision and memory of a waiting job, against the queue's length.
 *
 * Each turn a running job ends, the core decides, the placed jobs begin to run, and new jobs bring the queue back to
 * its length. Only core_decide is timed, by the processor's time, so that other programs do not count; it also applies
 * its decisions. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "config/config.h"
#include "core/core.h"

#define TURNS         2000
#define TOTAL         (INT64_C(40) * GIB)
#define WORKLOADS     50
#define USERS         50
#define TURN_NS       NS_PER_SEC
#define RESERVED_STEP (512 * MIB)

struct bench {
    struct core *core;
    uint64_t random;
    uint64_t next_job;
    int64_t now_ns;
    uint64_t *running; /* ring of ids */
    size_t first, count, capacity;
};

static uint64_t draw(struct bench *bench, uint64_t below)
{
    bench->random = bench->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (bench->random >> 33) % below;
}

static void feed(struct bench *bench, struct record record)
{
    struct error err;

    record.at_ns = bench->now_ns;
    if (core_apply(bench->core, &record, &err) == 0)
        return;
    fprintf(stderr, "bench-decide: %s\n", err.text);
    exit(1);
}

/* Of one to four GPUs, with 1 to 20 GiB known. */
static void submit(struct bench *bench)
{
    struct record record = {.type = RECORD_SUBMITTED, .job = bench->next_job++};
    uint32_t width = (uint32_t)draw(bench, 10);

    record.submitted = (struct record_submitted){.gpus = width < 8   ? 1
                                                         : width < 9 ? 2
                                                                     : 4,
                                                 .request_bytes = GIB + (int64_t)draw(bench, 39) * RESERVED_STEP,
                                                 .request_source = SOURCE_DECLARED,
                                                 .smact_permille = 100 + (int32_t)draw(bench, 900),
                                                 .uid = 1000 + (uint32_t)draw(bench, USERS)};
    snprintf(record.submitted.workload, sizeof record.submitted.workload, "workload %" PRIu64, draw(bench, WORKLOADS));
    feed(bench, record);
}

/* Launches the jobs that were placed. */
static void act(struct bench *bench, const struct record_list *decisions)
{
    for (size_t i = 0; i < decisions->count; i++) {
        const struct record *placed = &decisions->items[i];
        if (placed->type != RECORD_PLACED)
            continue;
        feed(bench, (struct record){.type = RECORD_STARTED, .job = placed->job});
        for (uint32_t k = 0; k < placed->placed.count; k++)
            feed(bench,
                 (struct record){.type = RECORD_FIRST_USE,
                                 .job = placed->job,
                                 .memory = {.gpu = placed->placed.gpus[k], .bytes = placed->placed.reserved_bytes}});
        bench->running[(bench->first + bench->count++) % bench->capacity] = placed->job;
    }
}

static void complete_one(struct bench *bench)
{
    uint64_t job = bench->running[bench->first];

    bench->first = (bench->first + 1) % bench->capacity;
    bench->count--;
    feed(
        bench,
        (struct record){
            .type = RECORD_EXITED,
            .job = job,
            .exited = {.cause = EXIT_COMPLETED, .requested_bytes = -1, .free_bytes = -1, .failed_gpu = RECORD_NO_GPU}});
}

static void begin(struct bench *bench, const char *policy, uint32_t gpus)
{
    struct config config;
    struct error err;

    config_init_default(&config);
    if (config_set(&config, "policy", policy, &err) || config_set(&config, "decide_period", "0s", &err)) {
        fprintf(stderr, "bench-decide: %s\n", err.text);
        exit(1);
    }
    bench->capacity = (size_t)gpus * config.core.max_jobs_per_gpu + 1;
    bench->running = xcalloc(bench->capacity, sizeof *bench->running);
    bench->core = core_new();
    feed(bench, (struct record){.type = RECORD_RECONFIGURED, .config = config.core});
    config_release(&config);
    for (uint32_t i = 0; i < gpus; i++) {
        struct record record = {.type = RECORD_GPU_BACK, .gpu = {.gpu = i, .total_bytes = TOTAL, .share = SHARE_AUTO}};
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "GPU-%" PRIu32, i);
        feed(bench, record);
        feed(bench, (struct record){.type = RECORD_SAMPLE, .sample = {.gpu = i}});
    }
}

static void end(struct bench *bench)
{
    core_free(bench->core);
    free(bench->running);
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static double decide(struct bench *bench, struct record_list *decisions)
{
    struct timespec from, to;

    decisions->count = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    core_decide(bench->core, bench->now_ns, decisions);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
}

/* Bytes per waiting job, of a core that has just this queue. */
static double memory_per_job(uint64_t length)
{
    struct bench bench = {.random = 1, .next_job = 1, .now_ns = NS_PER_SEC};
    struct mallinfo2 before, after;

    begin(&bench, "carma", 0);
    before = mallinfo2();
    while (core_waiting_count(bench.core) < length)
        submit(&bench);
    after = mallinfo2();
    end(&bench);
    return (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / (double)length;
}

static void measure(const char *policy, uint32_t gpus, uint64_t length)
{
    struct bench bench = {.random = 1, .next_job = 1, .now_ns = NS_PER_SEC};
    struct record_list decisions = {0};
    double microseconds[TURNS];

    begin(&bench, policy, gpus);
    do { /* the GPUs fill up */
        while (core_waiting_count(bench.core) < length)
            submit(&bench);
        decide(&bench, &decisions);
        act(&bench, &decisions);
    } while (decisions.count);
    for (size_t turn = 0; turn < TURNS; turn++) {
        bench.now_ns += TURN_NS;
        complete_one(&bench);
        microseconds[turn] = decide(&bench, &decisions);
        act(&bench, &decisions);
        while (core_waiting_count(bench.core) < length)
            submit(&bench);
    }
    qsort(microseconds, TURNS, sizeof *microseconds, compare);
    printf("  %-9s  %4" PRIu32 "  %6" PRIu64 "  %7.1f  %7.1f  %7.1f  %13.0f\n", policy, gpus, length,
           microseconds[TURNS / 2], microseconds[TURNS * 99 / 100], microseconds[TURNS - 1], memory_per_job(length));
    fflush(stdout);
    record_list_release(&decisions);
    end(&bench);
}

int main(void)
{
    static const char *const policies[] = {"carma", "magm", "exclusive"};
    static const uint32_t gpus[] = {8, 64, 256};
    static const uint64_t lengths[] = {10, 100, 1000, 10000, 100000};

    printf("One decision after a job has ended, microseconds of a processor; %d of each kind, measured on %ld CPUs.\n",
           TURNS, sysconf(_SC_NPROCESSORS_ONLN));
    printf("  policy     GPUs   queue      p50      p99     most  bytes per job\n");
    for (size_t p = 0; p < array_size(policies); p++)
        for (size_t g = 0; g < array_size(gpus); g++)
            for (size_t l = 0; l < array_size(lengths); l++)
                measure(policies[p], gpus[g], lengths[l]);
    return 0;
}
