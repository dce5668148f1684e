/* The readings that are possible here, as the daemon gets them, by carma-monitor in a child. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "gpu/frame.h"

#define READINGS_MS   10000 /* wall time */
#define READINGS_MOST 16    /* looks, a quarter of a second of node time apart, until every metric has come */

struct looks {
    struct gpu_frame_decoder decoder;
    size_t taken; /* bytes of the output */
    size_t count;
    struct gpu_node_reading *last;
};

static bool measured(const struct gpu_reading *gpu)
{
    if (gpu->kind == GPU_PARTITIONED || !*gpu->uuid)
        return true;
    for (size_t i = 0; i < GPU_METRIC_COUNT; i++)
        if (gpu->metrics[i].source != GPU_SOURCE_GPM && gpu->metrics[i].source != GPU_SOURCE_DCGM)
            return false;
    return true;
}

/* A measure over an interval is not there at the first look, and DCGM may take some time to begin. */
static bool enough(void *user, const struct strbuf *out)
{
    struct looks *looks = user;
    const void *bytes = out->length ? out->text + looks->taken : "";
    size_t count = out->length - looks->taken;
    bool all = true;

    while (gpu_frame_decode(&looks->decoder, &bytes, &count, looks->last, NULL) == 1)
        looks->count++;
    looks->taken = out->length;
    for (uint32_t i = 0; i < looks->last->count; i++)
        all = all && measured(&looks->last->gpus[i]);
    return looks->count >= READINGS_MOST || (looks->count > 1 && all);
}

static void check_stand_in(struct doctor *doctor, const struct gpu_node_reading *reading, size_t count, size_t all)
{
    doctor_find(doctor, "metrics", DOCTOR_WARN,
                "run carmad as root, or have the driver let all users profile; GPUs before Hopper need DCGM. Without "
                "SM activity policies take a GPU for busy as soon as any kernel runs",
                "sm_activity is NVML's utilisation, an upper bound, on %zu of %zu%s%s", count, all,
                *reading->limits ? ": " : "", reading->limits);
}

/* Each source's values, metric by metric. */
static void check_metrics(struct doctor *doctor, const struct gpu_node_reading *reading)
{
    struct strbuf of[GPU_SOURCE_COUNT] = {0};
    size_t stand_ins = 0, all = 0;

    for (uint32_t i = 0; i < reading->count; i++) /* GPUs that can take jobs */
        all += reading->gpus[i].kind != GPU_PARTITIONED && *reading->gpus[i].uuid;

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        size_t sources[GPU_SOURCE_COUNT] = {0};
        for (uint32_t i = 0; i < reading->count; i++)
            if (reading->gpus[i].kind != GPU_PARTITIONED && *reading->gpus[i].uuid)
                sources[reading->gpus[i].metrics[metric].source]++;
        for (uint32_t source = 0; source < GPU_SOURCE_COUNT; source++)
            if (sources[source])
                strbuf_printf(&of[source], "%s%s", of[source].length ? ", " : "", gpu_metric_name(metric));
        stand_ins += sources[GPU_SOURCE_UTILIZATION];
    }
    for (uint32_t source = GPU_SOURCE_GPM; source <= GPU_SOURCE_DCGM; source++)
        if (of[source].length)
            doctor_find(doctor, "metrics", DOCTOR_OK, NULL, "by %s: %s", gpu_source_name(source), of[source].text);
    if (stand_ins)
        check_stand_in(doctor, reading, stand_ins, all);
    if (of[GPU_SOURCE_NONE].length)
        doctor_find(doctor, "metrics", DOCTOR_WARN, "carma goes on without them: docs/metrics.md",
                    "not to be had on all: %s%s%s", of[GPU_SOURCE_NONE].text,
                    *reading->limits && !stand_ins ? ": " : "", stand_ins ? "" : reading->limits);
    for (uint32_t source = 0; source < GPU_SOURCE_COUNT; source++)
        strbuf_release(&of[source]);
}

/* GPUs that take no job, and figures that are missing. */
static void check_told(struct doctor *doctor, const struct gpu_node_reading *reading)
{
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        bool usable = gpu->kind == GPU_PARTITIONED || gpu_reading_usable(gpu);
        if (gpu->error)
            doctor_find(doctor, "readings", DOCTOR_FAIL, "see that nvidia-smi works on it: carma places nothing there",
                        "GPU %u: %s (NVML's error %d)", gpu->index, gpu_error_text(gpu->error), gpu->error);
        for (uint32_t what = 0; what < GPU_REFUSED_COUNT && !gpu->error; what++)
            if (gpu->refused[what])
                doctor_find(doctor, "readings", usable ? DOCTOR_WARN : DOCTOR_FAIL,
                            usable ? "carma goes on without it" : "see nvidia-smi -q: carma places nothing there",
                            "GPU %u does not tell %s: %s (NVML's error %d)", gpu->index, gpu_refused_name(what),
                            gpu_error_text(gpu->refused[what]), gpu->refused[what]);
    }
}

static void check_mig(struct doctor *doctor, const struct gpu_node_reading *reading)
{
    size_t instances = 0, partitioned = 0;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        size_t own = 0;
        if (gpu->kind != GPU_PARTITIONED)
            continue;
        for (uint32_t k = 0; k < reading->count; k++)
            own += reading->gpus[k].kind == GPU_INSTANCE && strcmp(reading->gpus[k].parent, gpu->uuid) == 0;
        partitioned++;
        instances += own;
        if (!own)
            doctor_find(doctor, "MIG", DOCTOR_WARN,
                        "make instances (nvidia-smi mig -cgi ... -C), or turn the mode off (nvidia-smi -mig 0)",
                        "GPU %u is in MIG mode and has no instance: no job can run on it", gpu->index);
    }
    if (partitioned)
        doctor_find(doctor, "MIG", DOCTOR_OK, NULL, "%zu of the GPUs in MIG mode, %zu instances", partitioned,
                    instances);
}

void doctor_check_readings(struct doctor *doctor, const char *program)
{
    const char *argv[12] = {program, "--period-ms", "250"};
    struct looks looks = {.last = xcalloc(1, sizeof *looks.last)};
    struct cli_child answer;
    struct error err;
    size_t at = 3;

    if (doctor->config.nvml_library) {
        argv[at++] = "--library";
        argv[at++] = doctor->config.nvml_library;
    }
    if (doctor->config.dcgm_library) {
        argv[at++] = "--dcgm";
        argv[at++] = doctor->config.dcgm_library;
    }
    if (cli_child_run(argv, -1, READINGS_MS, enough, &looks, &answer, &err))
        doctor_find(doctor, "metrics", DOCTOR_FAIL, NULL, "%s", err.text);
    else if (!looks.count)
        doctor_find(doctor, "metrics", DOCTOR_FAIL, "look at dmesg for Xids", "%s",
                    answer.hung            ? "the driver hangs as the GPUs are read"
                    : answer.errors.length ? answer.errors.text
                                           : "no reading came");
    else {
        check_metrics(doctor, looks.last);
        check_told(doctor, looks.last);
        check_mig(doctor, looks.last);
    }
    cli_child_release(&answer);
    gpu_frame_decoder_release(&looks.decoder);
    free(looks.last);
}
