#include "bench/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/watch.h"

#define LOOKS_PER_POINT   6
#define PERIOD_LEAST_NS   (100 * NS_PER_MS) /* as often as GPM and DCGM measure at most */
#define BATCHES_PER_POINT 10
#define BATCH             16               /* kernels that are started before they are waited for */
#define KERNEL_LEAST_NS   (20 * NS_PER_US) /* wall */
#define KERNEL_MOST_NS    (5 * NS_PER_MS)

/* Our own, by hand. `spin`: each thread goes on for `spin` nanoseconds of the GPU's clock. `work`: each thread does
 * `work` dependent multiplications and additions; the result is stored only in a case that never comes, which the
 * compiler cannot know. */
static const char kernels[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    "\n"
    ".visible .entry spin(.param .u64 span_ns)\n"
    "{\n"
    "    .reg .u64 %span, %first, %now;\n"
    "    .reg .pred %on;\n"
    "    ld.param.u64 %span, [span_ns];\n"
    "    mov.u64 %first, %globaltimer;\n"
    "AGAIN:\n"
    "    mov.u64 %now, %globaltimer;\n"
    "    sub.u64 %now, %now, %first;\n"
    "    setp.lt.u64 %on, %now, %span;\n"
    "    @%on bra AGAIN;\n"
    "    ret;\n"
    "}\n"
    "\n"
    ".visible .entry work(.param .u64 rounds, .param .u64 out)\n"
    "{\n"
    "    .reg .u64 %left, %address;\n"
    "    .reg .u32 %thread;\n"
    "    .reg .f32 %value;\n"
    "    .reg .pred %on, %never;\n"
    "    ld.param.u64 %left, [rounds];\n"
    "    ld.param.u64 %address, [out];\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    cvt.rn.f32.u32 %value, %thread;\n"
    "MORE:\n"
    "    fma.rn.f32 %value, %value, 0f3F7FF000, 0f3F800000;\n" /* value * 0.99975 + 1: stays below 5000 */
    "    sub.u64 %left, %left, 1;\n"
    "    setp.ne.u64 %on, %left, 0;\n"
    "    @%on bra MORE;\n"
    "    setp.lt.f32 %never, %value, 0f00000000;\n"
    "    @%never st.global.f32 [%address], %value;\n"
    "    ret;\n"
    "}\n";

static int open_kernel(struct cuda **cuda, struct cuda_gpu *gpu, const char *name, struct cuda_kernel **kernel,
                       struct error *err)
{
    int64_t free_bytes;
    int rc = cuda_open(cuda, err);

    if (rc == 0)
        rc = cuda_gpu_facts(*cuda, gpu, err);
    if (rc == 0)
        rc = cuda_context_take(*cuda, &free_bytes, err);
    return rc == 0 ? cuda_kernel_load(*cuda, kernels, name, kernel, err) : rc;
}

/* From one thread to twice a full GPU. */
static void choose_points(struct bench_kernel *bench)
{
    static const unsigned int threads[] = {1, 32, 128, 512, 1024};
    unsigned int sms = bench->gpu.sm_count > 4 ? (unsigned int)bench->gpu.sm_count : 4;
    const unsigned int blocks[] = {1, sms / 4, sms / 2, sms, 2 * sms};

    bench->points = xcalloc(array_size(blocks) * array_size(threads), sizeof *bench->points);
    for (size_t b = 0; b < array_size(blocks); b++)
        for (size_t t = 0; t < array_size(threads); t++)
            bench->points[bench->point_count++] = (struct bench_point){.blocks = blocks[b], .threads = threads[t]};
}

/* Keeps the GPU at it for the time of a point. */
static int run_point(const struct bench_kernel *bench, const struct cuda *cuda, struct cuda_kernel *kernel,
                     struct bench_point *point, struct error *err)
{
    int64_t wall_ns = nodetime_to_wall_ns(bench->point_ns);
    uint64_t span_ns = (uint64_t)(wall_ns / (BATCHES_PER_POINT * BATCH));
    void *parameters[] = {&span_ns};
    int rc = 0;

    if (span_ns < KERNEL_LEAST_NS)
        span_ns = KERNEL_LEAST_NS;
    if (span_ns > KERNEL_MOST_NS)
        span_ns = KERNEL_MOST_NS;
    point->begun_ns = nodetime_now_ns();
    do {
        for (int i = 0; rc == 0 && i < BATCH; i++)
            rc = cuda_kernel_launch(cuda, kernel, point->blocks, point->threads, parameters, err);
        if (rc == 0)
            rc = cuda_wait(cuda, err);
        if (*bench->setup.interrupted)
            return error_set(err, EINTR, "interrupted");
    } while (rc == 0 && nodetime_now_ns() - point->begun_ns < bench->point_ns);
    point->ended_ns = nodetime_now_ns();
    return rc;
}

static int64_t period_of(const struct bench_kernel *bench)
{
    int64_t period_ns = bench->point_ns / LOOKS_PER_POINT;

    return period_ns > PERIOD_LEAST_NS ? period_ns : PERIOD_LEAST_NS;
}

struct sums {
    struct bench_kernel *bench;
    struct {
        double metrics[GPU_METRIC_COUNT], utilization;
        int counts[GPU_METRIC_COUNT], utilization_count;
    } * points;
};

/* An interval's reading belongs to the point that contains the whole interval. */
static void take(void *user, const struct gpu_node_reading *reading)
{
    struct sums *sums = user;
    struct bench_kernel *bench = sums->bench;
    int64_t period_ns = period_of(bench);
    const struct gpu_reading *gpu = NULL;

    for (uint32_t i = 0; i < reading->count; i++)
        if (strcmp(reading->gpus[i].uuid, bench->setup.gpu) == 0)
            gpu = &reading->gpus[i];
    for (size_t p = 0; gpu && p < bench->point_count; p++) {
        struct bench_point *point = &bench->points[p];
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
            const struct gpu_measure *measure = &gpu->metrics[metric];
            /* Utilisation, which may stand in, is shown under its own name. */
            if (measure->source == GPU_SOURCE_NONE || measure->source == GPU_SOURCE_UTILIZATION ||
                measure->at_ns < point->begun_ns + period_ns || measure->at_ns > point->ended_ns)
                continue;
            point->sources[metric] = measure->source;
            sums->points[p].metrics[metric] += (double)measure->value / 1000;
            sums->points[p].counts[metric]++;
        }
        if (gpu->valid & GPU_HAS_UTILIZATION && reading->at_ns >= point->begun_ns + period_ns &&
            reading->at_ns <= point->ended_ns) {
            sums->points[p].utilization += (double)gpu->utilization_permille / 1000;
            sums->points[p].utilization_count++;
        }
    }
}

static int take_metrics(struct bench_kernel *bench, const char *directory, struct error *err)
{
    struct sums sums = {.bench = bench, .points = xcalloc(bench->point_count, sizeof *sums.points)};
    int rc = bench_watch_read(directory, take, &sums, err);

    for (size_t p = 0; p < bench->point_count; p++) {
        struct bench_point *point = &bench->points[p];
        for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
            point->metrics[metric] =
                sums.points[p].counts[metric] ? sums.points[p].metrics[metric] / sums.points[p].counts[metric] : -1;
        point->utilization =
            sums.points[p].utilization_count ? sums.points[p].utilization / sums.points[p].utilization_count : -1;
    }
    free(sums.points);
    return rc;
}

static int measure(struct bench_kernel *bench, const struct cuda *cuda, struct cuda_kernel *kernel, struct error *err)
{
    CLEANUP(free_ptr) char *directory = bench_path(bench->setup.directory, "kernel");
    struct bench_child monitor = {0};
    int rc = file_make_dirs(directory, 0755, err);

    if (rc == 0)
        rc = bench_watch_start(&bench->setup, NULL, period_of(bench), directory, &monitor, err);
    if (rc == 0)
        rc = bench_watch_wait(&monitor, directory, 0, err);
    for (size_t p = 0; rc == 0 && p < bench->point_count; p++)
        rc = run_point(bench, cuda, kernel, &bench->points[p], err);
    bench_child_end(&monitor);
    return rc == 0 ? take_metrics(bench, directory, err) : rc;
}

int bench_kernel_measure(struct bench_kernel *bench, struct error *err)
{
    struct cuda_kernel *kernel = NULL;
    struct cuda *cuda = NULL;
    int rc;

    if (!bench_source_present(&bench->setup, BENCH_UTILIZATION, NULL, err))
        return -ENODEV;
    setenv("CUDA_VISIBLE_DEVICES", bench->setup.gpu, 1); /* the same GPU for CUDA's driver */
    rc = open_kernel(&cuda, &bench->gpu, "spin", &kernel, err);
    if (rc == 0) {
        choose_points(bench);
        rc = measure(bench, cuda, kernel, err);
    }
    cuda_close(cuda);
    return rc;
}

void bench_kernel_release(struct bench_kernel *bench)
{
    free_ptr(&bench->points);
    bench->point_count = 0;
}

/* The number of kernels in an epoch, and their size. The light one leaves most of the GPU idle. */
struct load {
    unsigned int launches, blocks_per_sm_permille, threads;
    uint64_t rounds;
};

#define LAUNCHES_AT_ONCE 100

int bench_kernel_load(bool heavy, struct error *err)
{
    const struct load load = heavy ? (struct load){50000, 8000, 256, 20000} : (struct load){200000, 50, 128, 10000};
    struct cuda_kernel *kernel = NULL;
    struct cuda *cuda = NULL;
    struct cuda_gpu gpu;
    uint64_t rounds = load.rounds, nowhere = 0;
    void *parameters[] = {&rounds, &nowhere};
    int rc = open_kernel(&cuda, &gpu, "work", &kernel, err);
    unsigned int blocks = rc == 0 ? (unsigned int)gpu.sm_count * load.blocks_per_sm_permille / 1000 : 0;

    for (unsigned int i = 0; rc == 0 && i < load.launches; i++) {
        rc = cuda_kernel_launch(cuda, kernel, blocks ? blocks : 1, load.threads, parameters, err);
        if (rc == 0 && (i % LAUNCHES_AT_ONCE == LAUNCHES_AT_ONCE - 1 || i == load.launches - 1))
            rc = cuda_wait(cuda, err);
    }
    cuda_close(cuda);
    return rc;
}
