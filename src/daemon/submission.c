#include "daemon/submission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/engine.h"

/* The claim: what was declared, else the recorded figure that the configuration trusts, else unknown. */
static void set_claim(const struct config *config, const struct job_spec *spec, struct record_submitted *wants)
{
    static const int columns[] = {[ESTIMATOR_DECLARED] = -1,
                                  [ESTIMATOR_MEASURED] = SPEC_MEASURED,
                                  [ESTIMATOR_HORUS] = SPEC_HORUS,
                                  [ESTIMATOR_FAKETENSOR] = SPEC_FAKETENSOR,
                                  [ESTIMATOR_GPUMEMNET] = SPEC_GPUMEMNET};
    int column = columns[config->estimator];

    wants->claim_bytes = -1;
    wants->claim_source = CLAIM_UNKNOWN;
    if (spec->gpu_memory_bytes >= 0) {
        wants->claim_bytes = spec->gpu_memory_bytes;
        wants->claim_source = CLAIM_DECLARED;
    } else if (column >= 0 && spec->recorded_bytes[column] >= 0) {
        wants->claim_bytes = spec->recorded_bytes[column];
        wants->claim_source = CLAIM_RECORDED;
    }
}

/* Two submissions with the same key are runs of the same thing: same user, command and batch size. */
static void set_workload(const struct job_spec *spec, uid_t uid, char workload[static RECORD_WORKLOAD_SIZE])
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ uid ^ ((uint64_t)spec->batch_size << 32); /* FNV-1a */

    for (size_t i = 0; i < spec->command.count; i++)
        for (const char *c = spec->command.items[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
            if (!*c)
                break;
        }
    snprintf(workload, RECORD_WORKLOAD_SIZE, "%016" PRIx64, hash);
}

static void set_wants(const struct daemon *daemon, const struct job_spec *spec, uid_t uid,
                      struct record_submitted *wants)
{
    *wants = (struct record_submitted){.uid = uid,
                                       .gpus = spec->gpus,
                                       .smact_permille = -1,
                                       .max_slowdown_permille =
                                           spec->max_slowdown_permille < 0 ? 0 : (int32_t)spec->max_slowdown_permille,
                                       .exclusive = spec->exclusive,
                                       .held = spec->held};
    set_claim(&daemon->config, spec, wants);
    set_workload(spec, uid, wants->workload);
}

/* The recorded figure 40000 MiB means "fills the GPU": more than the largest GPU has is then the whole of it. */
static void fit_recorded_claim(const struct daemon *daemon, struct record_submitted *wants)
{
    struct reason why;

    if (wants->claim_source == CLAIM_RECORDED && !core_could_ever_run(daemon->core, wants, &why) &&
        why.code == REASON_NEVER_FITS && why.best_bytes > 0)
        wants->claim_bytes = why.best_bytes;
}

static int parse_spec(struct daemon *daemon, uid_t uid, size_t index, const json_t *json, struct job_spec *spec,
                      struct record_submitted *wants, struct error *err)
{
    struct reason why;
    char text[REASON_TEXT];

    if (job_spec_from_json(json, spec, err) != 0) {
        error_prefix(err, "job %zu of the request", index + 1);
        return 400;
    }
    set_wants(daemon, spec, uid, wants);
    fit_recorded_claim(daemon, wants);
    if (!core_could_ever_run(daemon->core, wants, &why)) {
        error_set(err, EINVAL, "job '%s' can never run here: it %s", spec->name,
                  reason_format(&why, nodetime_now_ns(), text));
        return 422;
    }
    return 201;
}

static json_t *take_in(struct daemon *daemon, struct job_spec *specs, const struct record_submitted *wants, size_t count)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < count; i++) {
        struct record input = {.type = RECORD_SUBMITTED, .at_ns = nodetime_now_ns(), .job = daemon->views.last_id + 1};
        json_t *json = job_spec_to_json(&specs[i]);
        CLEANUP(free_ptr) char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        input.submitted = wants[i];
        views_add(&daemon->views, input.job, &specs[i]);
        engine_store_spec(daemon->engine, input.job, text);
        engine_input(daemon->engine, &input, NULL);
        json_array_append_new(ids, json_pack("{s:I}", "id", (json_int_t)input.job));
    }
    return ids;
}

int submission_accept(struct daemon *daemon, uid_t uid, const char *body, size_t length, json_t **ids,
                      struct error *err)
{
    CLEANUP(free_ptr) struct record_submitted *wants = NULL;
    struct job_spec *specs = NULL;
    json_error_t at;
    json_t *request = json_loadb(body, length, JSON_REJECT_DUPLICATES, &at), *jobs = NULL;
    size_t count, parsed = 0;
    int status = 201;

    if (!request) {
        error_set(err, EINVAL, "the request is not JSON: %s (line %d)", at.text, at.line);
        return 400;
    }
    if (json_unpack_ex(request, &at, JSON_STRICT, "{s:o}", "jobs", &jobs) != 0 || !json_is_array(jobs) ||
        json_array_size(jobs) == 0) {
        error_set(err, EINVAL, "the request is not {\"jobs\": [at least one]}");
        json_decref(request);
        return 400;
    }
    count = json_array_size(jobs);
    if (count > SUBMISSION_MAX_JOBS) {
        error_set(err, EINVAL, "%zu jobs at once are too many: submit at most %d", count, SUBMISSION_MAX_JOBS);
        json_decref(request);
        return 413;
    }
    specs = xcalloc(count, sizeof *specs);
    wants = xcalloc(count, sizeof *wants);
    for (; parsed < count && status == 201; parsed++)
        status = parse_spec(daemon, uid, parsed, json_array_get(jobs, parsed), &specs[parsed], &wants[parsed], err);
    if (status == 201)
        *ids = take_in(daemon, specs, wants, count);
    for (size_t i = 0; i < parsed; i++)
        job_spec_release(&specs[i]);
    free(specs);
    json_decref(request);
    return status;
}
