#include "cli/play/usage.h"

#include <string.h>

#include "cli/show/answer.h"

void usage_init(struct usage *usage)
{
    *usage = (struct usage){.complete = true};
}

void usage_release(struct usage *usage)
{
    json_decref(usage->first);
    json_decref(usage->latest);
    usage_init(usage);
}

/* The same GPU in another answer. */
static const json_t *same_gpu(const json_t *answer, const json_t *gpu)
{
    const char *uuid = answer_text(gpu, "uuid");
    json_t *other;
    size_t i;

    json_array_foreach (json_object_get(answer, "gpus"), i, other) {
        const char *text = answer_text(other, "uuid");
        if (uuid && text && strcmp(uuid, text) == 0)
            return other;
    }
    return NULL;
}

/* In MIG mode, instances have the memory and the activity, and the GPU that they are part of has the power. */
static bool is_kind(const json_t *gpu, const char *kind)
{
    const char *text = answer_text(gpu, "kind");

    return text && strcmp(text, kind) == 0;
}

static void add_interval(struct usage *usage, const json_t *before, const json_t *gpu)
{
    double seconds = (answer_number(gpu, "observed_ns", 0) - answer_number(before, "observed_ns", 0)) / 1e9;
    double memory = answer_number(gpu, "memory_byte_seconds", -1) - answer_number(before, "memory_byte_seconds", -1);
    double activity = answer_number(gpu, "sm_activity_seconds", -1) - answer_number(before, "sm_activity_seconds", -1);

    if (seconds <= 0 || memory < 0 || activity < 0)
        return;
    usage->gpu_seconds += seconds;
    usage->memory_byte_seconds += memory;
    usage->sm_activity_seconds += activity;
}

void usage_add(struct usage *usage, json_t *gpus)
{
    json_t *gpu;
    size_t i;

    json_array_foreach (json_object_get(gpus, "gpus"), i, gpu) {
        const json_t *before = same_gpu(usage->latest, gpu);
        if (is_kind(gpu, "partitioned"))
            continue;
        if (!json_is_number(json_object_get(gpu, "memory_byte_seconds")) ||
            !json_is_number(json_object_get(gpu, "sm_activity_seconds")))
            usage->complete = false;
        else if (before)
            add_interval(usage, before, gpu);
    }
    if (!usage->first)
        usage->first = json_incref(gpus);
    json_decref(usage->latest);
    usage->latest = json_incref(gpus);
}

double usage_energy_joules(const struct usage *usage)
{
    double millijoules = 0;
    json_t *gpu;
    size_t i;

    if (!json_array_size(json_object_get(usage->first, "gpus")))
        return -1;
    json_array_foreach (json_object_get(usage->first, "gpus"), i, gpu) {
        const json_t *after = same_gpu(usage->latest, gpu);
        if (is_kind(gpu, "instance"))
            continue;
        double from = answer_number(gpu, "energy_mj", -1), to = answer_number(after, "energy_mj", -1);
        if (from < 0 || to < from)
            return -1;
        millijoules += to - from;
    }
    return millijoules / 1000;
}

double usage_memory_mean_bytes(const struct usage *usage)
{
    return usage->complete && usage->gpu_seconds > 0 ? usage->memory_byte_seconds / usage->gpu_seconds : -1;
}

double usage_sm_activity_mean(const struct usage *usage)
{
    return usage->complete && usage->gpu_seconds > 0 ? usage->sm_activity_seconds / usage->gpu_seconds : -1;
}
