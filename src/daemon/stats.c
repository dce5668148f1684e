#include "daemon/stats.h"

#include <string.h>

#include "base/nodetime.h"
#include "daemon/node.h"

struct row {
    uint32_t uid;
    const char *user;
    int64_t jobs, ended;
    int64_t gpu_ns;
    int64_t energy_mj;
    UT_hash_handle hh;
};

static struct row *row_of(struct row **rows, const struct job_view *view)
{
    struct row *row;

    HASH_FIND(hh, *rows, &view->wants.uid, sizeof row->uid, row);
    if (row)
        return row;
    row = xcalloc(1, sizeof *row);
    row->uid = view->wants.uid;
    row->user = view->user;
    HASH_ADD(hh, *rows, uid, sizeof row->uid, row);
    return row;
}

json_t *stats_by_user(const struct daemon *daemon)
{
    struct node_energy nobody = node_energy_of_nobody(daemon->node);
    int64_t now_ns = nodetime_now_ns();
    struct row *rows = NULL, *row, *next;
    json_t *users = json_array();

    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next) {
        if (view->state == JOB_STATE_COUNT)
            continue;
        row = row_of(&rows, view);
        row->jobs++;
        row->ended += job_state_ended(view->state);
        row->gpu_ns += job_view_gpu_ns(view, now_ns);
        row->energy_mj += view->energy_mj;
    }
    HASH_ITER(hh, rows, row, next)
    {
        json_array_append_new(users, json_pack("{s:s?, s:I, s:I, s:I, s:I, s:I}", "user", row->user, "uid",
                                               (json_int_t)row->uid, "jobs", (json_int_t)row->jobs, "ended",
                                               (json_int_t)row->ended, "gpu_ns", (json_int_t)row->gpu_ns,
                                               "modelled_energy_mj", (json_int_t)row->energy_mj));
        HASH_DEL(rows, row);
        free(row);
    }
    return json_pack("{s:I, s:o, s:I, s:I}", "now_ns", (json_int_t)now_ns, "users", users, "modelled_idle_mj",
                     (json_int_t)nobody.idle_mj, "modelled_foreign_mj", (json_int_t)nobody.foreign_mj);
}
