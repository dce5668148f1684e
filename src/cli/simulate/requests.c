/* The requests of a simulation's jobs: their exact need, a figure recorded with their workload, or an estimator's
 * answer. The estimator reads the workload's model summary by the same function as in carmad. */
#include <errno.h>
#include <string.h>

#include "api/spec.h"
#include "api/spec_estimate.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "cli/simulate/simulate.h"

static const char *const columns[WORKLOAD_RECORDED_COUNT] = {"measured", "horus", "faketensor", "gpumemnet"};
static const char *const sources[WORKLOAD_RECORDED_COUNT] = {"recorded:measured", "recorded:horus",
                                                             "recorded:faketensor", "recorded:gpumemnet"};

const struct simulate_estimator simulate_estimator_none = {.column = -1};

static int find_column(const char *name)
{
    for (size_t i = 0; i < array_size(columns); i++)
        if (strcmp(columns[i], name) == 0)
            return (int)i;
    return -1;
}

int simulate_estimator_parse(const char *text, struct simulate_estimator *estimator, struct error *err)
{
    *estimator = simulate_estimator_none;
    if (strncmp(text, "recorded:", 9) == 0) {
        estimator->column = find_column(text + 9);
        return estimator->column >= 0
                   ? 0
                   : nearest_refuse(err, "column", text + 9, "measured, horus, faketensor or gpumemnet");
    }
    if (strcmp(text, "declared") == 0 || strcmp(text, "history") == 0)
        return 0;
    estimator->oracle = strcmp(text, "oracle") == 0;
    estimator->estimator = estimator->oracle ? NULL : estimator_find(text);
    if (!estimator->oracle && !estimator->estimator)
        return nearest_refuse(err, "estimator", text,
                              "oracle, declared, history, recorded:COLUMN, auto, replay, gpumemnet, horus "
                              "or faketensor");
    return 0;
}

struct simulate_estimator simulate_estimator_of(enum estimator_choice choice)
{
    return (struct simulate_estimator){.column = find_column(estimator_name(choice)),
                                       .estimator =
                                           estimator_computes(choice) ? estimator_find(estimator_name(choice)) : NULL};
}

/* ---- One workload's estimate ---- */

struct requesting {
    const struct simulate_estimator *estimator;
    const struct machine_profile *profile;
    int32_t quantile_permille;
    struct job_estimate *estimates; /* of each workload, once it was asked for */
    bool *asked;
};

static int estimate_workload(const struct requesting *requesting, const struct workload *workload, const char *path,
                             struct job_estimate *to, struct error *err)
{
    CLEANUP(job_spec_release) struct job_spec spec;
    CLEANUP(free_ptr) char *summary = workload_summary_path(workload, path);
    int64_t events_left = PROGRAM_MAX_EVENTS;
    size_t length;
    int rc;

    job_spec_init(&spec);
    job_estimate_init(to);
    if (!summary)
        return 0;
    rc = file_read(summary, SPEC_MAX_SUMMARY, &spec.summary, &length, err);
    if (rc)
        return rc;
    spec.summary_name = xstrdup(summary);
    spec.batch_size = workload->batch_size;
    return job_estimate_make(to, &spec, requesting->estimator->estimator, requesting->profile,
                             requesting->quantile_permille, &events_left, err);
}

/* ---- A job's request ---- */

static int64_t needed_bytes(const struct sim_job *job)
{
    int64_t most = 0;

    for (uint32_t k = 0; k < job->use_count; k++)
        if (job->uses[k].need_bytes > most)
            most = job->uses[k].need_bytes;
    return most;
}

/* As carmad does: an estimate that is more than the GPU has is the whole of it. */
static void take_estimate(struct sim_job *job, const struct job_estimate *estimate,
                          const struct machine_profile *profile)
{
    job->expected_permille = estimate->smact_permille;
    if (estimate->bytes < 0)
        return;
    job->request_bytes = estimate->bytes < profile->memory_bytes ? estimate->bytes : profile->memory_bytes;
    job->request_source = SOURCE_ESTIMATED;
}

static int request(struct simulate_jobs *jobs, size_t row, struct requesting *requesting, const char **source,
                   struct error *err)
{
    const struct simulate_estimator *estimator = requesting->estimator;
    const struct simulate_origin *origin = &jobs->origins[row];
    struct sim_job *job = &jobs->items[row];
    size_t number = origin->workload ? (size_t)(origin->workload - jobs->workloads.items) : 0;

    *source = origin->workload ? NULL : memory_source_name(origin->request_source);
    job->request_bytes = origin->request_bytes;
    job->request_source = origin->request_source;
    job->expected_permille = origin->expected_permille;
    if (estimator->oracle) {
        job->request_bytes = needed_bytes(job);
        job->request_source = SOURCE_DECLARED;
        return 0;
    }
    if (!origin->workload)
        return 0;
    if (estimator->estimator) {
        if (!requesting->asked[number]) {
            int rc = estimate_workload(requesting, origin->workload, jobs->workloads_path,
                                       &requesting->estimates[number], err);
            if (rc)
                return rc;
            requesting->asked[number] = true;
        }
        take_estimate(job, &requesting->estimates[number], requesting->profile);
        *source = requesting->estimates[number].source;
    }
    if (estimator->column >= 0 && origin->workload->recorded_bytes[estimator->column] >= 0) {
        job->request_bytes = origin->workload->recorded_bytes[estimator->column];
        job->request_source = SOURCE_RECORDED;
        *source = sources[estimator->column];
    }
    return 0;
}

/* ---- All of them ---- */

static void count_source(struct simulate_requests *requests, const char *name)
{
    size_t i = 0;

    while (i < requests->source_count && strcmp(requests->sources[i].name, name) != 0)
        i++;
    if (i == SIMULATE_SOURCES_MAX)
        return;
    if (i == requests->source_count)
        requests->sources[requests->source_count++].name = name;
    requests->sources[i].jobs++;
}

static void compare(struct simulate_requests *requests, const struct sim_job *job, const char *source)
{
    double ratio = (double)job->request_bytes / (double)needed_bytes(job);

    requests->requested++;
    count_source(requests, source);
    if (ratio >= 1) {
        requests->over++;
        requests->over_sum += ratio - 1;
    } else {
        requests->under++;
        requests->under_sum += 1 - ratio;
    }
}

/* The name that outlives the estimates. */
static const char *lasting_name(const char *source)
{
    const struct estimator *estimator = estimator_find(source);

    return estimator ? estimator->name : source;
}

int simulate_jobs_request(struct simulate_jobs *jobs, const struct simulate_estimator *estimator,
                          const struct machine_profile *profile, int32_t quantile_permille,
                          struct simulate_requests *requests, struct error *err)
{
    struct requesting requesting = {.estimator = estimator, .profile = profile, .quantile_permille = quantile_permille};
    size_t count = jobs->workloads.count;
    int rc = 0;

    requesting.estimates = xcalloc(count ? count : 1, sizeof *requesting.estimates);
    requesting.asked = xcalloc(count ? count : 1, sizeof *requesting.asked);
    *requests = (struct simulate_requests){.jobs = jobs->count};
    for (size_t i = 0; rc == 0 && i < jobs->count; i++) {
        const char *source;
        rc = request(jobs, i, &requesting, &source, err);
        if (rc == 0 && source && jobs->items[i].request_bytes >= 0 && needed_bytes(&jobs->items[i]) > 0)
            compare(requests, &jobs->items[i], lasting_name(source));
    }
    for (size_t i = 0; i < count; i++)
        if (requesting.asked[i])
            job_estimate_release(&requesting.estimates[i]);
    free(requesting.estimates);
    free(requesting.asked);
    return rc;
}

/* ---- Told ---- */

static double mean(double sum, size_t count)
{
    return count ? sum / (double)count : 0;
}

json_t *simulate_requests_to_json(const struct simulate_requests *requests)
{
    json_t *by;

    if (requests->requested == 0)
        return json_null();
    by = json_object();
    for (size_t i = 0; i < requests->source_count; i++)
        json_object_set_new(by, requests->sources[i].name, json_integer((json_int_t)requests->sources[i].jobs));
    return json_pack("{s:I, s:o, s:I, s:f, s:I, s:f}", "jobs", (json_int_t)requests->requested, "by", by, "over",
                     (json_int_t)requests->over, "over_mean", mean(requests->over_sum, requests->over), "under",
                     (json_int_t)requests->under, "under_mean", mean(requests->under_sum, requests->under));
}

void simulate_requests_format(const struct simulate_requests *requests, struct strbuf *out)
{
    if (requests->requested == 0)
        return;
    strbuf_printf(out, "%zu of %zu jobs request memory by ", requests->requested, requests->jobs);
    for (size_t i = 0; i < requests->source_count; i++) {
        strbuf_printf(out, "%s%s", i ? ", " : "", requests->sources[i].name);
        if (requests->source_count > 1)
            strbuf_printf(out, " (%zu)", requests->sources[i].jobs);
    }
    if (requests->over)
        strbuf_printf(out, "; %zu enough, %.1f%% too much on average", requests->over,
                      100 * mean(requests->over_sum, requests->over));
    if (requests->under)
        strbuf_printf(out, "; %zu not enough, %.1f%% too little", requests->under,
                      100 * mean(requests->under_sum, requests->under));
    strbuf_puts(out, "\n");
}
