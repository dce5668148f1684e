#include "daemon/account/totals.h"

#include <string.h>

#include "api/spec.h"
#include "base/memory.h"
#include "core/verdict.h"
#include "store/store.h"

/* Every number of `struct total` is one of a run of int64_t. */
#define FIRST_NUMBER offsetof(struct total, submitted)
#define NUMBERS      ((sizeof(struct total) - FIRST_NUMBER) / sizeof(int64_t))

struct user_totals {
    uint32_t uid;
    char *user;                /* owned */
    struct history_sums ended; /* of jobs that have ended */
    struct total shown;        /* the highest value shown: an end may turn out to lie before it */
    struct total now;          /* while totals_read goes on */
    UT_hash_handle hh;
};

struct totals {
    struct user_totals *users; /* uthash by uid */
};

struct totals *totals_new(void)
{
    return xcalloc(1, sizeof(struct totals));
}

void totals_free(struct totals *totals)
{
    struct user_totals *user, *next;

    if (!totals)
        return;
    HASH_ITER (hh, totals->users, user, next) {
        HASH_DEL(totals->users, user);
        free(user->user);
        free(user);
    }
    free(totals);
}

static int by_uid(const struct user_totals *a, const struct user_totals *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

static struct user_totals *user_of(struct totals *totals, uint32_t uid, const char *name)
{
    struct user_totals *user;

    HASH_FIND(hh, totals->users, &uid, sizeof uid, user);
    if (!user) {
        user = xcalloc(1, sizeof *user);
        user->uid = uid;
        HASH_ADD(hh, totals->users, uid, sizeof user->uid, user);
        HASH_SORT(totals->users, by_uid);
    }
    if (name && (!user->user || strcmp(user->user, name) != 0)) {
        free(user->user);
        user->user = xstrdup(name);
    }
    return user;
}

static int take_sums(uint32_t uid, const char *name, const struct history_sums *sums, void *user_data)
{
    user_of(user_data, uid, name)->ended = *sums;
    return 0;
}

/* ---- A job's numbers ---- */

static int64_t since(int64_t from_ns, int64_t until_ns)
{
    int64_t ns;

    return __builtin_sub_overflow(until_ns, from_ns, &ns) || ns < 0 ? 0 : ns;
}

struct store_history history_row_of(const struct job_view *view)
{
    return (struct store_history){
        .job = view->id,
        .uid = view->wants->uid,
        .state = job_state_name(view->state),
        .cause = view->run->exited
                     ? exit_cause_name(verdict_of(&view->run->exit).caught ? EXIT_GPU_OOM : view->run->exit.cause)
                     : NULL,
        .submitted_ns = view->submitted_ns,
        .first_started_ns = view->run->first_started_ns,
        .started_ns = view->run->started_ns,
        .ended_ns = view->ended_ns,
        .wait_ns = view->run->first_started_ns < 0 ? -1 : since(view->submitted_ns, view->run->first_started_ns),
        .gpus = view->wants->gpus,
        .gpu_ns = view->run->ran_gpu_ns,
        .memory_mib_ms = view->run->held.mib_ms,
        .memory_measured_mib_ms = view->run->held.measured_mib_ms,
        .energy_mj = view->run->energy_mj,
        .attempts = view->attempts,
        .oom_crashes =
            view->run->crashes > view->run->handle_crashes ? view->run->crashes - view->run->handle_crashes : 0,
        .handle_crashes = view->run->handle_crashes,
        .retries = view->run->retries,
        .reserved_bytes = view->first_reserved_bytes,
        .reservation_source = memory_source_name(view->first_reservation_source),
        .estimate_bytes = view->common->estimate.bytes,
        .estimator = view->common->estimate.source,
        .peak_bytes = view->run->peak_bytes,
        .user = job_view_user(view) ? job_view_user(view) : "",
        .name = view->name ? common_text_first(view->name) : "",
        .workload = job_view_workload(view),
        .last_reserved_bytes = view->reserved_bytes,
        .last_reservation_source = memory_source_name(view->reservation_source),
        .model = view->common->estimate.model ? view->common->estimate.model : "",
        .estimated_permille = view->common->estimate.uncorrected_permille,
        .activity_permille = view->activity_permille,
        .moves = view->run->moves,
        .account = view->common->spec->account,
        .tags = view->common->spec->tags,
    };
}

void totals_end(struct totals *totals, const struct job_view *view)
{
    struct store_history row = history_row_of(view);

    history_sums_add(&user_of(totals, row.uid, row.user)->ended, &row);
}

int totals_load(struct daemon *daemon, struct error *err)
{
    int rc = store_load_sums(daemon->store, take_sums, daemon->totals, err);

    for (const struct job_view *view = daemon->views.jobs; view && !rc; view = view->hh.next)
        if (job_view_is_changed(view) && view->state < JOB_STATE_COUNT && job_state_ended(view->state))
            totals_end(daemon->totals, view);
    return rc;
}

void totals_add_energy(struct totals *totals, uint32_t uid, int64_t mj)
{
    history_add(&user_of(totals, uid, NULL)->ended.energy_mj, mj);
}

/* ---- Now ---- */

int64_t total_ended(const struct total *total)
{
    int64_t ended = 0;

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        history_add(&ended, total->sums.ended[state]);
    return ended;
}

static void add_unfinished(struct totals *totals, const struct job_view *view, int64_t now_ns)
{
    struct store_history row = history_row_of(view);
    struct total *now = &user_of(totals, row.uid, row.user)->now;

    row.gpu_ns = job_view_gpu_ns(view, now_ns);
    row.memory_mib_ms =
        memory_usage_mib_ms(&view->run->held, view->run->seen_ns < now_ns ? view->run->seen_ns : now_ns);
    row.state = "";
    history_sums_add(&now->sums, &row);
    now->submitted++;
}

static void keep_highest(struct total *shown, const struct total *now)
{
    int64_t *highest = (int64_t *)((char *)shown + FIRST_NUMBER);
    const int64_t *numbers = (const int64_t *)((const char *)now + FIRST_NUMBER);

    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i] > highest[i])
            highest[i] = numbers[i];
}

void totals_read(const struct daemon *daemon, int64_t now_ns, void (*take)(const struct total *total, void *user_data),
                 void *user_data)
{
    struct totals *totals = daemon->totals;

    for (struct user_totals *user = totals->users; user; user = user->hh.next) {
        user->now = (struct total){.sums = user->ended};
        user->now.submitted = total_ended(&user->now);
    }
    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next)
        if (job_view_is_shown(view) && !job_state_ended(view->state))
            add_unfinished(totals, view, now_ns);
    for (struct user_totals *user = totals->users; user; user = user->hh.next) {
        keep_highest(&user->shown, &user->now);
        user->shown.uid = user->uid;
        user->shown.user = user->user;
        take(&user->shown, user_data);
    }
}
