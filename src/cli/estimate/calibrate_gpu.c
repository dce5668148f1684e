/* A machine profile by measurement. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/estimate/calibrate.h"
#include "cli/estimate/calibrate_step.h"
#include "gpu/cuda.h"
#include "gpu/nvml/nvml.h"

#define CLEARING_MS      2000
#define CLEARING_POLL_MS 50

/* The GPU's memory as nvidia-smi shows it. */
struct watch {
    void *nvml;
    const struct cuda_gpu *gpu;
    struct gpu_node_reading *reading; /* owned */
};

static void watch_release(struct watch *watch)
{
    if (watch->nvml)
        gpu_backend_nvml.close(watch->nvml);
    free_ptr(&watch->reading);
}

static const struct gpu_reading *look(struct watch *watch, struct error *err)
{
    struct gpu_node_reading *reading = watch->reading;

    if (gpu_backend_nvml.read(watch->nvml, reading, err) < 0)
        return NULL;
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        bool same = *watch->gpu->uuid ? strcmp(gpu->uuid, watch->gpu->uuid) == 0 : reading->count == 1;
        if (same && gpu->valid & GPU_HAS_MEMORY)
            return gpu;
    }
    error_set(err, EIO, "NVML does not show the memory of %s %s", watch->gpu->name, watch->gpu->uuid);
    return NULL;
}

static int used_now(struct watch *watch, int64_t *used_bytes, struct error *err)
{
    const struct gpu_reading *gpu = look(watch, err);

    if (gpu)
        *used_bytes = gpu->used_bytes;
    return gpu ? 0 : -EIO;
}

/* The GPU, once no process is on it: a driver may take a moment to clear up after one that has ended. */
static const struct gpu_reading *look_until_idle(struct watch *watch, struct error *err)
{
    const struct gpu_reading *gpu = look(watch, err);

    for (int waited_ms = 0; gpu && gpu->process_count && waited_ms < CLEARING_MS; waited_ms += CLEARING_POLL_MS) {
        usleep(CLEARING_POLL_MS * 1000);
        gpu = look(watch, err);
    }
    return gpu;
}

static int watch_idle_gpu(struct watch *watch, int64_t *used_bytes, struct error *err)
{
    const struct gpu_reading *gpu;
    int rc = gpu_backend_nvml.open(&(struct gpu_backend_options){0}, &watch->nvml, err);

    if (rc)
        return rc;
    watch->reading = xcalloc(1, sizeof *watch->reading);
    gpu = look_until_idle(watch, err);
    if (!gpu)
        return -EIO;
    if (gpu->process_count)
        return error_set(err, EBUSY,
                         "%s (GPU %" PRIu32 ") is in use, %" PRIu32 " of its processes hold memory: calibrate "
                         "when nothing runs there",
                         gpu->name, gpu->index, gpu->process_count);
    *used_bytes = gpu->used_bytes;
    return 0;
}

/* An empty context: the least that any CUDA program takes. */
static int measure_context(struct cuda *cuda, struct watch *watch, int64_t idle_bytes, struct machine_profile *profile,
                           struct strbuf *notes, struct error *err)
{
    int64_t free_bytes, used_bytes;
    char text[UNITS_TEXT];
    int rc = cuda_context_take(cuda, &free_bytes, err);

    if (rc == 0)
        rc = used_now(watch, &used_bytes, err);
    if (rc)
        return rc;
    profile->memory_bytes = free_bytes + used_bytes - idle_bytes;
    strbuf_printf(notes, "# An empty CUDA context takes %s of it.\n", format_bytes(used_bytes - idle_bytes, text));
    cuda_context_give(cuda);
    return 0;
}

static int measure_step(struct tiny_step *step, struct watch *watch, int64_t idle_bytes,
                        struct machine_profile *profile, struct error *err)
{
    struct tiny_step_report linear, convolution;
    int64_t used_bytes, more_bytes;
    int rc;

    if ((rc = tiny_step_start(step, err)) || (rc = tiny_step_wait(step, "linear", &linear, err)) ||
        (rc = used_now(watch, &used_bytes, err)) || (rc = tiny_step_wait(step, "convolution", &convolution, err)) ||
        (rc = used_now(watch, &more_bytes, err)))
        return rc;
    profile->context_bytes = used_bytes - idle_bytes - linear.reserved_bytes;
    profile->cudnn_bytes = more_bytes - idle_bytes - convolution.reserved_bytes - profile->context_bytes;
    profile->cublas_workspace_bytes = linear.cublas_workspace_bytes;
    if (profile->cudnn_bytes < 0)
        profile->cudnn_bytes = 0;
    snprintf(profile->source, sizeof profile->source, "measured by carma calibrate with PyTorch %s", linear.torch);
    if (profile->context_bytes <= 0)
        return error_set(err, EIO, "the tiny step seems to take no memory on %s: did something else end meanwhile?",
                         profile->gpu);
    return 0;
}

static int measure(struct cuda *cuda, struct watch *watch, struct machine_profile *profile, struct strbuf *notes,
                   struct error *err)
{
    CLEANUP(tiny_step_end) struct tiny_step step = {.fd = -1};
    int64_t idle_bytes = 0;
    int rc = watch_idle_gpu(watch, &idle_bytes, err);

    if (rc == 0)
        rc = measure_context(cuda, watch, idle_bytes, profile, notes, err);
    if (rc == 0)
        rc = measure_step(&step, watch, idle_bytes, profile, err);
    return rc;
}

int calibrate_by_gpu(struct machine_profile *profile, struct strbuf *notes, struct error *err)
{
    struct cuda_gpu gpu;
    CLEANUP(watch_release) struct watch watch = {.gpu = &gpu};
    struct cuda *cuda;
    int rc = cuda_open(&cuda, err);

    *profile = (struct machine_profile){0};
    if (rc == 0)
        rc = cuda_gpu_facts(cuda, &gpu, err);
    if (rc == 0) {
        snprintf(profile->gpu, sizeof profile->gpu, "%.63s", gpu.name);
        profile->sm_count = gpu.sm_count;
        profile->sm_clock_mhz = gpu.sm_clock_mhz;
        profile->bandwidth_gbps = gpu.bandwidth_gbps;
        rc = measure(cuda, &watch, profile, notes, err);
    }
    cuda_close(cuda);
    return rc;
}
