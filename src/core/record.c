/* How this file works: record_fields[] has a row for each member of each type of record, and whoever reads, writes,
 * compares or invents records goes by it (api/record_json.c, tests/property). Most rows come from tables: wants.def,
 * job_state.def, gpus/closed.def, resources.def. A record has all of its members: to add one is a step of the store
 * (store/present.c). To add a record: records.def, and its members here. */
#include "core/record.h"

#include <string.h>

#include "base/memory.h"
#include "base/share.h"

#define MEMBER(type, name, kind, member)                                                                               \
    {                                                                                                                  \
        type, name, kind, offsetof(struct record, member), 0                                                           \
    }
#define TEXT(type, name, member)                                                                                       \
    {                                                                                                                  \
        type, name, FIELD_TEXT, offsetof(struct record, member), sizeof(((struct record *)0)->member)                  \
    }

#define ALLOTTED(type)                                                                                                 \
    MEMBER(type, "number", FIELD_U32, allotted.number), MEMBER(type, "uid", FIELD_U32, allotted.uid),                  \
        MEMBER(type, "from_ns", FIELD_I64, allotted.from_ns), MEMBER(type, "until_ns", FIELD_I64, allotted.until_ns),  \
        MEMBER(type, "gpu_count", FIELD_U32, allotted.gpu_count),                                                      \
        {type, "gpus", FIELD_U32_ARRAY, offsetof(struct record, allotted.gpus), RECORD_MAX_GPUS},                      \
        MEMBER(type, "user_count", FIELD_U32, allotted.user_count),                                                    \
        {type, "users", FIELD_U32_ARRAY, offsetof(struct record, allotted.users), ALLOTMENT_USERS},                    \
        TEXT(type, "why", allotted.why)

const struct record_field record_fields[] = {
    TEXT(RECORD_RECONFIGURED, "policy", config.policy),
    MEMBER(RECORD_RECONFIGURED, "memory_view", FIELD_U32, config.memory_view),
    MEMBER(RECORD_RECONFIGURED, "floor_bytes", FIELD_I64, config.floor_bytes),
    MEMBER(RECORD_RECONFIGURED, "margin_bytes", FIELD_I64, config.margin_bytes),
    MEMBER(RECORD_RECONFIGURED, "smact_cap_permille", FIELD_I32, config.smact_cap_permille),
    MEMBER(RECORD_RECONFIGURED, "smocc_cap_permille", FIELD_I32, config.smocc_cap_permille),
    MEMBER(RECORD_RECONFIGURED, "dram_cap_permille", FIELD_I32, config.dram_cap_permille),
    MEMBER(RECORD_RECONFIGURED, "caps_together", FIELD_BOOL, config.caps_together),
    MEMBER(RECORD_RECONFIGURED, "statistic", FIELD_U32, config.statistic),
    MEMBER(RECORD_RECONFIGURED, "window_ns", FIELD_I64, config.window_ns),
    MEMBER(RECORD_RECONFIGURED, "decide_period_ns", FIELD_I64, config.decide_period_ns),
    MEMBER(RECORD_RECONFIGURED, "collocate_extra_ns", FIELD_I64, config.collocate_extra_ns),
    MEMBER(RECORD_RECONFIGURED, "paced", FIELD_BOOL, config.paced),
    MEMBER(RECORD_RECONFIGURED, "settle_ns", FIELD_I64, config.settle_ns),
    MEMBER(RECORD_RECONFIGURED, "oom_retry", FIELD_U32, config.oom_retry),
    MEMBER(RECORD_RECONFIGURED, "max_retries", FIELD_U32, config.max_retries),
    MEMBER(RECORD_RECONFIGURED, "max_requeues", FIELD_U32, config.max_requeues),
    MEMBER(RECORD_RECONFIGURED, "requeue_lost", FIELD_BOOL, config.requeue_lost),
    MEMBER(RECORD_RECONFIGURED, "max_queued_per_user", FIELD_U32, config.per_user.max_queued),
    MEMBER(RECORD_RECONFIGURED, "max_running_per_user", FIELD_U32, config.per_user.max_running),
    MEMBER(RECORD_RECONFIGURED, "max_gpus_per_user", FIELD_U32, config.per_user.max_gpus),
    MEMBER(RECORD_RECONFIGURED, "max_memory_per_user_bytes", FIELD_I64, config.per_user.max_memory_bytes),
    MEMBER(RECORD_RECONFIGURED, "max_retries_per_user", FIELD_U32, config.per_user.max_retries),
#define RESOURCE(member, name, code) MEMBER(RECORD_RECONFIGURED, name, FIELD_I64, config.most.member),
#include "core/resources.def"
    MEMBER(RECORD_RECONFIGURED, "max_jobs_without_gpu", FIELD_U32, config.max_without_gpu),
    MEMBER(RECORD_RECONFIGURED, "max_jobs_per_gpu", FIELD_U32, config.max_jobs_per_gpu),
    MEMBER(RECORD_RECONFIGURED, "mps_multiuser", FIELD_BOOL, config.mps_multiuser),
    MEMBER(RECORD_RECONFIGURED, "mps_domain", FIELD_U32, config.mps_domain),
    MEMBER(RECORD_RECONFIGURED, "mps_threads_percent", FIELD_U32, config.mps_threads_percent),
    MEMBER(RECORD_RECONFIGURED, "mps_max_clients", FIELD_U32, config.mps_max_clients),
    MEMBER(RECORD_RECONFIGURED, "backfill", FIELD_U32, config.backfill),
    MEMBER(RECORD_RECONFIGURED, "starvation_timeout_ns", FIELD_I64, config.starvation_timeout_ns),
    MEMBER(RECORD_RECONFIGURED, "max_slowdown_permille", FIELD_I32, config.max_slowdown_permille),
    MEMBER(RECORD_RECONFIGURED, "memory_fence", FIELD_U32, config.memory_fence),
    MEMBER(RECORD_RECONFIGURED, "learn", FIELD_BOOL, config.learn),
    MEMBER(RECORD_RECONFIGURED, "shrink_after_ns", FIELD_I64, config.shrink_after_ns),
    MEMBER(RECORD_RECONFIGURED, "gate", FIELD_U32, config.gate),
    MEMBER(RECORD_RECONFIGURED, "prior_quantile_permille", FIELD_I32, config.prior_quantile_permille),
    MEMBER(RECORD_RECONFIGURED, "order", FIELD_U32, config.order),
    MEMBER(RECORD_GPU_BACK, "gpu", FIELD_U32, gpu.gpu),
    TEXT(RECORD_GPU_BACK, "uuid", gpu.uuid),
    MEMBER(RECORD_GPU_BACK, "total_bytes", FIELD_I64, gpu.total_bytes),
    MEMBER(RECORD_GPU_BACK, "share", FIELD_U32, gpu.share),
    MEMBER(RECORD_GPU_BACK, "instance", FIELD_BOOL, gpu.instance),
    MEMBER(RECORD_GPU_BACK, "part_permille", FIELD_I32, gpu.part_permille),
    TEXT(RECORD_GPU_BACK, "name", gpu.name),
    MEMBER(RECORD_GPU_BACK, "compute", FIELD_U32, gpu.compute),
    MEMBER(RECORD_GPU_LOST, "gpu", FIELD_U32, gpu.gpu),
    TEXT(RECORD_GPU_LOST, "uuid", gpu.uuid),
    MEMBER(RECORD_GPU_LOST, "total_bytes", FIELD_I64, gpu.total_bytes),
#define WANT(ctype, member, kind, from) MEMBER(RECORD_SUBMITTED, #member, FIELD_##kind, submitted.member),
#define WORDS(member, size)             TEXT(RECORD_SUBMITTED, #member, submitted.member),
#include "core/wants.def"
    TEXT(RECORD_SUBMITTED, "workload", submitted.workload),
#define WANT(ctype, member, kind, from) MEMBER(RECORD_EDITED, #member, FIELD_##kind, edited.wants.member),
#define WORDS(member, size)             TEXT(RECORD_EDITED, #member, edited.wants.member),
#include "core/wants.def"
    MEMBER(RECORD_EDITED, "begin_ns", FIELD_I64, edited.begin_ns),
    MEMBER(RECORD_ORDERED, "last", FIELD_U64, ordered.last),
    MEMBER(RECORD_ORDERED, "where", FIELD_U32, ordered.where),
    MEMBER(RECORD_ORDERED, "before", FIELD_U64, ordered.before),
    MEMBER(RECORD_DEPENDS, "on", FIELD_U64, depends.on),
    MEMBER(RECORD_DEPENDS, "kind", FIELD_U32, depends.kind),
    MEMBER(RECORD_DEPENDS, "delay_ns", FIELD_I64, depends.delay_ns),
    MEMBER(RECORD_COMMANDED, "command", FIELD_U32, commanded.command),
    MEMBER(RECORD_COMMANDED, "argument", FIELD_U32, commanded.argument),
    MEMBER(RECORD_COMMANDED, "uid", FIELD_U32, commanded.uid),
    MEMBER(RECORD_TOLD, "count", FIELD_U32, told.count),
    MEMBER(RECORD_ESTIMATED, "request_bytes", FIELD_I64, estimated.request_bytes),
    MEMBER(RECORD_ESTIMATED, "smact_permille", FIELD_I32, estimated.smact_permille),
    MEMBER(RECORD_SAMPLE, "gpu", FIELD_U32, sample.gpu),
    MEMBER(RECORD_SAMPLE, "used_bytes", FIELD_I64, sample.used_bytes),
    MEMBER(RECORD_SAMPLE, "unmanaged_bytes", FIELD_I64, sample.unmanaged_bytes),
    MEMBER(RECORD_SAMPLE, "smact_permille", FIELD_I32, sample.smact_permille),
    MEMBER(RECORD_SAMPLE, "smocc_permille", FIELD_I32, sample.smocc_permille),
    MEMBER(RECORD_SAMPLE, "dram_permille", FIELD_I32, sample.dram_permille),
    MEMBER(RECORD_SAMPLE, "others", FIELD_BOOL, sample.others),
    MEMBER(RECORD_FIRST_USE, "gpu", FIELD_U32, memory.gpu),
    MEMBER(RECORD_FIRST_USE, "bytes", FIELD_I64, memory.bytes),
    MEMBER(RECORD_OBSERVED, "gpu", FIELD_U32, memory.gpu),
    MEMBER(RECORD_OBSERVED, "bytes", FIELD_I64, memory.bytes),
    MEMBER(RECORD_STRAYED, "gpu", FIELD_U32, strayed.gpu),
    MEMBER(RECORD_STRAYED, "bytes", FIELD_I64, strayed.bytes),
    MEMBER(RECORD_PROGRESSED, "micro_steps_per_s", FIELD_I64, progressed.micro_steps_per_s),
    MEMBER(RECORD_PROGRESSED, "span_ns", FIELD_I64, progressed.span_ns),
    MEMBER(RECORD_PROGRESSED, "total", FIELD_I64, progressed.total),
    MEMBER(RECORD_UNUSED, "since_ns", FIELD_I64, unused.since_ns),
    MEMBER(RECORD_EXITED, "cause", FIELD_U32, exited.cause),
    MEMBER(RECORD_EXITED, "status", FIELD_I32, exited.status),
    MEMBER(RECORD_EXITED, "requested_bytes", FIELD_I64, exited.requested_bytes),
    MEMBER(RECORD_EXITED, "free_bytes", FIELD_I64, exited.free_bytes),
    MEMBER(RECORD_EXITED, "used_bytes", FIELD_I64, exited.used_bytes),
    MEMBER(RECORD_EXITED, "failed_gpu", FIELD_U32, exited.failed_gpu),
    MEMBER(RECORD_EXITED, "evidence", FIELD_U32, exited.evidence),
    MEMBER(RECORD_LOST, "final", FIELD_BOOL, lost.final),
    MEMBER(RECORD_SHARE_FAULT, "gpu", FIELD_U32, share_fault.gpu),
    MEMBER(RECORD_SHARE_FAULT, "faulted", FIELD_BOOL, share_fault.faulted),
    MEMBER(RECORD_SHARE_FAULT, "of_user", FIELD_BOOL, share_fault.of_user),
    MEMBER(RECORD_SHARE_FAULT, "uid", FIELD_U32, share_fault.uid),
    MEMBER(RECORD_FORGOTTEN, "of_user", FIELD_BOOL, forgotten.of_user),
    MEMBER(RECORD_FORGOTTEN, "uid", FIELD_U32, forgotten.uid),
    TEXT(RECORD_FORGOTTEN, "workload", forgotten.workload),
    MEMBER(RECORD_GPU_OPENED, "gpu", FIELD_U32, gpu.gpu),
    MEMBER(RECORD_GPU_DRAINED, "gpu", FIELD_U32, drained.gpu),
    MEMBER(RECORD_GPU_DRAINED, "uid", FIELD_U32, drained.uid),
    TEXT(RECORD_GPU_DRAINED, "why", drained.why),
    MEMBER(RECORD_GPU_RESUMED, "gpu", FIELD_U32, drained.gpu),
    MEMBER(RECORD_GPU_RESUMED, "uid", FIELD_U32, drained.uid),
    ALLOTTED(RECORD_GPUS_ALLOTTED),
    MEMBER(RECORD_ALLOTMENT_ENDED, "number", FIELD_U32, allotment_ended.number),
    MEMBER(RECORD_ALLOTMENT_ENDED, "uid", FIELD_U32, allotment_ended.uid),
    MEMBER(RECORD_SHARE_GIVEN, "uid", FIELD_U32, share_given.uid),
    MEMBER(RECORD_SHARE_GIVEN, "share", FIELD_U32, share_given.share),
    TEXT(RECORD_SHARE_GIVEN, "group", share_given.group),
    MEMBER(RECORD_SHARE_GIVEN, "group_share", FIELD_U32, share_given.group_share),
    MEMBER(RECORD_PLACED, "count", FIELD_U32, placed.count),
    {RECORD_PLACED, "gpus", FIELD_U32_ARRAY, offsetof(struct record, placed.gpus), RECORD_MAX_GPUS},
    MEMBER(RECORD_PLACED, "reserved_bytes", FIELD_I64, placed.reserved_bytes),
    MEMBER(RECORD_PLACED, "reservation_source", FIELD_U32, placed.reservation_source),
    MEMBER(RECORD_PLACED, "threads_percent", FIELD_U32, placed.threads_percent),
    MEMBER(RECORD_PLACED, "fence_bytes", FIELD_I64, placed.fence_bytes),
    MEMBER(RECORD_PLACED, "slowdown_permille", FIELD_I32, placed.slowdown_permille),
    MEMBER(RECORD_PLACED, "share", FIELD_U32, placed.share),
    MEMBER(RECORD_PLACED, "shared", FIELD_BOOL, placed.shared),
    MEMBER(RECORD_PLACED, "retry", FIELD_BOOL, placed.retry),
    MEMBER(RECORD_REQUEUED, "retry", FIELD_BOOL, requeued.retry),
    MEMBER(RECORD_REQUEUED, "crashes", FIELD_U32, requeued.crashes),
    MEMBER(RECORD_REQUEUED, "reserved_bytes", FIELD_I64, requeued.reserved_bytes),
    MEMBER(RECORD_REQUEUED, "reservation_source", FIELD_U32, requeued.reservation_source),
    MEMBER(RECORD_REQUEUED, "unfenced", FIELD_BOOL, requeued.unfenced),
    MEMBER(RECORD_REQUEUED, "overuser", FIELD_U64, requeued.overuser),
    MEMBER(RECORD_GAVE_UP, "memory", FIELD_BOOL, gave_up.memory),
    MEMBER(RECORD_GAVE_UP, "cause", FIELD_U32, gave_up.cause),
    MEMBER(RECORD_RETURNED, "crashes", FIELD_U32, returned.crashes),
    MEMBER(RECORD_RETURNED, "reserved_bytes", FIELD_I64, returned.reserved_bytes),
    MEMBER(RECORD_RETURNED, "reservation_source", FIELD_U32, returned.reservation_source),
    MEMBER(RECORD_RETURNED, "overuser", FIELD_U64, returned.overuser),
    MEMBER(RECORD_REFUSED, "on", FIELD_U64, refused.on),
    MEMBER(RECORD_MOVED, "slowed", FIELD_U64, moved.slowed),
    MEMBER(RECORD_MOVED, "slowed_permille", FIELD_I32, moved.slowed_permille),
    MEMBER(RECORD_MOVED, "bound_permille", FIELD_I32, moved.bound_permille),
    MEMBER(RECORD_IDLE, "step", FIELD_U32, idle.step),
    MEMBER(RECORD_IDLE, "ends_ns", FIELD_I64, idle.ends_ns),
    MEMBER(RECORD_SHRUNK, "reserved_bytes", FIELD_I64, shrunk.reserved_bytes),
    MEMBER(RECORD_SHRUNK, "reservation_source", FIELD_U32, shrunk.reservation_source),
    MEMBER(RECORD_GROWN, "reserved_bytes", FIELD_I64, grown.reserved_bytes),
    MEMBER(RECORD_GROWN, "reservation_source", FIELD_U32, grown.reservation_source),
    MEMBER(RECORD_RESERVED, "count", FIELD_U32, reserved.count),
    {RECORD_RESERVED, "gpus", FIELD_U32_ARRAY, offsetof(struct record, reserved.gpus), RECORD_MAX_GPUS},
    MEMBER(RECORD_GPU_TRIED, "gpu", FIELD_U32, gpu.gpu),
    MEMBER(RECORD_WAITED, "until_ns", FIELD_I64, waited.until_ns),
    MEMBER(RECORD_STATE_CORE, "next_decision_ns", FIELD_I64, state_core.next_decision_ns),
    MEMBER(RECORD_STATE_CORE, "last_place", FIELD_U64, state_core.last_place),
    MEMBER(RECORD_STATE_CORE, "round_robin_next", FIELD_U32, state_core.round_robin_next),
    MEMBER(RECORD_STATE_CORE, "reserved_job", FIELD_U64, state_core.reserved_job),
    MEMBER(RECORD_STATE_CORE, "prior_count", FIELD_U32, state_core.prior_count),
    {RECORD_STATE_CORE, "prior", FIELD_U32_ARRAY, offsetof(struct record, state_core.prior), PRIOR_BINS},
    MEMBER(RECORD_STATE_CORE, "last_allotment", FIELD_U32, state_core.last_allotment),
    MEMBER(RECORD_STATE_CORE, "allotted_ns", FIELD_I64, state_core.allotted_ns),
    MEMBER(RECORD_STATE_GPU, "gpu", FIELD_U32, state_gpu.gpu.gpu),
    TEXT(RECORD_STATE_GPU, "uuid", state_gpu.gpu.uuid),
    MEMBER(RECORD_STATE_GPU, "total_bytes", FIELD_I64, state_gpu.gpu.total_bytes),
    MEMBER(RECORD_STATE_GPU, "share", FIELD_U32, state_gpu.gpu.share),
    MEMBER(RECORD_STATE_GPU, "instance", FIELD_BOOL, state_gpu.gpu.instance),
    MEMBER(RECORD_STATE_GPU, "part_permille", FIELD_I32, state_gpu.gpu.part_permille),
    TEXT(RECORD_STATE_GPU, "name", state_gpu.gpu.name),
    MEMBER(RECORD_STATE_GPU, "compute", FIELD_U32, state_gpu.gpu.compute),
    MEMBER(RECORD_STATE_GPU, "share_faulted", FIELD_BOOL, state_gpu.share_faulted),
    MEMBER(RECORD_STATE_GPU, "server", FIELD_U64, state_gpu.server),
    MEMBER(RECORD_STATE_GPU, "server_uid", FIELD_U32, state_gpu.server_uid),
#define CLOSED(member, reason) MEMBER(RECORD_STATE_GPU, #member, FIELD_BOOL, state_gpu.member),
#include "core/gpus/closed.def"
    MEMBER(RECORD_STATE_GPU, "measured", FIELD_BOOL, state_gpu.measured),
    MEMBER(RECORD_STATE_GPU, "used_bytes", FIELD_I64, state_gpu.sample.used_bytes),
    MEMBER(RECORD_STATE_GPU, "unmanaged_bytes", FIELD_I64, state_gpu.sample.unmanaged_bytes),
    MEMBER(RECORD_STATE_GPU, "smact_permille", FIELD_I32, state_gpu.sample.smact_permille),
    MEMBER(RECORD_STATE_GPU, "smocc_permille", FIELD_I32, state_gpu.sample.smocc_permille),
    MEMBER(RECORD_STATE_GPU, "dram_permille", FIELD_I32, state_gpu.sample.dram_permille),
    MEMBER(RECORD_STATE_GPU, "others", FIELD_BOOL, state_gpu.sample.others),
    MEMBER(RECORD_STATE_GPU, "reserved_for", FIELD_U64, state_gpu.reserved_for),
    MEMBER(RECORD_STATE_GPU, "reserved_ns", FIELD_I64, state_gpu.reserved_ns),
    MEMBER(RECORD_STATE_GPU, "settling_job", FIELD_U64, state_gpu.settling_job),
    MEMBER(RECORD_STATE_GPU, "closed_until_ns", FIELD_I64, state_gpu.closed_until_ns),
    MEMBER(RECORD_STATE_GPU, "changed_ns", FIELD_I64, state_gpu.changed_ns),
    MEMBER(RECORD_STATE_GPU, "learned_ns", FIELD_I64, state_gpu.learned_ns),
    MEMBER(RECORD_STATE_GPU, "start_count", FIELD_U32, state_gpu.closing.count),
    {RECORD_STATE_GPU, "starts", FIELD_U32_ARRAY, offsetof(struct record, state_gpu.closing.users),
     CLOSING_USERS *CLOSING_NUMBERS},
    MEMBER(RECORD_STATE_GPU, "overuser", FIELD_U64, state_gpu.overused.job),
    MEMBER(RECORD_STATE_GPU, "overused_bytes", FIELD_I64, state_gpu.overused.bytes),
    MEMBER(RECORD_STATE_GPU, "overuser_left_ns", FIELD_I64, state_gpu.overused.left_ns),
    MEMBER(RECORD_STATE_DRAINED, "gpu", FIELD_U32, state_drained.gpu),
    MEMBER(RECORD_STATE_DRAINED, "uid", FIELD_U32, state_drained.drain.uid),
    MEMBER(RECORD_STATE_DRAINED, "since_ns", FIELD_I64, state_drained.drain.since_ns),
    TEXT(RECORD_STATE_DRAINED, "why", state_drained.drain.why),
    ALLOTTED(RECORD_STATE_ALLOTTED),
    MEMBER(RECORD_STATE_PROFILE, "uid", FIELD_U32, state_profile.uid),
    TEXT(RECORD_STATE_PROFILE, "workload", state_profile.workload),
    MEMBER(RECORD_STATE_PROFILE, "runs", FIELD_U32, state_profile.runs),
    MEMBER(RECORD_STATE_PROFILE, "tells", FIELD_BOOL, state_profile.tells),
    MEMBER(RECORD_STATE_PROFILE, "first_bytes", FIELD_I64, state_profile.first_bytes),
    MEMBER(RECORD_STATE_PROFILE, "distance_sum", FIELD_I64, state_profile.distance_sum),
    MEMBER(RECORD_STATE_PROFILE, "distance_squares", FIELD_I64, state_profile.distance_squares),
    MEMBER(RECORD_STATE_PROFILE, "outgrown_bytes", FIELD_I64, state_profile.outgrown_bytes),
    MEMBER(RECORD_STATE_PROFILE, "peak_bytes", FIELD_I64, state_profile.peak_bytes),
    MEMBER(RECORD_STATE_PROFILE, "estimated_bytes", FIELD_I64, state_profile.estimated_bytes),
    MEMBER(RECORD_STATE_PROFILE, "activity_permille", FIELD_I32, state_profile.activity_permille),
    MEMBER(RECORD_STATE_PROFILE, "variance", FIELD_I64, state_profile.variance),
    MEMBER(RECORD_STATE_PROFILE, "failed_gpu", FIELD_U32, state_profile.failure.gpu),
    MEMBER(RECORD_STATE_PROFILE, "failed_ns", FIELD_I64, state_profile.failure.at_ns),
    MEMBER(RECORD_STATE_MEASURE, "uid", FIELD_U32, state_measure.uid),
    TEXT(RECORD_STATE_MEASURE, "workload", state_measure.workload),
    MEMBER(RECORD_STATE_MEASURE, "beside_uid", FIELD_U32, state_measure.beside_uid),
    TEXT(RECORD_STATE_MEASURE, "beside", state_measure.beside),
    MEMBER(RECORD_STATE_MEASURE, "share", FIELD_U32, state_measure.share),
    MEMBER(RECORD_STATE_MEASURE, "kind", FIELD_U32, state_measure.kind),
    MEMBER(RECORD_STATE_MEASURE, "value", FIELD_I64, state_measure.value),
    MEMBER(RECORD_STATE_MEASURE, "unit", FIELD_I64, state_measure.unit),
    MEMBER(RECORD_STATE_MEASURE, "gpu_bytes", FIELD_I64, state_measure.gpu_bytes),
    MEMBER(RECORD_STATE_MEASURE, "readings", FIELD_U32, state_measure.readings),
    MEMBER(RECORD_STATE_MEASURE, "measured_ns", FIELD_I64, state_measure.measured_ns),
    MEMBER(RECORD_STATE_PRIOR, "uid", FIELD_U32, state_prior.uid),
    MEMBER(RECORD_STATE_PRIOR, "told", FIELD_BOOL, state_prior.told),
    MEMBER(RECORD_STATE_PRIOR, "count", FIELD_U32, state_prior.count),
    {RECORD_STATE_PRIOR, "parts", FIELD_U32_ARRAY, offsetof(struct record, state_prior.parts), PRIOR_BINS},
    MEMBER(RECORD_STATE_USER, "uid", FIELD_U32, state_user.uid),
    MEMBER(RECORD_STATE_USER, "retries_ns", FIELD_I64, state_user.retries_ns),
    MEMBER(RECORD_STATE_USER, "retries", FIELD_U32, state_user.retries),
    MEMBER(RECORD_STATE_USER, "share_faulted", FIELD_BOOL, state_user.share_faulted),
    MEMBER(RECORD_STATE_USER, "use", FIELD_I64, state_user.use),
    MEMBER(RECORD_STATE_USER, "use_ns", FIELD_I64, state_user.use_ns),
    MEMBER(RECORD_STATE_USER, "share", FIELD_U32, state_user.share),
    MEMBER(RECORD_STATE_USER, "kept_ns", FIELD_I64, state_user.kept_ns),
    TEXT(RECORD_STATE_USER, "group", state_user.group),
    MEMBER(RECORD_STATE_USER, "group_share", FIELD_U32, state_user.group_share),
#define WANT(ctype, member, kind, from) MEMBER(RECORD_STATE_JOB, #member, FIELD_##kind, state_job.wants.member),
#define WORDS(member, size)             TEXT(RECORD_STATE_JOB, #member, state_job.wants.member),
#include "core/wants.def"
    TEXT(RECORD_STATE_JOB, "workload", state_job.wants.workload),
#define STATE(part, type, member, kind, name) MEMBER(RECORD_STATE_JOB, name, FIELD_##kind, state_job.member),
#include "core/job_state.def"
    MEMBER(RECORD_STATE_JOB, "failed_gpu", FIELD_U32, state_job.failure.gpu),
    MEMBER(RECORD_STATE_JOB, "failed_ns", FIELD_I64, state_job.failure.at_ns),
    MEMBER(RECORD_STATE_PLACEMENT, "gpu", FIELD_U32, state_placement.gpu),
    MEMBER(RECORD_STATE_PLACEMENT, "bytes", FIELD_I64, state_placement.bytes),
    MEMBER(RECORD_STATE_PLACEMENT, "strayed", FIELD_BOOL, state_placement.strayed),
    MEMBER(RECORD_STATE_DEPENDS, "on", FIELD_U64, state_depends.depends.on),
    MEMBER(RECORD_STATE_DEPENDS, "kind", FIELD_U32, state_depends.depends.kind),
    MEMBER(RECORD_STATE_DEPENDS, "delay_ns", FIELD_I64, state_depends.depends.delay_ns),
    MEMBER(RECORD_STATE_DEPENDS, "told_as", FIELD_U32, state_depends.told_as),
    MEMBER(RECORD_STATE_DEPENDS, "told_ns", FIELD_I64, state_depends.told_ns),
    MEMBER(RECORD_STATE_RESIDENT, "gpu", FIELD_U32, state_resident.gpu),
    MEMBER(RECORD_STATE_QUEUED, "queue", FIELD_U32, state_queued.queue),
};
const size_t record_field_count = array_size(record_fields);

const char *record_type_name(uint32_t type)
{
    static const char *const names[RECORD_TYPE_COUNT] = {
#define RECORD(type, name, whose, stays) name,
#include "core/records.def"
    };

    return type < RECORD_TYPE_COUNT ? names[type] : "unknown";
}

const char *exit_cause_name(uint32_t cause)
{
    static const char *const names[EXIT_CAUSE_COUNT] = {
        "completed", "failed",  "gpu_oom", "signalled", "gpu_handle", "host_oom", "mps_fault",
        "gpu_error", "timeout", "lost",    "orphan",    "expired",    "idle"};

    return cause < EXIT_CAUSE_COUNT ? names[cause] : "unknown";
}

const char *memory_source_name(uint32_t source)
{
    static const char *const names[SOURCE_COUNT] = {"unknown", "declared", "recorded", "estimated",
                                                    "learned", "observed", "raised",   "prior"};

    return source < SOURCE_COUNT ? names[source] : "unknown";
}

bool record_is_decision(uint32_t type)
{
    return type >= RECORD_PLACED && type < RECORD_STATE_CORE;
}

bool record_is_state(uint32_t type)
{
    return type >= RECORD_STATE_CORE && type < RECORD_TYPE_COUNT;
}

struct record *record_list_add(struct record_list *list, const struct record *record)
{
    array_reserve(list->items, list->capacity, list->count + 1);
    list->items[list->count] = *record;
    return &list->items[list->count++];
}

void record_list_release(struct record_list *list)
{
    free(list->items);
    *list = (struct record_list){0};
}
