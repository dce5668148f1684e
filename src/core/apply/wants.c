/* How this file works: a waiting job that wants something else belongs to another autocluster, and may have another
 * turn: it leaves its autocluster and joins anew. No GPU is kept for it meanwhile. */
#include "core/apply/wants.h"

#include <errno.h>
#include <inttypes.h>

#include "core/apply/reserved.h"
#include "core/common_wants.h"
#include "core/jobs.h"
#include "core/learn/learn.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/depend.h"
#include "core/waiting/order.h"

/* The job wants something else: it leaves its autocluster, and no GPU is kept for it. */
static void change_wants(struct core *core, struct job *job, const struct record_submitted *wants, int64_t at_ns)
{
    const struct record_submitted *before = job->wants;

    end_reservation(core, job, at_ns);
    if (job->autocluster)
        autocluster_leave(core, job);
    order_forget_times(core, job);
    job->wants = common_wants_join(&core->wants, wants);
    common_wants_leave(&core->wants, before);
}

/* An estimate for a job of unknown need. */
int apply_estimated(struct core *core, struct job *job, const struct record_estimated *estimated, int64_t at_ns,
                    struct error *err)
{
    struct record_submitted wants = *job->wants;
    bool waits = job->autocluster;

    if (estimated->request_bytes <= 0 || !is_reading(estimated->smact_permille) || wants.request_bytes >= 0 ||
        wants.gpus == 0)
        return error_set(err, EINVAL, "job %" PRIu64 " cannot be estimated at %" PRId64 " bytes", job->id,
                         estimated->request_bytes);
    wants.request_bytes = estimated->request_bytes;
    wants.request_source = SOURCE_ESTIMATED;
    if (estimated->smact_permille >= 0)
        wants.smact_permille = estimated->smact_permille;
    change_wants(core, job, &wants, at_ns);
    if (!job_state_has_gpus(job->state) && job_need_is_unknown(job)) {
        job->reserved_bytes = wants.request_bytes;
        job->reservation_source = SOURCE_ESTIMATED;
    }
    if (waits)
        autocluster_join(core, job);
    core->corrections_due = true; /* of one that runs, at the next decision */
    core->activity_version++;
    learn_estimate(core, job, wants.request_bytes);
    return 0;
}

int apply_depends(struct core *core, struct job *job, const struct record_depends *depends, int64_t at_ns,
                  struct error *err)
{
    int status;

    order_forget_times(core, job);
    status = depend_add(core, job, depends, err);
    if (status)
        return status;
    end_reservation(core, job, at_ns);
    order_moves(core, job);
    return 0;
}

/* It comes back to the waiting jobs in another turn. */
int apply_edited(struct core *core, struct job *job, const struct record_edited *edited, int64_t at_ns,
                 struct error *err)
{
    int status = core_check_edit(job, edited, err);

    if (status)
        return status;
    change_wants(core, job, &edited->wants, at_ns);
    if (!job->placed_ns) {
        job->reserved_bytes = job->wants->request_bytes;
        job->reservation_source = job->wants->request_source;
    }
    if (edited->begin_ns >= 0)
        job->begin_ns = edited->begin_ns;
    order_moves(core, job);
    return 0;
}
