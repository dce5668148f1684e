#include "cli/admin/verify_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/spec.h"
#include "api/submission_text.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/job.h"
#include "core/snapshot.h"
#include "store/store.h"

struct verification {
    struct core *core;
    uint64_t *submitted; /* owned; of `specs` jobs */
    size_t capacity;
    uint64_t specs, jobs, records, snapshots;
};

/* `what` names the text in the message. */
static int verify_object(const char *json, const char *what, uint64_t job, struct error *err)
{
    struct error why;
    json_t *object;
    int rc =
        json_read(json, strlen(json), JSON_REJECT_DUPLICATES, &(struct json_bounds)SPEC_JSON_BOUNDS, &object, &why);

    if (!json_is_object(object))
        rc = error_set(err, EBADMSG, "%s of job %" PRIu64 " is damaged: %s", what, job,
                       object ? "not an object" : why.text);
    json_decref(object);
    return rc;
}

/* As carmad reads it when it starts; it sets such a job aside. */
static int verify_spec(uint64_t job, const char *json, void *user, struct error *err)
{
    struct verification *verification = user;
    CLEANUP(job_spec_release) struct job_spec spec;
    CLEANUP(job_estimate_release) struct job_estimate estimate;
    struct owner owner;
    int rc = submission_from_text(json, &spec, &estimate, &owner, err);

    free(owner.user);
    if (rc && strcmp(json, SUBMISSION_WITHDRAWN) == 0)
        rc = 0;
    array_reserve(verification->submitted, verification->capacity, verification->specs + 1);
    verification->submitted[verification->specs++] = job;
    if (rc)
        error_prefix(err, "the submission of job %" PRIu64 " is damaged", job);
    return rc;
}

static int compare_jobs(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

/* They came in the order of their numbers. */
static int verify_all_submitted(const struct verification *verification, struct error *err)
{
    for (const struct job *job = core_jobs(verification->core); job; job = job->hh.next)
        if (!bsearch(&job->id, verification->submitted, verification->specs, sizeof job->id, compare_jobs))
            return error_set(err, EBADMSG, "the submission of job %" PRIu64 ", which has not ended, is missing",
                             job->id);
    return 0;
}

static int verify_job(uint64_t job, const char *json, void *user, struct error *err)
{
    ((struct verification *)user)->jobs++;
    return verify_object(json, "what is stored", job, err);
}

static int verify_record(uint64_t seq, const struct record *record, void *user, struct error *err)
{
    struct verification *verification = user;
    int rc = core_apply(verification->core, record, err);

    verification->records += !record_is_state(record->type);
    if (rc)
        error_prefix(err, "record %" PRIu64 " (%s) does not follow", seq, record_type_name(record->type));
    return rc;
}

static int verify_snapshot(uint64_t seq, const struct record_list *snapshot, void *user, struct error *err)
{
    struct verification *verification = user;
    struct core *core = core_new();
    int rc = 0;

    verification->snapshots++;
    for (size_t i = 0; i < snapshot->count && rc == 0; i++)
        rc = core_apply(core, &snapshot->items[i], err);
    if (rc == 0)
        rc = core_check(core, err);
    if (rc == 0) {
        CLEANUP(free_ptr) char *expected = core_dump(verification->core);
        CLEANUP(free_ptr) char *found = core_dump(core);

        if (strcmp(expected, found) != 0)
            rc = error_set(err, EBADMSG, "it is not the state which the records lead to");
    }
    core_free(core);
    if (rc)
        error_prefix(err, "the snapshot after record %" PRIu64 " is damaged", seq);
    return rc;
}

int verify_store(const char *directory, struct verify_counts *counts, struct error *err)
{
    struct verification verification = {.core = core_new()};
    const struct store_inspector inspector = {.on_spec = verify_spec,
                                              .on_job = verify_job,
                                              .on_record = verify_record,
                                              .on_snapshot = verify_snapshot,
                                              .user = &verification};
    int rc = store_inspect(directory, &inspector, err);

    if (rc == 0)
        rc = core_check(verification.core, err);
    if (rc == 0)
        rc = verify_all_submitted(&verification, err);
    core_free(verification.core);
    free(verification.submitted);
    *counts = (struct verify_counts){.submissions = verification.specs,
                                     .jobs = verification.jobs,
                                     .records = verification.records,
                                     .snapshots = verification.snapshots};
    return rc;
}
