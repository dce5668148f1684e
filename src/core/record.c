/* How this file works: record_fields[] has a row for each member of each type of record, and whoever reads, writes,
 * compares or invents records goes by it (api/record_json.c, tests/property). Most rows come from tables: wants.def,
 * job_state.def, gpus/closed.def, resources.def. A LATER row is of a member that earlier records lack, and says which
 * value these had: stores of every version are read so, and none is rewritten. To add a record: records.def, and its
 * members here. Stored names stay as they are, whatever the member is called now. */
#include "core/record.h"

#include <string.h>

#include "base/memory.h"
#include "base/share.h"

#define MEMBER(type, name, kind, member)                                                                               \
    {                                                                                                                  \
        type, name, kind, offsetof(struct record, member), 0, false, 0                                                 \
    }
#define LATER(type, name, kind, member, absent)                                                                        \
    {                                                                                                                  \
        type, name, kind, offsetof(struct record, member), 0, true, absent                                             \
    }
#define TEXT(type, name, member)                                                                                       \
    {                                                                                                                  \
        type, name, FIELD_TEXT, offsetof(struct record, member), sizeof(((struct record *)0)->member), false, 0        \
    }
/* "" in records that lack it. */
#define LATER_TEXT(type, name, member)                                                                                 \
    {                                                                                                                  \
        type, name, FIELD_TEXT, offsetof(struct record, member), sizeof(((struct record *)0)->member), true, 0         \
    }

#define SINCE_FIRST(type, name, kind, member) MEMBER(type, name, kind, member)
#define SINCE_LATER(type, name, kind, member) LATER(type, name, kind, member, 0)

#define ALLOTTED(type)                                                                                                 \
    MEMBER(type, "number", FIELD_U32, allotted.number), MEMBER(type, "uid", FIELD_U32, allotted.uid),                  \
        MEMBER(type, "from_ns", FIELD_I64, allotted.from_ns), MEMBER(type, "until_ns", FIELD_I64, allotted.until_ns),  \
        MEMBER(type, "gpu_count", FIELD_U32, allotted.gpu_count),                                                      \
        {type, "gpus", FIELD_U32_ARRAY, offsetof(struct record, allotted.gpus), RECORD_MAX_GPUS, false, 0},            \
        MEMBER(type, "user_count", FIELD_U32, allotted.user_count),                                                    \
        {type, "users", FIELD_U32_ARRAY, offsetof(struct record, allotted.users), ALLOTMENT_USERS, false, 0},          \
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
    MEMBER(RECORD_RECONFIGURED, "recovery", FIELD_U32, config.oom_retry),
    MEMBER(RECORD_RECONFIGURED, "max_recoveries", FIELD_U32, config.max_retries),
    LATER(RECORD_RECONFIGURED, "max_requeues", FIELD_U32, config.max_requeues, CORE_MAX_REQUEUES),
    LATER(RECORD_RECONFIGURED, "requeue_lost", FIELD_BOOL, config.requeue_lost, false),
    LATER(RECORD_RECONFIGURED, "max_queued_per_user", FIELD_U32, config.per_user.max_queued, 0),
    LATER(RECORD_RECONFIGURED, "max_running_per_user", FIELD_U32, config.per_user.max_running, 0),
    LATER(RECORD_RECONFIGURED, "max_gpus_per_user", FIELD_U32, config.per_user.max_gpus, 0),
    LATER(RECORD_RECONFIGURED, "max_memory_per_user_bytes", FIELD_I64, config.per_user.max_memory_bytes, 0),
    LATER(RECORD_RECONFIGURED, "max_recoveries_per_user", FIELD_U32, config.per_user.max_retries, 0),
#define RESOURCE(member, name, code) LATER(RECORD_RECONFIGURED, name, FIELD_I64, config.most.member, 0),
#include "core/resources.def"
    LATER(RECORD_RECONFIGURED, "max_jobs_without_gpu", FIELD_U32, config.max_without_gpu, CORE_MAX_WITHOUT_GPU),
    MEMBER(RECORD_RECONFIGURED, "max_jobs_per_gpu", FIELD_U32, config.max_jobs_per_gpu),
    LATER(RECORD_RECONFIGURED, "mps_multiuser", FIELD_BOOL, config.mps_multiuser, false),
    LATER(RECORD_RECONFIGURED, "mps_domain", FIELD_U32, config.mps_domain, MPS_DOMAIN_GPU),
    LATER(RECORD_RECONFIGURED, "mps_threads_percent", FIELD_U32, config.mps_threads_percent, 100),
    LATER(RECORD_RECONFIGURED, "mps_max_clients", FIELD_U32, config.mps_max_clients, 48),
    MEMBER(RECORD_RECONFIGURED, "backfill", FIELD_U32, config.backfill),
    MEMBER(RECORD_RECONFIGURED, "patience_ns", FIELD_I64, config.starvation_timeout_ns),
    MEMBER(RECORD_RECONFIGURED, "max_slowdown_permille", FIELD_I32, config.max_slowdown_permille),
    LATER(RECORD_RECONFIGURED, "memory_fence", FIELD_U32, config.memory_fence, 0),
    MEMBER(RECORD_RECONFIGURED, "learn", FIELD_BOOL, config.learn),
    MEMBER(RECORD_RECONFIGURED, "trim_ns", FIELD_I64, config.shrink_after_ns),
    LATER(RECORD_RECONFIGURED, "gate", FIELD_U32, config.gate, GATE_ALL),
    LATER(RECORD_RECONFIGURED, "prior_quantile_permille", FIELD_I32, config.prior_quantile_permille, 0),
    LATER(RECORD_RECONFIGURED, "order", FIELD_U32, config.order, ORDER_FIFO),
    MEMBER(RECORD_GPU_BACK, "gpu", FIELD_U32, gpu.gpu),
    TEXT(RECORD_GPU_BACK, "uuid", gpu.uuid),
    MEMBER(RECORD_GPU_BACK, "total_bytes", FIELD_I64, gpu.total_bytes),
    LATER(RECORD_GPU_BACK, "share", FIELD_U32, gpu.share, SHARE_ANY),
    LATER(RECORD_GPU_BACK, "instance", FIELD_BOOL, gpu.instance, false),
    LATER(RECORD_GPU_BACK, "part_permille", FIELD_I32, gpu.part_permille, 0),
    LATER_TEXT(RECORD_GPU_BACK, "name", gpu.name),
    LATER(RECORD_GPU_BACK, "compute", FIELD_U32, gpu.compute, 0),
    MEMBER(RECORD_GPU_LOST, "gpu", FIELD_U32, gpu.gpu),
    TEXT(RECORD_GPU_LOST, "uuid", gpu.uuid),
    MEMBER(RECORD_GPU_LOST, "total_bytes", FIELD_I64, gpu.total_bytes),
#define WANT(ctype, member, kind, name, since, from)                                                                   \
    SINCE_##since(RECORD_SUBMITTED, name, FIELD_##kind, submitted.member),
#define WORDS(member, size, name) LATER_TEXT(RECORD_SUBMITTED, name, submitted.member),
#define REQUEST_NAME              "claim_bytes"
#include "core/wants.def"
#undef REQUEST_NAME
    TEXT(RECORD_SUBMITTED, "workload", submitted.workload),
#define WANT(ctype, member, kind, name, since, from)                                                                   \
    SINCE_##since(RECORD_EDITED, name, FIELD_##kind, edited.wants.member),
#define WORDS(member, size, name) LATER_TEXT(RECORD_EDITED, name, edited.wants.member),
#define REQUEST_NAME              "request_bytes"
#include "core/wants.def"
#undef REQUEST_NAME
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
    MEMBER(RECORD_SAMPLE, "foreign_bytes", FIELD_I64, sample.unmanaged_bytes),
    MEMBER(RECORD_SAMPLE, "smact_permille", FIELD_I32, sample.smact_permille),
    MEMBER(RECORD_SAMPLE, "smocc_permille", FIELD_I32, sample.smocc_permille),
    MEMBER(RECORD_SAMPLE, "dram_permille", FIELD_I32, sample.dram_permille),
    LATER(RECORD_SAMPLE, "others", FIELD_BOOL, sample.others, false),
    MEMBER(RECORD_FIRST_USE, "gpu", FIELD_U32, memory.gpu),
    MEMBER(RECORD_FIRST_USE, "bytes", FIELD_I64, memory.bytes),
    MEMBER(RECORD_OBSERVED, "gpu", FIELD_U32, memory.gpu),
    MEMBER(RECORD_OBSERVED, "bytes", FIELD_I64, memory.bytes),
    LATER(RECORD_STRAYED, "gpu", FIELD_U32, strayed.gpu, RECORD_NO_GPU),
    MEMBER(RECORD_STRAYED, "bytes", FIELD_I64, strayed.bytes),
    MEMBER(RECORD_PROGRESSED, "micro_steps_per_s", FIELD_I64, progressed.micro_steps_per_s),
    MEMBER(RECORD_PROGRESSED, "span_ns", FIELD_I64, progressed.span_ns),
    MEMBER(RECORD_PROGRESSED, "total", FIELD_I64, progressed.total),
    MEMBER(RECORD_UNUSED, "since_ns", FIELD_I64, unused.since_ns),
    MEMBER(RECORD_EXITED, "cause", FIELD_U32, exited.cause),
    MEMBER(RECORD_EXITED, "status", FIELD_I32, exited.status),
    MEMBER(RECORD_EXITED, "requested_bytes", FIELD_I64, exited.requested_bytes),
    MEMBER(RECORD_EXITED, "free_bytes", FIELD_I64, exited.free_bytes),
    LATER(RECORD_EXITED, "used_bytes", FIELD_I64, exited.used_bytes, -1),
    LATER(RECORD_EXITED, "failed_gpu", FIELD_U32, exited.failed_gpu, RECORD_NO_GPU),
    LATER(RECORD_EXITED, "evidence", FIELD_U32, exited.evidence, 0),
    LATER(RECORD_LOST, "final", FIELD_BOOL, lost.final, true),
    MEMBER(RECORD_SHARE_FAULT, "gpu", FIELD_U32, share_fault.gpu),
    MEMBER(RECORD_SHARE_FAULT, "faulted", FIELD_BOOL, share_fault.faulted),
    LATER(RECORD_SHARE_FAULT, "of_user", FIELD_BOOL, share_fault.of_user, false),
    LATER(RECORD_SHARE_FAULT, "uid", FIELD_U32, share_fault.uid, 0),
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
    LATER_TEXT(RECORD_SHARE_GIVEN, "group", share_given.group),
    LATER(RECORD_SHARE_GIVEN, "group_share", FIELD_U32, share_given.group_share, 0),
    MEMBER(RECORD_PLACED, "count", FIELD_U32, placed.count),
    {RECORD_PLACED, "gpus", FIELD_U32_ARRAY, offsetof(struct record, placed.gpus), RECORD_MAX_GPUS, false, 0},
    MEMBER(RECORD_PLACED, "claim_bytes", FIELD_I64, placed.reserved_bytes),
    LATER(RECORD_PLACED, "claim_source", FIELD_U32, placed.reservation_source, SOURCE_COUNT),
    LATER(RECORD_PLACED, "threads_percent", FIELD_U32, placed.threads_percent, 0),
    LATER(RECORD_PLACED, "fence_bytes", FIELD_I64, placed.fence_bytes, -1),
    MEMBER(RECORD_PLACED, "slowdown_permille", FIELD_I32, placed.slowdown_permille),
    LATER(RECORD_PLACED, "share", FIELD_U32, placed.share, SHARE_ANY),
    MEMBER(RECORD_PLACED, "shared", FIELD_BOOL, placed.shared),
    MEMBER(RECORD_PLACED, "recovery", FIELD_BOOL, placed.retry),
    MEMBER(RECORD_REQUEUED, "recovery", FIELD_BOOL, requeued.retry),
    MEMBER(RECORD_REQUEUED, "crashes", FIELD_U32, requeued.crashes),
    MEMBER(RECORD_REQUEUED, "claim_bytes", FIELD_I64, requeued.reserved_bytes),
    LATER(RECORD_REQUEUED, "claim_source", FIELD_U32, requeued.reservation_source, SOURCE_COUNT),
    LATER(RECORD_REQUEUED, "unfenced", FIELD_BOOL, requeued.unfenced, false),
    LATER(RECORD_REQUEUED, "culprit", FIELD_U64, requeued.overuser, 0),
    LATER(RECORD_GAVE_UP, "memory", FIELD_BOOL, gave_up.memory, true),
    LATER(RECORD_GAVE_UP, "cause", FIELD_U32, gave_up.cause, EXIT_COMPLETED),
    MEMBER(RECORD_RETURNED, "crashes", FIELD_U32, returned.crashes),
    MEMBER(RECORD_RETURNED, "reserved_bytes", FIELD_I64, returned.reserved_bytes),
    MEMBER(RECORD_RETURNED, "reservation_source", FIELD_U32, returned.reservation_source),
    MEMBER(RECORD_RETURNED, "overuser", FIELD_U64, returned.overuser),
    LATER(RECORD_REFUSED, "on", FIELD_U64, refused.on, 0),
    MEMBER(RECORD_MOVED, "slowed", FIELD_U64, moved.slowed),
    MEMBER(RECORD_MOVED, "slowed_permille", FIELD_I32, moved.slowed_permille),
    MEMBER(RECORD_MOVED, "bound_permille", FIELD_I32, moved.bound_permille),
    MEMBER(RECORD_IDLE, "step", FIELD_U32, idle.step),
    MEMBER(RECORD_IDLE, "ends_ns", FIELD_I64, idle.ends_ns),
    MEMBER(RECORD_SHRUNK, "claim_bytes", FIELD_I64, shrunk.reserved_bytes),
    LATER(RECORD_SHRUNK, "claim_source", FIELD_U32, shrunk.reservation_source, SOURCE_OBSERVED),
    MEMBER(RECORD_GROWN, "claim_bytes", FIELD_I64, grown.reserved_bytes),
    MEMBER(RECORD_GROWN, "claim_source", FIELD_U32, grown.reservation_source),
    MEMBER(RECORD_RESERVED, "count", FIELD_U32, reserved.count),
    {RECORD_RESERVED, "gpus", FIELD_U32_ARRAY, offsetof(struct record, reserved.gpus), RECORD_MAX_GPUS, false, 0},
    MEMBER(RECORD_GPU_TRIED, "gpu", FIELD_U32, gpu.gpu),
    MEMBER(RECORD_WAITED, "until_ns", FIELD_I64, waited.until_ns),
    MEMBER(RECORD_STATE_CORE, "next_decision_ns", FIELD_I64, state_core.next_decision_ns),
    LATER(RECORD_STATE_CORE, "last_place", FIELD_U64, state_core.last_place, 0),
    MEMBER(RECORD_STATE_CORE, "round_robin_next", FIELD_U32, state_core.round_robin_next),
    MEMBER(RECORD_STATE_CORE, "reserved_job", FIELD_U64, state_core.reserved_job),
    LATER(RECORD_STATE_CORE, "prior_count", FIELD_U32, state_core.prior_count, 0),
    {RECORD_STATE_CORE, "prior", FIELD_U32_ARRAY, offsetof(struct record, state_core.prior), PRIOR_BINS, true, 0},
    LATER(RECORD_STATE_CORE, "last_allotment", FIELD_U32, state_core.last_allotment, 0),
    LATER(RECORD_STATE_CORE, "allotted_ns", FIELD_I64, state_core.allotted_ns, 0),
    MEMBER(RECORD_STATE_GPU, "gpu", FIELD_U32, state_gpu.gpu.gpu),
    TEXT(RECORD_STATE_GPU, "uuid", state_gpu.gpu.uuid),
    MEMBER(RECORD_STATE_GPU, "total_bytes", FIELD_I64, state_gpu.gpu.total_bytes),
    MEMBER(RECORD_STATE_GPU, "share", FIELD_U32, state_gpu.gpu.share),
    MEMBER(RECORD_STATE_GPU, "instance", FIELD_BOOL, state_gpu.gpu.instance),
    LATER(RECORD_STATE_GPU, "part_permille", FIELD_I32, state_gpu.gpu.part_permille, 0),
    LATER_TEXT(RECORD_STATE_GPU, "name", state_gpu.gpu.name),
    LATER(RECORD_STATE_GPU, "compute", FIELD_U32, state_gpu.gpu.compute, 0),
    MEMBER(RECORD_STATE_GPU, "share_faulted", FIELD_BOOL, state_gpu.share_faulted),
    MEMBER(RECORD_STATE_GPU, "server", FIELD_U64, state_gpu.server),
    MEMBER(RECORD_STATE_GPU, "server_uid", FIELD_U32, state_gpu.server_uid),
#define CLOSED(member, name, since, reason) SINCE_##since(RECORD_STATE_GPU, name, FIELD_BOOL, state_gpu.member),
#include "core/gpus/closed.def"
    MEMBER(RECORD_STATE_GPU, "measured", FIELD_BOOL, state_gpu.measured),
    MEMBER(RECORD_STATE_GPU, "used_bytes", FIELD_I64, state_gpu.sample.used_bytes),
    MEMBER(RECORD_STATE_GPU, "foreign_bytes", FIELD_I64, state_gpu.sample.unmanaged_bytes),
    MEMBER(RECORD_STATE_GPU, "smact_permille", FIELD_I32, state_gpu.sample.smact_permille),
    MEMBER(RECORD_STATE_GPU, "smocc_permille", FIELD_I32, state_gpu.sample.smocc_permille),
    MEMBER(RECORD_STATE_GPU, "dram_permille", FIELD_I32, state_gpu.sample.dram_permille),
    LATER(RECORD_STATE_GPU, "others", FIELD_BOOL, state_gpu.sample.others, false),
    MEMBER(RECORD_STATE_GPU, "reserved_for", FIELD_U64, state_gpu.reserved_for),
    MEMBER(RECORD_STATE_GPU, "reserved_ns", FIELD_I64, state_gpu.reserved_ns),
    MEMBER(RECORD_STATE_GPU, "settling_job", FIELD_U64, state_gpu.settling_job),
    MEMBER(RECORD_STATE_GPU, "closed_until_ns", FIELD_I64, state_gpu.closed_until_ns),
    MEMBER(RECORD_STATE_GPU, "changed_ns", FIELD_I64, state_gpu.changed_ns),
    MEMBER(RECORD_STATE_GPU, "learned_ns", FIELD_I64, state_gpu.learned_ns),
    LATER(RECORD_STATE_GPU, "start_count", FIELD_U32, state_gpu.closing.count, 0),
    {RECORD_STATE_GPU, "starts", FIELD_U32_ARRAY, offsetof(struct record, state_gpu.closing.users),
     CLOSING_USERS *CLOSING_NUMBERS, true, 0},
    LATER(RECORD_STATE_GPU, "overuser", FIELD_U64, state_gpu.overused.job, 0),
    LATER(RECORD_STATE_GPU, "overused_bytes", FIELD_I64, state_gpu.overused.bytes, 0),
    LATER(RECORD_STATE_GPU, "overuser_left_ns", FIELD_I64, state_gpu.overused.left_ns, 0),
    MEMBER(RECORD_STATE_DRAINED, "gpu", FIELD_U32, state_drained.gpu),
    MEMBER(RECORD_STATE_DRAINED, "uid", FIELD_U32, state_drained.drain.uid),
    MEMBER(RECORD_STATE_DRAINED, "since_ns", FIELD_I64, state_drained.drain.since_ns),
    TEXT(RECORD_STATE_DRAINED, "why", state_drained.drain.why),
    ALLOTTED(RECORD_STATE_ALLOTTED),
    LATER(RECORD_STATE_PROFILE, "uid", FIELD_U32, state_profile.uid, UINT32_MAX),
    TEXT(RECORD_STATE_PROFILE, "workload", state_profile.workload),
    MEMBER(RECORD_STATE_PROFILE, "runs", FIELD_U32, state_profile.runs),
    LATER(RECORD_STATE_PROFILE, "tells", FIELD_BOOL, state_profile.tells, false),
    MEMBER(RECORD_STATE_PROFILE, "first_bytes", FIELD_I64, state_profile.first_bytes),
    MEMBER(RECORD_STATE_PROFILE, "distance_sum", FIELD_I64, state_profile.distance_sum),
    MEMBER(RECORD_STATE_PROFILE, "distance_squares", FIELD_I64, state_profile.distance_squares),
    LATER(RECORD_STATE_PROFILE, "outgrown_bytes", FIELD_I64, state_profile.outgrown_bytes, 0),
    MEMBER(RECORD_STATE_PROFILE, "peak_bytes", FIELD_I64, state_profile.peak_bytes),
    LATER(RECORD_STATE_PROFILE, "estimated_bytes", FIELD_I64, state_profile.estimated_bytes, 0),
    MEMBER(RECORD_STATE_PROFILE, "activity_permille", FIELD_I32, state_profile.activity_permille),
    MEMBER(RECORD_STATE_PROFILE, "variance", FIELD_I64, state_profile.variance),
    LATER(RECORD_STATE_PROFILE, "failed_gpu", FIELD_U32, state_profile.failure.gpu, RECORD_NO_GPU),
    LATER(RECORD_STATE_PROFILE, "failed_ns", FIELD_I64, state_profile.failure.at_ns, 0),
    LATER(RECORD_STATE_MEASURE, "uid", FIELD_U32, state_measure.uid, UINT32_MAX),
    TEXT(RECORD_STATE_MEASURE, "workload", state_measure.workload),
    LATER(RECORD_STATE_MEASURE, "beside_uid", FIELD_U32, state_measure.beside_uid, UINT32_MAX),
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
    {RECORD_STATE_PRIOR, "parts", FIELD_U32_ARRAY, offsetof(struct record, state_prior.parts), PRIOR_BINS, false, 0},
    MEMBER(RECORD_STATE_USER, "uid", FIELD_U32, state_user.uid),
    MEMBER(RECORD_STATE_USER, "recoveries_ns", FIELD_I64, state_user.retries_ns),
    MEMBER(RECORD_STATE_USER, "recoveries", FIELD_U32, state_user.retries),
    LATER(RECORD_STATE_USER, "share_faulted", FIELD_BOOL, state_user.share_faulted, false),
    LATER(RECORD_STATE_USER, "use", FIELD_I64, state_user.use, 0),
    LATER(RECORD_STATE_USER, "use_ns", FIELD_I64, state_user.use_ns, 0),
    LATER(RECORD_STATE_USER, "share", FIELD_U32, state_user.share, 1),
    LATER(RECORD_STATE_USER, "kept_ns", FIELD_I64, state_user.kept_ns, 0),
    LATER_TEXT(RECORD_STATE_USER, "group", state_user.group),
    LATER(RECORD_STATE_USER, "group_share", FIELD_U32, state_user.group_share, 0),
#define WANT(ctype, member, kind, name, since, from)                                                                   \
    SINCE_##since(RECORD_STATE_JOB, name, FIELD_##kind, state_job.wants.member),
#define WORDS(member, size, name) LATER_TEXT(RECORD_STATE_JOB, name, state_job.wants.member),
#define REQUEST_NAME              "wanted_bytes"
#include "core/wants.def"
    TEXT(RECORD_STATE_JOB, "workload", state_job.wants.workload),
#define STATE(part, type, member, kind, name) MEMBER(RECORD_STATE_JOB, name, FIELD_##kind, state_job.member),
#define ADDED(part, type, member, kind, name, absent)                                                                  \
    LATER(RECORD_STATE_JOB, name, FIELD_##kind, state_job.member, absent),
#include "core/job_state.def"
    LATER(RECORD_STATE_JOB, "failed_gpu", FIELD_U32, state_job.failure.gpu, RECORD_NO_GPU),
    LATER(RECORD_STATE_JOB, "failed_ns", FIELD_I64, state_job.failure.at_ns, 0),
    MEMBER(RECORD_STATE_PLACEMENT, "gpu", FIELD_U32, state_placement.gpu),
    MEMBER(RECORD_STATE_PLACEMENT, "bytes", FIELD_I64, state_placement.bytes),
    LATER(RECORD_STATE_PLACEMENT, "strayed", FIELD_BOOL, state_placement.strayed, false),
    MEMBER(RECORD_STATE_DEPENDS, "on", FIELD_U64, state_depends.depends.on),
    MEMBER(RECORD_STATE_DEPENDS, "kind", FIELD_U32, state_depends.depends.kind),
    MEMBER(RECORD_STATE_DEPENDS, "delay_ns", FIELD_I64, state_depends.depends.delay_ns),
    LATER(RECORD_STATE_DEPENDS, "told_as", FIELD_U32, state_depends.told_as, 0),
    LATER(RECORD_STATE_DEPENDS, "told_ns", FIELD_I64, state_depends.told_ns, 0),
    MEMBER(RECORD_STATE_RESIDENT, "gpu", FIELD_U32, state_resident.gpu),
    MEMBER(RECORD_STATE_QUEUED, "queue", FIELD_U32, state_queued.queue),
};
const size_t record_field_count = array_size(record_fields);

bool record_member_is_gone(uint32_t type, const char *name)
{
    return (type == RECORD_RECONFIGURED && strcmp(name, "mps_one_server") == 0) || /* false always: mps_domain now */
           /* submitted_ns counts now; a state of its own, which Slurm's agent tells again */
           (type == RECORD_STATE_JOB && (strcmp(name, "headed_ns") == 0 || strcmp(name, "suspended") == 0));
}

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

uint32_t record_memory_source(uint32_t said, int64_t reserved_bytes, const struct record_submitted *wants,
                              uint32_t otherwise)
{
    if (said < SOURCE_COUNT)
        return said;
    return reserved_bytes == wants->request_bytes ? wants->request_source : otherwise;
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
