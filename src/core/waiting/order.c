/* How this file works: a job that begins to wait gets a turn: its class, which is the first row of `classes` that
 * holds, and its place in it. All waiting jobs stand in core.waiting by turn. They are served line by line
 * (order_lines), and by turn within a line: those before the main queue; then, by `order`, all others, or each user's,
 * of each priority, in the order of goes_before, which is worked out anew for each moment in which somebody asks
 * (order_known). Lines keep their jobs in trees (waiting/autocluster.h), in which the head and all later candidates are
 * found (waiting/backfill.c). People are told the place of each job (order_rank): all are sorted for that, and stay so
 * for a second while nothing happens.
 *
 * To add a class: a row of classes.def and its function here. To add a ground on which a user goes before another: a
 * line in goes_before. */
#include "core/waiting/order.h"

#include <stdlib.h>

#include "core/gpus/closing.h"
#include "core/state.h"
#include "core/use.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/eligible.h"

/* It takes nothing that others wait for. */
static bool needs_none(const struct job *job)
{
    return job->wants->gpus == 0;
}

/* A cluster's scheduler holds resources for it meanwhile. */
static bool is_lease(const struct job *job)
{
    return job->wants->external;
}

/* It has had a run (thesis 6.2.3). It blocks the main queue, unless there is backfill. */
static bool is_retry(const struct job *job)
{
    return job->retry;
}

static bool is_any(const struct job *job)
{
    (void)job;
    return true;
}

static const struct {
    enum order_class class;
    bool (*holds)(const struct job *job);
    bool by_arrival; /* in the order in which they came; else each keeps its place */
} classes[] = {
#define ARRIVAL                            true
#define PLACE                              false
#define CLASS(name, holds, by, why, words) {CLASS_##name, holds, by},
#include "core/waiting/classes.def"
};

/* A held job keeps its place in the main queue. */
static size_t class_of(const struct job *job)
{
    size_t i = 0;

    while (job->state == JOB_HELD ? classes[i].by_arrival : !classes[i].holds(job))
        i++;
    return i;
}

static struct order_turn turn_of(struct core *core, const struct job *job)
{
    size_t i = class_of(job);

    if (classes[i].by_arrival)
        return (struct order_turn){.class = classes[i].class, .place = ++core->last_arrival};
    return (struct order_turn){
        .class = classes[i].class, .behind = ORDER_BEHIND(job->wants->priority), .place = job->place};
}

bool order_is_apart(const struct job *job)
{
    return classes[class_of(job)].class < CLASS_MAIN;
}

static void keep_deadline(struct core *core, const struct job *job)
{
    if (job_latest_start_ns(job) < core->next_late_ns)
        core->next_late_ns = job_latest_start_ns(job);
}

void order_forget_times(struct core *core, const struct job *job)
{
    if (job->wants->deadline_ns && job_latest_start_ns(job) == core->next_late_ns)
        core->next_late_ns = INT64_MIN;
    if (job->begin_ns && job->begin_ns == core->next_begin_ns)
        core->next_begin_ns = INT64_MIN;
}

void order_enter(struct core *core, struct job *job)
{
    job->turn = turn_of(core, job);
    if (job->state == JOB_HELD) {
        queue_insert(&core->held, job);
    } else if (job->failed_on) {
        queue_push(&core->vain, job);
    } else if (job_is_kept(job)) {
        queue_insert(&core->kept, job);
        keep_deadline(core, job);
        if (!job->depends && job->begin_ns && job->begin_ns < core->next_begin_ns)
            core->next_begin_ns = job->begin_ns;
    } else {
        queue_insert(&core->waiting, job);
        autocluster_join(core, job);
        keep_deadline(core, job);
    }
    closing_note_avoided(core, job);
}

void order_moves(struct core *core, struct job *job)
{
    if (job->autocluster)
        autocluster_leave(core, job);
    order_forget_times(core, job);
    queue_remove(job);
    order_enter(core, job);
    core->openings++; /* a decision that is being made goes on */
}

/* ---- The lines ---- */

/* What was worked out for a moment, until a record is applied. */
struct order_known {
    uint64_t applied; /* core.applied then */
    int64_t now_ns;
    bool lines_known, head_known;
    struct job *head;
    struct line **lines; /* owned array */
    uint32_t count;
    size_t capacity;
    bool ranks_known;
    uint64_t ranks_applied; /* core.applied then */
    int64_t ranks_ns;
    struct order_rank *ranks;              /* owned array, in their order */
    uint64_t rank_count, first_of_another; /* the first rank whose user is not the first one's */
    size_t rank_capacity;
};

void order_begin(struct core *core)
{
    core->order_known = xcalloc(1, sizeof *core->order_known);
}

void order_free(struct core *core)
{
    free(core->order_known->lines);
    free(core->order_known->ranks);
    free(core->order_known);
}

static struct order_known *known_at(const struct core *core, int64_t now_ns)
{
    struct order_known *known = core->order_known;

    if (known->applied != core->applied || known->now_ns != now_ns)
        known->lines_known = known->head_known = false;
    known->applied = core->applied;
    known->now_ns = now_ns;
    return known;
}

static struct order_turn first_turn(const struct line *line)
{
    struct order_turn first = {.class = CLASS_MAIN, .behind = line->behind, .place = ORDER_LAST_PLACE};

    for (uint32_t i = 0; i < line->tree_count; i++)
        for (const struct autocluster *autocluster = line->trees[i]; autocluster; autocluster = autocluster->before)
            if (turn_is_before(autocluster->turn, first))
                first = autocluster->turn;
    return first;
}

int64_t order_first_use(const struct line *line)
{
    return line->user->group ? line->user->group->use : line->use;
}

static void know_groups(const struct core *core, int64_t now_ns)
{
    for (struct user_group *group = core->groups; group; group = group->next)
        group->use = 0;
    for (const struct user *user = core->groups ? core->users : NULL; user; user = user->hh.next)
        if (user->group)
            user->group->use += use_expected(user, now_ns);
}

/* Of two lines, is the first served first? */
static bool goes_before(const struct core *core, const struct line *a, const struct line *b)
{
    int by_use, by_group;

    if (a == core->apart || b == core->apart)
        return a == core->apart;
    if (a->behind != b->behind)
        return a->behind < b->behind;
    if (!a->user->gpus != !b->user->gpus)
        return !a->user->gpus;
    by_group =
        use_compare(order_first_use(a), user_first_share(a->user), order_first_use(b), user_first_share(b->user));
    if (by_group)
        return by_group < 0;
    by_use = use_compare(a->use, a->user->share, b->use, b->user->share);
    return by_use ? by_use < 0 : turn_is_before(first_turn(a), first_turn(b));
}

/* It is listed while jobs stand in it. */
static void list_line(struct order_known *known, struct line *line)
{
    if (!line || line->listed || !line->autoclusters)
        return;
    array_reserve(known->lines, known->capacity, known->count + 1);
    known->lines[known->count++] = line;
    line->listed = true;
}

static void list_lines(const struct core *core, struct order_known *known)
{
    uint32_t before = known->count;

    known->count = 0;
    for (uint32_t i = 0; i < before; i++) {
        struct line *line = known->lines[i];
        if (line->autoclusters)
            known->lines[known->count++] = line;
        else
            line->listed = false;
    }
    for (struct line *line = core->lines; line; line = line->next)
        list_line(known, line);
}

/* They stand as they were sorted last, and few have moved since: by insertion. */
static void sort_lines(const struct core *core, struct order_known *known)
{
    for (uint32_t i = 1; i < known->count; i++) {
        struct line *line = known->lines[i];
        uint32_t at = i;
        for (; at > 0 && goes_before(core, line, known->lines[at - 1]); at--)
            known->lines[at] = known->lines[at - 1];
        known->lines[at] = line;
    }
}

/* Most stay as they are at a moment, in which one job after the other is placed. */
static void know_use(struct line *line, int64_t now_ns)
{
    const struct user *user = line->user;

    if (!user || (line->use_ns == now_ns && line->use_changes == user->use_changes))
        return;
    line->use = use_expected(user, now_ns);
    line->use_ns = now_ns;
    line->use_changes = user->use_changes;
}

struct line **order_lines(const struct core *core, int64_t now_ns, uint32_t *count)
{
    struct order_known *known = known_at(core, now_ns);

    if (!known->lines_known) {
        list_lines(core, known);
        for (uint32_t i = 0; i < known->count; i++)
            know_use(known->lines[i], now_ns);
        know_groups(core, now_ns);
        sort_lines(core, known);
        known->lines_known = true;
    }
    *count = known->count;
    return known->lines;
}

struct job *order_first(const struct core *core, const struct line *line, struct order_turn behind, int64_t since_ns)
{
    const struct search search = {.since_ns = since_ns};
    const struct autocluster *autocluster;

    if (autocluster_oldest_ns(line) > since_ns)
        return NULL;
    autocluster = autocluster_next(core, line, behind, &search);
    while (autocluster && !job_is_eligible(core, autocluster->first, NULL))
        autocluster =
            autocluster_next(core, line, autocluster->turn, &search); /* of an autocluster all are eligible, or none */
    return autocluster ? autocluster->first : NULL;
}

struct job *order_head(const struct core *core, int64_t now_ns)
{
    struct order_known *known = known_at(core, now_ns);
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    if (known->head_known)
        return known->head;
    known->head = NULL;
    for (uint32_t i = 0; i < count && !known->head; i++)
        known->head = order_first(core, lines[i], order_start, INT64_MAX);
    known->head_known = true;
    return known->head;
}

/* ---- The place of each ---- */

/* What the user holds more once it has started, of whole GPUs, as far as is known. */
static int64_t will_hold(const struct core *core, const struct job *job)
{
    const struct expectation *expected = &job->autocluster->expected;
    int64_t of_memory = expected->bytes / (core->largest_gpu_bytes / 1000 + 1);
    int64_t part = of_memory > expected->activity_permille ? of_memory : expected->activity_permille;

    return (part < 1000 ? part : 1000) * job->wants->gpus;
}

/* As goes_before, when all jobs before the two have started: their users have something running then, and more use.
 */
static int compare_ranks(const void *left, const void *right)
{
    const struct order_rank *a = left, *b = right;
    int by_use = use_compare(a->use, a->job->user->share, b->use, b->job->user->share),
        by_group =
            use_compare(a->first_use, user_first_share(a->job->user), b->first_use, user_first_share(b->job->user));

    if (turn_is_apart(a->job->turn) != turn_is_apart(b->job->turn))
        return turn_is_apart(a->job->turn) ? -1 : 1;
    if (a->job->turn.behind != b->job->turn.behind)
        return a->job->turn.behind < b->job->turn.behind ? -1 : 1;
    if (a->runs != b->runs)
        return a->runs ? 1 : -1;
    if (by_group)
        return by_group;
    if (by_use)
        return by_use;
    return turn_is_before(a->job->turn, b->job->turn) ? -1 : 1;
}

static void add_rank(const struct core *core, struct order_known *known, struct job *job)
{
    struct line *line = job->autocluster->line, *sums = line->first;
    const struct user *user = line->user;
    struct user_group *group = user ? user->group : NULL;
    int64_t own = line->use + sums->ranked, adds = user ? use_of_start(will_hold(core, job)) : 0;

    array_reserve(known->ranks, known->rank_capacity, known->rank_count + 1);
    known->ranks[known->rank_count++] = (struct order_rank){.job = job,
                                                            .own_place = sums->eligible + 1,
                                                            .runs = user && (user->gpus || sums->eligible),
                                                            .use = own,
                                                            .first_use = group ? group->use + group->ranked : own};
    sums->eligible++;
    sums->ranked += adds;
    if (group)
        group->ranked += adds;
}

static void rank_all(const struct core *core, struct order_known *known, int64_t now_ns)
{
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    for (uint32_t i = 0; i < count; i++) {
        lines[i]->first->eligible = 0;
        lines[i]->first->ranked = 0;
        if (lines[i]->user && lines[i]->user->group)
            lines[i]->user->group->ranked = 0;
    }
    known->rank_count = known->first_of_another = 0;
    for (struct job *job = core->waiting.head; job; job = job->next) {
        job->rank = 0;
        if (job_is_eligible(core, job, NULL))
            add_rank(core, known, job);
    }
    if (known->rank_count)
        qsort(known->ranks, known->rank_count, sizeof *known->ranks, compare_ranks);
    for (uint64_t i = 0; i < known->rank_count; i++) {
        struct job *job = known->ranks[i].job;
        job->rank = (uint32_t)(i + 1);
        if (!known->first_of_another && job->user != known->ranks[0].job->user)
            known->first_of_another = job->rank;
    }
    known->ranks_known = true;
    known->ranks_applied = core->applied;
    known->ranks_ns = now_ns;
}

/* Only uses fade meanwhile: for people that is as good, and each of them may ask in a loop. */
#define RANKS_STAY_NS NS_PER_SEC

static bool ranks_stay(const struct core *core, int64_t now_ns)
{
    const struct order_known *known = core->order_known;

    return known->ranks_known && known->ranks_applied == core->applied && now_ns >= known->ranks_ns &&
           now_ns - known->ranks_ns < RANKS_STAY_NS;
}

const struct order_rank *order_rank(const struct core *core, const struct job *job, int64_t now_ns)
{
    struct order_known *known = core->order_known;

    if (!job->autocluster)
        return NULL;
    if (!ranks_stay(core, now_ns))
        rank_all(core, known_at(core, now_ns), now_ns);
    return job->rank ? &known->ranks[job->rank - 1] : NULL;
}

uint64_t order_ranked(const struct core *core)
{
    return core->order_known->rank_count;
}

const struct order_rank *order_rank_before(const struct core *core, const struct job *job)
{
    const struct order_known *known = core->order_known;
    bool of_another = job->autocluster->line->user && known->ranks[0].job->user == job->user &&
                      known->first_of_another && known->first_of_another < job->rank;

    return &known->ranks[of_another ? known->first_of_another - 1 : 0];
}
