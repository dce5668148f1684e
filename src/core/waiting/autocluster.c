/* How this file works: a job that begins to wait joins its like (autocluster_join), whose first stands in the tree of
 * their line and width. Each node keeps what the first needs (set_needs, by need.c) and the least of its branch, so
 * autocluster_next skips branches that fit in no vacancy. What changes needs is noted elsewhere and taken at the end of
 * a record (autocluster_take_news), or changes all (autocluster_all_changed). A rule that reads more of a job than that
 * must keep unlike jobs apart: find_or_add. */
#include "core/waiting/autocluster.h"

#include <string.h>
#include <utlist.h>

#include "core/learn/pairs.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/state.h"
#include "core/waiting/by_turn.h"

/* ---- The tree: a treap by turn ---- */

static void lower(struct least *least, const struct least *other)
{
    vacancy_narrow(&least->vacancy, &other->vacancy);
    if (other->since_ns < least->since_ns)
        least->since_ns = other->since_ns;
    if (other->units < least->units)
        least->units = other->units;
    least->anywhere |= other->anywhere;
}

static void gather(struct autocluster *top)
{
    const struct needs *needs = &top->needs;

    top->least = (struct least){.vacancy = vacancy_of_needs(needs->units, needs->band),
                                .units = needs->units,
                                .anywhere = needs->anywhere,
                                .since_ns = needs->since_ns};
    if (top->before)
        lower(&top->least, &top->before->least);
    if (top->behind)
        lower(&top->least, &top->behind->least);
}

/* Of two trees, all of the first before all of the second. */
static struct autocluster *merged(struct autocluster *first, struct autocluster *second)
{
    if (!first || !second)
        return first ? first : second;
    if (first->priority > second->priority) {
        first->behind = merged(first->behind, second);
        gather(first);
        return first;
    }
    second->before = merged(first, second->before);
    gather(second);
    return second;
}

/* Parts a tree in the jobs before the turn, and the rest. */
static void part(struct autocluster *tree, struct order_turn turn, struct autocluster **before,
                 struct autocluster **rest)
{
    if (!tree) {
        *before = *rest = NULL;
    } else if (turn_is_before(tree->turn, turn)) {
        *before = tree;
        part(tree->behind, turn, &tree->behind, rest);
        gather(tree);
    } else {
        *rest = tree;
        part(tree->before, turn, before, &tree->before);
        gather(tree);
    }
}

static struct autocluster *with(struct autocluster *tree, struct autocluster *autocluster)
{
    struct autocluster *before, *rest;

    autocluster->before = autocluster->behind = NULL;
    gather(autocluster);
    part(tree, autocluster->turn, &before, &rest);
    return merged(merged(before, autocluster), rest);
}

static struct autocluster *without(struct autocluster *tree, const struct autocluster *autocluster)
{
    if (tree == autocluster)
        return merged(tree->before, tree->behind);
    if (turn_is_before(autocluster->turn, tree->turn))
        tree->before = without(tree->before, autocluster);
    else
        tree->behind = without(tree->behind, autocluster);
    gather(tree);
    return tree;
}

/* The needs of one have changed. */
static void gather_towards(struct autocluster *tree, const struct autocluster *autocluster)
{
    if (tree != autocluster)
        gather_towards(turn_is_before(autocluster->turn, tree->turn) ? tree->before : tree->behind, autocluster);
    gather(tree);
}

static bool stops_in(const struct least *least, const struct search *search)
{
    return (least->anywhere && search->anywhere) || least->since_ns <= search->since_ns ||
           vacancy_holds(&search->vacancy, &least->vacancy);
}

static bool stops_at(const struct needs *needs, const struct search *search)
{
    return (needs->anywhere && search->anywhere) || needs->since_ns <= search->since_ns ||
           needs->units < search->vacancy.units[needs->band];
}

static struct autocluster *next_of(struct autocluster *tree, struct order_turn turn, const struct search *search)
{
    struct autocluster *found = NULL;

    if (!tree || !stops_in(&tree->least, search))
        return NULL;
    if (turn_is_before(turn, tree->turn)) {
        found = next_of(tree->before, turn, search);
        if (!found && stops_at(&tree->needs, search))
            found = tree;
    }
    return found ? found : next_of(tree->behind, turn, search);
}

struct autocluster *autocluster_next(const struct core *core, const struct line *line, struct order_turn turn,
                                     const struct search *search)
{
    struct autocluster *first = NULL;

    for (uint32_t i = 0; i < line->tree_count; i++) {
        struct search of_width;
        struct autocluster *next;
        if (!line->trees[i] || !stops_in(&line->trees[i]->least, search))
            continue;
        of_width = *search;
        vacancy_narrow(&of_width.vacancy, &core->widths[i].most);
        next = next_of(line->trees[i], turn, &of_width);
        if (next && (!first || turn_is_before(next->turn, first->turn)))
            first = next;
    }
    return first;
}

int16_t autocluster_least_units(const struct core *core, const struct line *line, bool several)
{
    int16_t units = VACANCY_NEED_NONE;

    for (uint32_t i = 0; i < line->tree_count; i++)
        if (line->trees[i] && line->trees[i]->least.units < units && (!several || core->widths[i].gpus > 1))
            units = line->trees[i]->least.units;
    return units;
}

int64_t autocluster_oldest_ns(const struct line *line)
{
    int64_t oldest_ns = INT64_MAX;

    for (uint32_t i = 0; i < line->tree_count; i++)
        if (line->trees[i] && line->trees[i]->least.since_ns < oldest_ns)
            oldest_ns = line->trees[i]->least.since_ns;
    return oldest_ns;
}

/* ---- Lines ---- */

static struct line *line_new(struct core *core, const struct user *user, uint32_t behind)
{
    struct line *line = xcalloc(1, sizeof *line);

    line->user = user;
    line->behind = behind;
    LL_PREPEND(core->lines, line);
    return line;
}

static struct line *line_of(struct core *core, const struct job *job)
{
    struct line **line = turn_is_apart(job->turn)           ? &core->apart
                         : core->config.order == ORDER_FAIR ? &job->user->line
                                                            : &core->common;
    const struct user *user = line == &job->user->line ? job->user : NULL;
    struct line *first = *line;

    while (*line && (*line)->behind != job->turn.behind)
        line = &(*line)->other;
    if (!*line) {
        *line = line_new(core, user, job->turn.behind);
        (*line)->first = first ? first : *line;
    }
    return *line;
}

static uint32_t width_of(struct core *core, uint32_t gpus)
{
    for (uint32_t i = 0; i < core->width_count; i++)
        if (core->widths[i].gpus == gpus)
            return i;
    array_reserve(core->widths, core->width_capacity, core->width_count + 1);
    core->widths[core->width_count] = (struct autoclusters_of_width){.gpus = gpus, .most = vacancy_whole};
    return core->width_count++;
}

static struct autocluster **tree_of(struct core *core, const struct autocluster *autocluster)
{
    uint32_t width = width_of(core, autocluster->key.wants->gpus);
    struct line *line = autocluster->line;

    if (width >= line->tree_count) {
        line->trees = xrealloc(line->trees, width + 1, sizeof *line->trees);
        while (line->tree_count <= width)
            line->trees[line->tree_count++] = NULL;
    }
    return &line->trees[width];
}

void autocluster_free(struct core *core)
{
    struct autocluster *autocluster, *another;
    struct line *line, *next;

    HASH_ITER (hh, core->autoclusters, autocluster, another) {
        HASH_DEL(core->autoclusters, autocluster);
        free(autocluster);
    }
    LL_FOREACH_SAFE(core->lines, line, next)
    {
        free(line->trees);
        free(line);
    }
}

/* ---- The jobs in it ---- */

static struct expectation expectation_of(const struct core *core, const struct job *job)
{
    struct expectation expected = {.bytes = job_wants_idle(core, job) ? INT64_MAX : job_needed_bytes(core, job),
                                   .activity_permille = pairs_activity(job),
                                   .activity_is_known = learned_activity_is_known(job)};

    expected.idle_bytes = job_idle_bytes(core, job, &expected.source);
    return expected;
}

static void set_needs(const struct core *core, struct autocluster *autocluster)
{
    const struct job *job = autocluster->first;

    autocluster->expected = expectation_of(core, job);
    autocluster->needs = (struct needs){.units = vacancy_need(autocluster->expected.bytes),
                                        .band = (uint8_t)slowdown_band(autocluster->expected.activity_permille),
                                        .since_ns = job_waits_since_ns(job),
                                        .anywhere = autocluster->examined == 0 || job->id == core->reserved_job};
}

static void refresh(struct core *core, struct autocluster *autocluster)
{
    set_needs(core, autocluster);
    gather_towards(*tree_of(core, autocluster), autocluster);
}

static void enter_tree(struct core *core, struct autocluster *autocluster)
{
    struct autocluster **tree;

    autocluster->turn = autocluster->first->turn;
    autocluster->line = line_of(core, autocluster->first);
    autocluster->line->autoclusters++;
    set_needs(core, autocluster);
    tree = tree_of(core, autocluster);
    *tree = with(*tree, autocluster);
}

static void leave_tree(struct core *core, struct autocluster *autocluster)
{
    struct autocluster **tree = tree_of(core, autocluster);

    *tree = without(*tree, autocluster);
    autocluster->line->autoclusters--;
}

static struct autocluster *find_or_add(struct core *core, const struct job *job)
{
    struct autocluster *autocluster;
    struct autocluster_key key;

    memset(&key, 0, sizeof key); /* hashed with the bytes between its members */
    key.wants = job->wants;
    key.profile = job->profile;
    key.job = job->placed_ns ? job->id : 0;
    HASH_FIND(hh, core->autoclusters, &key, sizeof key, autocluster);
    if (autocluster)
        return autocluster;
    autocluster = xcalloc(1, sizeof *autocluster);
    memcpy(&autocluster->key, &key, sizeof key);
    autocluster->priority = by_turn_scatter(job->id);
    HASH_ADD(hh, core->autoclusters, key, sizeof key, autocluster);
    if (job->profile) {
        autocluster->profile_next = job->profile->autoclusters;
        if (autocluster->profile_next)
            autocluster->profile_next->profile_previous = autocluster;
        job->profile->autoclusters = autocluster;
    }
    return autocluster;
}

static void drop(struct core *core, struct autocluster *autocluster, struct profile *profile)
{
    if (autocluster->profile_next)
        autocluster->profile_next->profile_previous = autocluster->profile_previous;
    if (autocluster->profile_previous)
        autocluster->profile_previous->profile_next = autocluster->profile_next;
    else if (profile)
        profile->autoclusters = autocluster->profile_next;
    HASH_DEL(core->autoclusters, autocluster);
    free(autocluster);
}

void autocluster_join(struct core *core, struct job *job)
{
    struct autocluster *autocluster = find_or_add(core, job);
    bool is_first = !autocluster->first || turn_is_before(job->turn, autocluster->first->turn);

    if (is_first && autocluster->first)
        leave_tree(core, autocluster);
    job->autocluster = autocluster;
    by_turn_add(&autocluster->tree, job, BY_TURN_ALIKE);
    if (is_first) {
        autocluster->first = job;
        enter_tree(core, autocluster);
    }
}

void autocluster_leave(struct core *core, struct job *job)
{
    struct autocluster *autocluster = job->autocluster;
    bool was_first = autocluster->first == job;

    if (was_first) {
        leave_tree(core, autocluster);
        autocluster->first = autocluster_behind(job);
    }
    by_turn_remove(&autocluster->tree, job, BY_TURN_ALIKE);
    job->autocluster = NULL;
    if (!autocluster->first)
        drop(core, autocluster, job->profile);
    else if (was_first)
        enter_tree(core, autocluster);
}

struct job *autocluster_behind(const struct job *job)
{
    return job->autocluster ? by_turn_next(job->autocluster->tree, job->turn, BY_TURN_ALIKE) : NULL;
}

void autocluster_set_examined(struct core *core, struct autocluster *autocluster, uint64_t examined)
{
    autocluster->examined = examined;
    if (autocluster->needs.anywhere != (examined == 0 || autocluster->first->id == core->reserved_job) ||
        autocluster->needs.since_ns != job_waits_since_ns(autocluster->first))
        refresh(core, autocluster);
}

static bool is_same(const struct expectation *expected, const struct expectation *before)
{
    return expected->bytes == before->bytes && expected->idle_bytes == before->idle_bytes &&
           expected->activity_permille == before->activity_permille &&
           expected->activity_is_known == before->activity_is_known && expected->source == before->source;
}

static bool may_fit_now(const struct expectation *expected, const struct expectation *before)
{
    return expected->bytes < before->bytes || expected->idle_bytes < before->idle_bytes ||
           expected->activity_permille != before->activity_permille ||
           expected->activity_is_known != before->activity_is_known || expected->source != before->source;
}

static void workload_changed(struct core *core, struct profile *profile)
{
    for (struct autocluster *autocluster = profile->autoclusters; autocluster;
         autocluster = autocluster->profile_next) {
        struct expectation before = autocluster->expected, now = expectation_of(core, autocluster->first);
        if (is_same(&now, &before))
            continue;
        if (may_fit_now(&now, &before))
            autocluster->examined = 0;
        refresh(core, autocluster);
    }
}

static void pairs_changed(struct core *core, struct profile *profile)
{
    for (struct autocluster *autocluster = profile->autoclusters; autocluster;
         autocluster = autocluster->profile_next) {
        autocluster->examined = 0;
        refresh(core, autocluster);
    }
}

static void ask_branch_again(const struct core *core, struct autocluster *top, bool guesses_only)
{
    if (!top)
        return;
    if (!guesses_only || need_is_guessed(core, top->first)) {
        top->examined = 0;
        set_needs(core, top);
    }
    ask_branch_again(core, top->before, guesses_only);
    ask_branch_again(core, top->behind, guesses_only);
    gather(top);
}

static void ask_line_again(const struct core *core, const struct line *line, bool guesses_only)
{
    for (uint32_t i = 0; i < line->tree_count; i++)
        ask_branch_again(core, line->trees[i], guesses_only);
}

void autocluster_all_changed(struct core *core)
{
    for (const struct line *line = core->lines; line; line = line->next)
        ask_line_again(core, line, false);
}

void autocluster_leave_lines(struct core *core)
{
    for (struct job *job = core->waiting.head; job; job = job->next)
        autocluster_leave(core, job);
}

void autocluster_join_lines(struct core *core)
{
    for (struct job *job = core->waiting.head; job; job = job->next)
        autocluster_join(core, job);
}

void autocluster_take_news(struct core *core)
{
    struct profile *profile;

    while ((profile = core->news)) {
        core->news = profile->next_news;
        if (profile->news == NEWS_COMPANY)
            pairs_changed(core, profile);
        else
            workload_changed(core, profile);
        profile->news = 0;
    }
    for (const struct line *line = core->lines; line && core->guesses_changed; line = line->next)
        ask_line_again(core, line, true);
    core->guesses_changed = false;
}
