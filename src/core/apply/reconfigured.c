/* How this file works: all values are looked at before the first takes effect. What the old ones decided goes, and the
 * caches that depend on them: lines, sharing modes, figures of users, the needs of those that wait. To add a setting of
 * the core: its range here. */
#include "core/apply/reconfigured.h"

#include <errno.h>
#include <string.h>

#include "base/share.h"
#include "core/apply/reserved.h"
#include "core/share/sharing.h"
#include "core/share/slowdown.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"

static bool is_permille(int32_t value)
{
    return value >= 0 && value <= 1000;
}

static bool resources_are_sane(const struct core_resources *most)
{
#define RESOURCE(member, name, code)                                                                                   \
    if (!is_part_of_resource(most->member))                                                                            \
        return false;
#include "core/resources.def"
    return true;
}

int apply_reconfigured(struct core *core, const struct core_config *config, struct error *err)
{
    const struct policy *policy;
    bool others; /* lines */

    if (!memchr(config->policy, '\0', sizeof config->policy) || !(policy = policy_find(config->policy)))
        return error_set(err, EINVAL, "there is no policy '%.*s'", CORE_POLICY_NAME_SIZE, config->policy);
    if (config->memory_view > MEMORY_RESERVE || config->floor_bytes < 0 || config->margin_bytes < 0 ||
        !is_permille(config->smact_cap_permille) || !is_permille(config->smocc_cap_permille) ||
        !is_permille(config->dram_cap_permille) || config->statistic > STATISTIC_RISK ||
        !is_interval(config->window_ns) || !is_interval(config->decide_period_ns) ||
        !is_interval(config->collocate_extra_ns) || !is_interval(config->settle_ns) ||
        config->oom_retry > OOM_RETRY_INFORMED || config->memory_fence > 1 || config->max_jobs_per_gpu == 0 ||
        config->per_user.max_memory_bytes < 0 || !resources_are_sane(&config->most) ||
        config->mps_domain >= MPS_DOMAIN_COUNT || config->mps_threads_percent > 100 || config->mps_max_clients == 0 ||
        config->gate > GATE_MEMORY || config->order > ORDER_FAIR || !is_interval(config->starvation_timeout_ns) ||
        !is_slowdown(config->max_slowdown_permille) || !is_interval(config->shrink_after_ns) ||
        !is_permille(config->prior_quantile_permille))
        return error_set(err, EINVAL, "a value of the configuration is out of range");
    others = config->order != core->config.order;
    if (core->reserved_job && (others || !config->backfill)) /* the rule by which it would end is another */
        end_reservation(core, core_job_by_id(core, core->reserved_job), 0);
    if (others)
        autocluster_leave_lines(core);
    core->config = *config;
    core->moves_due = true; /* the bound may be another */
    if (others)
        autocluster_join_lines(core);
    core->policy = policy;
    sharing_reconfigured(core);
    prior_refresh(core);
    autocluster_all_changed(core);
    gpus_open(core);
    return 0;
}
