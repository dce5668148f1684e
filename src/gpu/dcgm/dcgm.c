#include "gpu/dcgm/dcgm.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "gpu/dcgm/watch.h"

#define ENGINE_ADDRESS     "127.0.0.1"          /* at DCGM's own port */
#define ENGINE_SOCKET      "/tmp/nv-hostengine" /* where nv-hostengine makes it by default */
#define CONNECT_TIMEOUT_MS 500
#define PERIOD_LEAST_US    100000 /* as often as DCGM profiles at most */
#define STALE_PERIODS      3
#define STALE_MORE_US      2000000 /* an engine may be late by this much more */
#define ZERO_LOOKS         3       /* looks with zeros alone after an Xid before they are not trusted */

struct dcgm {
    struct dcgm_calls calls;
    int64_t period_us; /* wall */
    bool connected, embedded;
    uintptr_t handle;
    struct dcgm_pause pause; /* before the next try to connect */
    int status;              /* with which the last one failed */
    struct dcgm_entities entities;
    struct dcgm_watches watches;
    uint32_t known_count; /* the GPUs and instances that were there when the engine was asked for its own */
    char known[GPU_MAX_DEVICES][GPU_UUID_SIZE];
};

/* The first thing said stays. */
static void __attribute__((format(printf, 2, 3))) say(struct gpu_node_reading *reading, const char *format, ...)
{
    va_list args;

    if (reading->limits[0])
        return;
    va_start(args, format);
    vsnprintf(reading->limits, sizeof reading->limits, format, args);
    va_end(args);
}

static const char *remedy(int status)
{
    bool denied = status == DCGM_REQUIRES_ROOT || status == DCGM_NO_PERMISSION;

    return denied ? ": run nv-hostengine, or carmad, as root" : "";
}

/* Connecting. */

/* The length of the list at the end of struct dcgm_embedded differs from release to release, and the library takes its
 * own alone. */
static int start_embedded(struct dcgm *dcgm)
{
    int status = DCGM_VERSION_MISMATCH;

    for (size_t modules = DCGM_MODULES_LEAST; dcgm->calls.embed && modules <= DCGM_MODULES_MOST; modules += 2) {
        struct dcgm_embedded embedded = {.mode = DCGM_MODE_AUTO, .severity = DCGM_SEVERITY_NONE};
        size_t size = offsetof(struct dcgm_embedded, denied) + modules * sizeof embedded.denied[0];

        embedded.version = (unsigned int)size | 1u << 24;
        status = dcgm->calls.embed(&embedded);
        dcgm->handle = embedded.handle;
        if (status != DCGM_VERSION_MISMATCH)
            break;
    }
    if (status == DCGM_VERSION_MISMATCH && dcgm->calls.embed_old)
        status = dcgm->calls.embed_old(DCGM_MODE_AUTO, &dcgm->handle);
    return status;
}

static int connect_to(struct dcgm *dcgm, const char *address, bool is_socket)
{
    struct dcgm_connect connect = {.version = DCGM_VERSION(struct dcgm_connect, 2),
                                   .timeout_ms = CONNECT_TIMEOUT_MS,
                                   .address_is_unix_socket = is_socket};

    return dcgm->calls.connect(address, &connect, &dcgm->handle);
}

static int connect_engine(struct dcgm *dcgm)
{
    const char *named = getenv(GPU_DCGM_ENGINE_ENV);
    struct stat info;
    int status;

    dcgm->embedded = false;
    if (named && *named) {
        status = connect_to(dcgm, named, named[0] == '/');
        dcgm->connected = status == DCGM_OK;
        return status;
    }
    status = connect_to(dcgm, ENGINE_ADDRESS, false);
    if (status != DCGM_OK && stat(ENGINE_SOCKET, &info) == 0 && S_ISSOCK(info.st_mode))
        status = connect_to(dcgm, ENGINE_SOCKET, true);
    dcgm->embedded = status != DCGM_OK;
    if (status != DCGM_OK)
        status = start_embedded(dcgm);
    dcgm->connected = status == DCGM_OK;
    return status;
}

static void disconnect(struct dcgm *dcgm)
{
    if (!dcgm->connected)
        return;
    if (!dcgm->embedded)
        dcgm->calls.disconnect(dcgm->handle);
    else if (dcgm->calls.embed_stop)
        dcgm->calls.embed_stop(dcgm->handle);
    dcgm->connected = false;
}

static void fail(struct dcgm *dcgm, int status)
{
    disconnect(dcgm);
    dcgm->status = status;
    dcgm_pause_begin(&dcgm->pause, nodetime_monotonic_wall_ns());
}

static bool same_gpus(const struct dcgm *dcgm, const struct gpu_node_reading *reading)
{
    bool same = dcgm->known_count == reading->count;

    for (uint32_t i = 0; same && i < reading->count; i++)
        same = strcmp(dcgm->known[i], reading->gpus[i].uuid) == 0;
    return same;
}

static void note_gpus(struct dcgm *dcgm, const struct gpu_node_reading *reading)
{
    dcgm->known_count = reading->count;
    for (uint32_t i = 0; i < reading->count; i++)
        memcpy(dcgm->known[i], reading->gpus[i].uuid, GPU_UUID_SIZE);
}

/* Whether an engine is at hand that watches the GPUs of this reading. */
static bool ready(struct dcgm *dcgm, const struct gpu_node_reading *reading)
{
    int status;

    if (dcgm->connected && same_gpus(dcgm, reading))
        return true;
    disconnect(dcgm);
    if (nodetime_monotonic_wall_ns() < dcgm->pause.until_wall_ns)
        return false;
    status = connect_engine(dcgm);
    if (status == DCGM_OK)
        status = dcgm_entities_ask(&dcgm->entities, &dcgm->calls, dcgm->handle);
    if (status != DCGM_OK) {
        fail(dcgm, status);
        return false;
    }
    note_gpus(dcgm, reading);
    dcgm_watches_begin(&dcgm->watches, &dcgm->calls, dcgm->handle, dcgm->period_us, &dcgm->entities);
    return true;
}

/* Filling in. */

static bool is_stale(const struct dcgm *dcgm, int64_t age_us)
{
    return age_us > STALE_PERIODS * dcgm->period_us + STALE_MORE_US;
}

static struct gpu_measure to_measure(uint32_t metric, const struct dcgm_value *value, int64_t age_us)
{
    double factor = metric == GPU_PCIE_TX || metric == GPU_PCIE_RX ? 1 : 1000; /* permille */
    int64_t age_ns = (int64_t)((double)(age_us > 0 ? age_us : 0) * 1000 * nodetime_scale());
    int64_t now_ns = nodetime_now_ns();

    return (struct gpu_measure){.source = GPU_SOURCE_DCGM,
                                .value = llround(value->number * factor),
                                .at_ns = age_ns < now_ns ? now_ns - age_ns : 0};
}

/* After some Xids DCGM goes on with zeros until it is asked anew, while NVML shows that kernels run. */
static bool zeros_are_stuck(struct dcgm *dcgm, const struct dcgm_entity *entity, const struct gpu_reading *gpu)
{
    struct dcgm_watch *watch = &dcgm->watches.gpus[entity->gpu];
    bool zero = (gpu->xid || dcgm->entities.gpus[entity->gpu].xid) && gpu->valid & GPU_HAS_UTILIZATION &&
                gpu->utilization_permille > 0 && entity->values[GPU_SM_ACTIVITY].status == DCGM_OK;

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        zero = zero && (entity->values[metric].status != DCGM_OK || entity->values[metric].number == 0);
    watch->zero_looks = zero ? watch->zero_looks + 1 : 0;
    if (!zero) {
        if (watch->status == DCGM_OK)
            dcgm_pause_end(&watch->pause);
        return false;
    }
    if (watch->zero_looks >= ZERO_LOOKS && !watch->pause.until_wall_ns)
        dcgm_pause_begin(&watch->pause, nodetime_monotonic_wall_ns());
    return watch->zero_looks >= ZERO_LOOKS;
}

static const char *kind_of(const struct gpu_reading *gpu)
{
    return gpu->kind == GPU_INSTANCE ? "an instance of GPU" : "GPU";
}

/* Says why DCGM has no value of a metric that NVML lacks, too. */
static void explain(struct gpu_node_reading *reading, const struct dcgm *dcgm, const struct gpu_reading *gpu,
                    const struct dcgm_watch *watch, uint32_t metric, int status, int64_t age_us)
{
    const char *what = gpu_metric_name(metric);
    const char *of = kind_of(gpu);

    if (gpu->kind == GPU_PARTITIONED || (gpu->kind == GPU_INSTANCE && (metric == GPU_PCIE_TX || metric == GPU_PCIE_RX)))
        return; /* nobody runs on the former; traffic is the whole GPU's, never an instance's */
    if (watch->status != DCGM_OK && watch->set_count == 0)
        say(reading, "DCGM cannot profile %s %u: %.60s (%d)%s", of, gpu->index,
            dcgm_calls_text(&dcgm->calls, watch->status), watch->status, remedy(watch->status));
    else if (status != DCGM_NO_DATA && status != DCGM_OK)
        say(reading, "DCGM has no %s of %s %u: %.60s (%d)%s", what, of, gpu->index,
            dcgm_calls_text(&dcgm->calls, status), status, remedy(status));
    else if (watch->status == DCGM_PROFILING_MULTI_PASS)
        say(reading, "DCGM cannot measure %s of %s %u beside the other metrics (%d)", what, of, gpu->index,
            watch->status);
    else if (is_stale(dcgm, age_us))
        say(reading, "DCGM's latest %s of %s %u is too old", what, of, gpu->index); /* a difference below this is not
                                                                                       news */
}

static void fill(struct dcgm *dcgm, struct gpu_node_reading *reading, struct gpu_reading *gpu)
{
    struct dcgm_entity *outer, *entity = dcgm_entities_find(&dcgm->entities, gpu, &outer);
    int64_t now_us = dcgm_epoch_us();
    const struct dcgm_watch *watch;

    if (!entity) {
        say(reading, "DCGM does not know %s %u (%s)", kind_of(gpu), gpu->index, gpu->uuid);
        return;
    }
    watch = &dcgm->watches.gpus[entity->gpu];
    if (gpu->kind != GPU_INSTANCE && zeros_are_stuck(dcgm, entity, gpu)) {
        say(reading, "DCGM shows zeros for GPU %u since its Xid, while kernels run: it is asked anew", gpu->index);
        return;
    }
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        const struct dcgm_value *value = &entity->values[metric];
        int64_t age_us;

        if (gpu->metrics[metric].source != GPU_SOURCE_NONE)
            continue;
        if (value->status != DCGM_OK && outer)
            value = &outer->values[metric];
        age_us = now_us - (value->at_us ? value->at_us : watch->since_us);
        if (value->status == DCGM_OK && !is_stale(dcgm, age_us))
            gpu->metrics[metric] = to_measure(metric, value, age_us);
        else
            explain(reading, dcgm, gpu, watch, metric, value->status, age_us);
    }
}

static bool is_missing(const struct gpu_reading *gpu)
{
    for (uint32_t metric = 0; !gpu->error && gpu->uuid[0] && metric < GPU_METRIC_COUNT; metric++)
        if (gpu->metrics[metric].source == GPU_SOURCE_NONE)
            return true;
    return false;
}

/* The source. */

static int dcgm_open(const char *library, int64_t period_ns, void **state, struct error *err)
{
    struct dcgm *dcgm = xcalloc(1, sizeof *dcgm);
    int rc = dcgm_calls_load(&dcgm->calls, library, err), status;

    if (rc < 0) {
        free(dcgm);
        return rc;
    }
    status = dcgm->calls.init();
    if (status != DCGM_OK) {
        rc = error_set(err, ENODEV, "DCGM does not start: %s (%d)", dcgm_calls_text(&dcgm->calls, status), status);
        free(dcgm);
        return rc;
    }
    dcgm->period_us = nodetime_to_wall_ns(period_ns) / NS_PER_US;
    if (dcgm->period_us < PERIOD_LEAST_US)
        dcgm->period_us = PERIOD_LEAST_US;
    *state = dcgm;
    return 0;
}

static void dcgm_read(void *state, struct gpu_node_reading *reading)
{
    struct dcgm *dcgm = state;

    if (ready(dcgm, reading)) {
        int status = dcgm_watches_read(&dcgm->watches, &dcgm->entities);
        if (status == DCGM_OK)
            dcgm_pause_end(&dcgm->pause);
        else
            fail(dcgm, status);
    }
    if (!dcgm->connected) {
        say(reading, "DCGM cannot be asked: %.80s (%d)%s", dcgm_calls_text(&dcgm->calls, dcgm->status), dcgm->status,
            remedy(dcgm->status));
        return;
    }
    for (uint32_t i = 0; i < reading->count; i++)
        if (is_missing(&reading->gpus[i]))
            fill(dcgm, reading, &reading->gpus[i]);
}

static void dcgm_close(void *state)
{
    struct dcgm *dcgm = state;

    if (!dcgm)
        return;
    disconnect(dcgm);
    dcgm->calls.shutdown();
    dcgm_entities_release(&dcgm->entities);
    free(dcgm);
}

const struct gpu_metric_source gpu_source_dcgm = {
    .name = "DCGM", .open = dcgm_open, .read = dcgm_read, .close = dcgm_close};
