#include "daemon/request/status.h"

#include "api/or_null.h"
#include "base/json/moment.h"
#include "base/nodetime.h"
#include "base/share.h"
#include "core/ledger.h"
#include "daemon/engine/engine.h"
#include "daemon/whatif/whatif.h"

/* How many GPUs each ground closes. */
static json_t *closed_to_json(const struct core *core)
{
    json_int_t count;
    json_t *json = json_object();

#define CLOSED(member, reason)                                                                                         \
    count = 0;                                                                                                         \
    for (uint32_t i = 0; i < core_gpu_count(core); i++)                                                                \
        count += core_gpu(core, i)->member;                                                                            \
    json_object_set_new(json, #member, json_integer(count));
#include "core/gpus/closed.def"
    return json;
}

/* What jobs hold of the node's resources, and may; null: any. */
static json_t *resources_to_json(const struct core *core)
{
    json_t *json = json_object();

#define RESOURCE(member, name, code)                                                                                   \
    json_object_set_new(                                                                                               \
        json, #member,                                                                                                 \
        json_pack("{s:I, s:o}", "held", (json_int_t)core_resources_held(core)->member, "most",                         \
                  integer_or_null(core_configuration(core)->most.member, core_configuration(core)->most.member)));
#include "core/resources.def"
    return json;
}

json_t *status_to_json(const struct daemon *daemon, int64_t now_ns)
{
    const struct core_config *config = core_configuration(daemon->core);
    const char *trouble = engine_trouble(daemon->engine);
    json_t *by_state = json_object();

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        if (daemon->views.counts[state])
            json_object_set_new(by_state, job_state_name(state), json_integer((json_int_t)daemon->views.counts[state]));
    return moment_twin(
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:s?, s:o}", "version", CARMA_VERSION,
                  "policy", config->policy, "memory_view", memory_view_name(config->memory_view), "share",
                  share_mode_name(daemon->config.share.mode), "time_scale", nodetime_scale(), "now_ns",
                  (json_int_t)nodetime_shown_ns(now_ns), "gpus", (json_int_t)core_gpu_count(daemon->core), "closed",
                  closed_to_json(daemon->core), "resources", resources_to_json(daemon->core), "counts", by_state,
                  "waiting", (json_int_t)core_waiting_count(daemon->core), "unfinished",
                  (json_int_t)core_job_count(daemon->core), "trouble", trouble, "saved",
                  whatif_saved_to_json(daemon->whatif)),
        "now_ns");
}
