#include "daemon/stats.h"

#include "base/nodetime.h"
#include "daemon/node.h"
#include "daemon/totals.h"

static json_t *states_to_json(const struct total *total)
{
    json_t *states = json_object();

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        if (job_state_ended(state))
            json_object_set_new(states, job_state_name(state), json_integer(total->sums.ended[state]));
    return states;
}

static void add_user(const struct total *total, void *user_data)
{
    const struct history_sums *sums = &total->sums;

    json_array_append_new(user_data,
                          json_pack("{s:s?, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "user", total->user,
                                    "uid", (json_int_t)total->uid, "jobs", (json_int_t)total->submitted, "ended",
                                    (json_int_t)total_ended(total), "states", states_to_json(total), "gpu_ns",
                                    (json_int_t)sums->gpu_ns, "memory_mib_ms", (json_int_t)sums->memory_mib_ms,
                                    "modelled_energy_mj", (json_int_t)sums->energy_mj, "launched",
                                    (json_int_t)sums->launched, "wait_ns", (json_int_t)sums->wait_ns, "crashes",
                                    (json_int_t)(sums->oom_crashes + sums->handle_crashes), "recoveries",
                                    (json_int_t)sums->recoveries));
}

json_t *stats_by_user(const struct daemon *daemon)
{
    struct node_energy nobody = node_energy_of_nobody(daemon->node);
    int64_t now_ns = nodetime_now_ns();
    json_t *users = json_array();

    totals_read(daemon, now_ns, add_user, users);
    return json_pack("{s:I, s:o, s:I, s:I}", "now_ns", (json_int_t)now_ns, "users", users, "modelled_idle_mj",
                     (json_int_t)nobody.idle_mj, "modelled_foreign_mj", (json_int_t)nobody.foreign_mj);
}
