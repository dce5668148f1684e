#include "daemon/capture/result.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/spec.h"
#include "api/submission_text.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "core/learn/learn.h"
#include "daemon/account/past_runs.h"
#include "daemon/engine/engine.h"
#include "daemon/fit.h"
#include "daemon/log.h"

#define REASON_NO_AUTO "no automatic capture"

void result_show_estimating(struct daemon *daemon, uint64_t job, bool estimating)
{
    struct job_view *view = views_find(&daemon->views, job);

    if (!view || view->estimating == estimating)
        return;
    view->estimating = estimating;
    views_touch(&daemon->views, view);
}

/* Shown, and stored with the current turn. Takes over the estimate. */
static void keep_estimate(struct daemon *daemon, struct job_view *view, struct job_estimate *estimate)
{
    const struct job_spec spec = job_view_spec(view);
    struct owner owner = {.user = (char *)job_view_user(view), .gid = view->gid};
    char *text = submission_to_text(&spec, estimate, &owner);

    job_view_set_stored(view, strlen(text));
    engine_store_spec(daemon->engine, view->id, text);
    job_view_set_estimate(view, estimate);
}

void result_say_why_not(struct daemon *daemon, struct job_view *view, struct error *err)
{
    const struct spec_strings *before = &view->common->estimate.warnings;
    struct job_estimate estimate;

    error_make_printable(err);
    error_prefix(err, REASON_NO_AUTO);
    daemon_log("job %" PRIu64 ": %s", view->id, err->text);
    job_estimate_init(&estimate);
    for (size_t i = 0; i < before->count; i++)
        spec_strings_add(&estimate.warnings, before->items[i]);
    spec_strings_add(&estimate.warnings, err->text);
    keep_estimate(daemon, view, &estimate);
    engine_turn(daemon->engine);
}

static int feed(struct daemon *daemon, const struct job *job, const struct job_estimate *estimate, struct error *err)
{
    struct record_submitted wants = job_submitted(job);
    struct reason why;
    char text[REASON_TEXT];

    wants.request_bytes = estimate->bytes;
    wants.request_source = SOURCE_ESTIMATED;
    fit_request(daemon->core, &wants);
    if (!core_could_ever_run(daemon->core, &wants, &why))
        return error_set(err, ERANGE, "the job can never run here: %s", reason_format(&why, nodetime_now_ns(), text));
    return engine_input(daemon->engine,
                        &(struct record){.type = RECORD_ESTIMATED,
                                         .at_ns = nodetime_now_ns(),
                                         .job = job->id,
                                         .estimated = {wants.request_bytes, estimate->smact_permille}},
                        err);
}

bool result_use(struct daemon *daemon, struct job_view *view, const struct job *job, struct job_estimate *estimate)
{
    CLEANUP(free_ptr) char *text = job_estimate_text(estimate);
    struct error err;
    int rc = 0;

    if (estimate->bytes < 0)
        rc = error_set(&err, ENODATA, "%s",
                       estimate->warnings.count ? estimate->warnings.items[0] : "nothing can be estimated from it");
    past_runs_correct(daemon->past_runs, view->wants->uid, estimate);
    if (rc == 0)
        rc = feed(daemon, job, estimate, &err);
    if (rc != 0) {
        result_say_why_not(daemon, view, &err);
        return false;
    }
    daemon_log("job %" PRIu64 ": %s", view->id, text);
    keep_estimate(daemon, view, estimate);
    engine_turn(daemon->engine);
    return true;
}

bool result_was_none(const struct job_view *view)
{
    const struct spec_strings *warnings = &view->common->estimate.warnings;

    for (size_t i = 0; i < warnings->count; i++)
        if (strncmp(warnings->items[i], REASON_NO_AUTO, strlen(REASON_NO_AUTO)) == 0)
            return true;
    return false;
}
