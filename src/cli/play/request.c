#include "cli/play/play.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/spec.h"
#include "base/memory.h"

static void fill_recorded(struct job_spec *spec, const struct workload *workload)
{
    spec->recorded_bytes[SPEC_MEASURED] = workload->recorded_bytes[WORKLOAD_MEASURED];
    spec->recorded_bytes[SPEC_HORUS] = workload->recorded_bytes[WORKLOAD_HORUS];
    spec->recorded_bytes[SPEC_FAKETENSOR] = workload->recorded_bytes[WORKLOAD_FAKETENSOR];
    spec->recorded_bytes[SPEC_GPUMEMNET] = workload->recorded_bytes[WORKLOAD_GPUMEMNET];
}

static void fill_environment(struct job_spec *spec, double scale)
{
    CLEANUP(free_ptr) char *time_scale = xasprintf("CARMA_TIME_SCALE=%.17g", scale);

    for (char **variable = environ; *variable; variable++) {
        if (strchr(*variable, '=') && strncmp(*variable, "CARMA_TIME_SCALE=", 17) != 0)
            spec_strings_add(&spec->environment, *variable);
    }
    if (scale != 1)
        spec_strings_add(&spec->environment, time_scale);
}

/* Every row has a seed of its own, so that no two jobs of a play vary together. */
#define SEEDS_PER_PLAY 1000003

static void fill_command(struct job_spec *spec, const struct play *play, size_t row)
{
    const struct trace_job *job = play->items[row].job;
    CLEANUP(free_ptr) char *gpus = xasprintf("%" PRIu32, job->gpus);
    CLEANUP(free_ptr) char *seconds = xasprintf("%.12g", (double)job->duration_ns / 1e9);
    CLEANUP(free_ptr) char *jitter = xasprintf("%.17g", play->jitter);
    CLEANUP(free_ptr) char *seed = xasprintf("%" PRId64, play->seed * SEEDS_PER_PLAY + (int64_t)row);

    spec_strings_add(&spec->command, play->train);
    spec_strings_add(&spec->command, "--workload");
    spec_strings_add(&spec->command, job->workload->id);
    spec_strings_add(&spec->command, "--progress");
    if (play->workloads) {
        spec_strings_add(&spec->command, "--workloads");
        spec_strings_add(&spec->command, play->workloads);
    }
    if (job->gpus != job->workload->gpus) {
        spec_strings_add(&spec->command, "--gpus");
        spec_strings_add(&spec->command, gpus);
    }
    if (job->duration_ns >= 0) {
        spec_strings_add(&spec->command, "--seconds");
        spec_strings_add(&spec->command, seconds);
    }
    if (play->jitter > 0) {
        spec_strings_add(&spec->command, "--jitter");
        spec_strings_add(&spec->command, jitter);
        spec_strings_add(&spec->command, "--seed");
        spec_strings_add(&spec->command, seed);
    }
}

static json_t *item_request(const struct play *play, size_t row)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    const struct play_item *item = &play->items[row];
    const struct workload *workload = item->job->workload;

    job_spec_init(&spec);
    spec.name = xstrdup(workload->id);
    fill_command(&spec, play, row);
    fill_environment(&spec, play->scale);
    spec.directory = xstrdup(play->directory);
    spec.output = xstrdup(item->output);
    spec.gpus = item->job->gpus;
    if (play->estimates)
        spec.gpu_memory_bytes = workload->recorded_bytes[WORKLOAD_GPUMEMNET];
    if (*workload->dataset)
        spec.dataset = xstrdup(workload->dataset);
    spec.batch_size = workload->batch_size;
    if (play->summaries[workload - play->first_workload]) {
        spec.summary = xstrdup(play->summaries[workload - play->first_workload]);
        spec.summary_name = xstrdup(workload->summary);
    }
    fill_recorded(&spec, workload);
    return job_spec_to_json(&spec);
}

json_t *play_request(const struct play *play, size_t from, size_t to)
{
    json_t *specs = json_array();

    for (size_t i = from; i < to; i++)
        json_array_append_new(specs, item_request(play, i));
    return json_pack("{s:o}", "jobs", specs);
}
