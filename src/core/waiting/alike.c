/* How this file works: a job that begins to wait joins its like (alike_join), whose first stands in the tree of their
 * line and width. Each node keeps what the first needs (set_needs, by need.c) and the least of its branch, so
 * alike_next skips branches that fit in no room. What changes needs is noted elsewhere and taken at the end of a record
 * (alike_take_news), or changes all (alike_all_changed). A rule that reads more of a job than that must keep unlike
 * jobs apart: find_or_add. */
#include "core/waiting/alike.h"

#include <string.h>
#include <utlist.h>

#include "core/learn/company.h"
#include "core/learn/learn.h"
#include "core/need/need.h"
#include "core/state.h"
#include "core/waiting/by_turn.h"

/* ---- The tree: a treap by turn ---- */

static void lower(struct least *least, const struct least *other)
{
    room_narrow(&least->room, &other->room);
    if (other->since_ns < least->since_ns)
        least->since_ns = other->since_ns;
    if (other->units < least->units)
        least->units = other->units;
    least->anywhere |= other->anywhere;
}

static void gather(struct alike *top)
{
    const struct needs *needs = &top->needs;

    top->least = (struct least){.room = room_of_needs(needs->units, needs->band),
                                .units = needs->units,
                                .anywhere = needs->anywhere,
                                .since_ns = needs->since_ns};
    if (top->before)
        lower(&top->least, &top->before->least);
    if (top->behind)
        lower(&top->least, &top->behind->least);
}

/* Of two trees, all of the first before all of the second. */
static struct alike *merged(struct alike *first, struct alike *second)
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
static void part(struct alike *tree, struct order_turn turn, struct alike **before, struct alike **rest)
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

static struct alike *with(struct alike *tree, struct alike *alike)
{
    struct alike *before, *rest;

    alike->before = alike->behind = NULL;
    gather(alike);
    part(tree, alike->turn, &before, &rest);
    return merged(merged(before, alike), rest);
}

static struct alike *without(struct alike *tree, const struct alike *alike)
{
    if (tree == alike)
        return merged(tree->before, tree->behind);
    if (turn_is_before(alike->turn, tree->turn))
        tree->before = without(tree->before, alike);
    else
        tree->behind = without(tree->behind, alike);
    gather(tree);
    return tree;
}

/* The needs of one have changed. */
static void gather_towards(struct alike *tree, const struct alike *alike)
{
    if (tree != alike)
        gather_towards(turn_is_before(alike->turn, tree->turn) ? tree->before : tree->behind, alike);
    gather(tree);
}

static bool stops_in(const struct least *least, const struct search *search)
{
    return (least->anywhere && search->anywhere) || least->since_ns <= search->since_ns ||
           room_holds(&search->room, &least->room);
}

static bool stops_at(const struct needs *needs, const struct search *search)
{
    return (needs->anywhere && search->anywhere) || needs->since_ns <= search->since_ns ||
           needs->units < search->room.units[needs->band];
}

static struct alike *next_of(struct alike *tree, struct order_turn turn, const struct search *search)
{
    struct alike *found = NULL;

    if (!tree || !stops_in(&tree->least, search))
        return NULL;
    if (turn_is_before(turn, tree->turn)) {
        found = next_of(tree->before, turn, search);
        if (!found && stops_at(&tree->needs, search))
            found = tree;
    }
    return found ? found : next_of(tree->behind, turn, search);
}

struct alike *alike_next(const struct core *core, const struct line *line, struct order_turn turn,
                         const struct search *search)
{
    struct alike *first = NULL;

    for (uint32_t i = 0; i < line->tree_count; i++) {
        struct search of_width;
        struct alike *next;
        if (!line->trees[i] || !stops_in(&line->trees[i]->least, search))
            continue;
        of_width = *search;
        room_narrow(&of_width.room, &core->widths[i].most);
        next = next_of(line->trees[i], turn, &of_width);
        if (next && (!first || turn_is_before(next->turn, first->turn)))
            first = next;
    }
    return first;
}

int16_t alike_least_units(const struct core *core, const struct line *line, bool several)
{
    int16_t units = ROOM_NEED_NONE;

    for (uint32_t i = 0; i < line->tree_count; i++)
        if (line->trees[i] && line->trees[i]->least.units < units && (!several || core->widths[i].gpus > 1))
            units = line->trees[i]->least.units;
    return units;
}

int64_t alike_oldest_ns(const struct line *line)
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
    core->widths[core->width_count] = (struct alikes_of_width){.gpus = gpus, .most = room_whole};
    return core->width_count++;
}

static struct alike **tree_of(struct core *core, const struct alike *alike)
{
    uint32_t width = width_of(core, alike->key.wants->gpus);
    struct line *line = alike->line;

    if (width >= line->tree_count) {
        line->trees = xrealloc(line->trees, width + 1, sizeof *line->trees);
        while (line->tree_count <= width)
            line->trees[line->tree_count++] = NULL;
    }
    return &line->trees[width];
}

void alike_free(struct core *core)
{
    struct alike *alike, *another;
    struct line *line, *next;

    HASH_ITER (hh, core->alikes, alike, another) {
        HASH_DEL(core->alikes, alike);
        free(alike);
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
                                   .activity_permille = company_activity(job),
                                   .activity_is_known = learned_activity_is_known(job)};

    expected.idle_bytes = job_idle_bytes(core, job, &expected.source);
    return expected;
}

static void set_needs(const struct core *core, struct alike *alike)
{
    const struct job *job = alike->first;

    alike->expected = expectation_of(core, job);
    alike->needs = (struct needs){.units = room_need(alike->expected.bytes),
                                  .band = (uint8_t)slowdown_band(alike->expected.activity_permille),
                                  .since_ns = job_waits_since_ns(job),
                                  .anywhere = alike->examined == 0 || job->id == core->reserved_job};
}

static void refresh(struct core *core, struct alike *alike)
{
    set_needs(core, alike);
    gather_towards(*tree_of(core, alike), alike);
}

static void enter_tree(struct core *core, struct alike *alike)
{
    struct alike **tree;

    alike->turn = alike->first->turn;
    alike->line = line_of(core, alike->first);
    alike->line->alikes++;
    set_needs(core, alike);
    tree = tree_of(core, alike);
    *tree = with(*tree, alike);
}

static void leave_tree(struct core *core, struct alike *alike)
{
    struct alike **tree = tree_of(core, alike);

    *tree = without(*tree, alike);
    alike->line->alikes--;
}

static struct alike *find_or_add(struct core *core, const struct job *job)
{
    struct alike *alike;
    struct alike_key key;

    memset(&key, 0, sizeof key); /* hashed with the bytes between its members */
    key.wants = job->wants;
    key.profile = job->profile;
    key.job = job->placed_ns ? job->id : 0;
    HASH_FIND(hh, core->alikes, &key, sizeof key, alike);
    if (alike)
        return alike;
    alike = xcalloc(1, sizeof *alike);
    memcpy(&alike->key, &key, sizeof key);
    alike->priority = by_turn_scatter(job->id);
    HASH_ADD(hh, core->alikes, key, sizeof key, alike);
    if (job->profile) {
        alike->profile_next = job->profile->alikes;
        if (alike->profile_next)
            alike->profile_next->profile_previous = alike;
        job->profile->alikes = alike;
    }
    return alike;
}

static void drop(struct core *core, struct alike *alike, struct profile *profile)
{
    if (alike->profile_next)
        alike->profile_next->profile_previous = alike->profile_previous;
    if (alike->profile_previous)
        alike->profile_previous->profile_next = alike->profile_next;
    else if (profile)
        profile->alikes = alike->profile_next;
    HASH_DEL(core->alikes, alike);
    free(alike);
}

void alike_join(struct core *core, struct job *job)
{
    struct alike *alike = find_or_add(core, job);
    bool is_first = !alike->first || turn_is_before(job->turn, alike->first->turn);

    if (is_first && alike->first)
        leave_tree(core, alike);
    job->alike = alike;
    by_turn_add(&alike->tree, job, BY_TURN_ALIKE);
    if (is_first) {
        alike->first = job;
        enter_tree(core, alike);
    }
}

void alike_leave(struct core *core, struct job *job)
{
    struct alike *alike = job->alike;
    bool was_first = alike->first == job;

    if (was_first) {
        leave_tree(core, alike);
        alike->first = alike_behind(job);
    }
    by_turn_remove(&alike->tree, job, BY_TURN_ALIKE);
    job->alike = NULL;
    if (!alike->first)
        drop(core, alike, job->profile);
    else if (was_first)
        enter_tree(core, alike);
}

struct job *alike_behind(const struct job *job)
{
    return job->alike ? by_turn_next(job->alike->tree, job->turn, BY_TURN_ALIKE) : NULL;
}

void alike_set_examined(struct core *core, struct alike *alike, uint64_t examined)
{
    alike->examined = examined;
    if (alike->needs.anywhere != (examined == 0 || alike->first->id == core->reserved_job) ||
        alike->needs.since_ns != job_waits_since_ns(alike->first))
        refresh(core, alike);
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
    for (struct alike *alike = profile->alikes; alike; alike = alike->profile_next) {
        struct expectation before = alike->expected, now = expectation_of(core, alike->first);
        if (is_same(&now, &before))
            continue;
        if (may_fit_now(&now, &before))
            alike->examined = 0;
        refresh(core, alike);
    }
}

static void company_changed(struct core *core, struct profile *profile)
{
    for (struct alike *alike = profile->alikes; alike; alike = alike->profile_next) {
        alike->examined = 0;
        refresh(core, alike);
    }
}

static void ask_branch_again(const struct core *core, struct alike *top, bool guesses_only)
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

void alike_all_changed(struct core *core)
{
    for (const struct line *line = core->lines; line; line = line->next)
        ask_line_again(core, line, false);
}

void alike_leave_lines(struct core *core)
{
    for (struct job *job = core->waiting.head; job; job = job->next)
        alike_leave(core, job);
}

void alike_join_lines(struct core *core)
{
    for (struct job *job = core->waiting.head; job; job = job->next)
        alike_join(core, job);
}

void alike_take_news(struct core *core)
{
    struct profile *profile;

    while ((profile = core->news)) {
        core->news = profile->next_news;
        if (profile->news == NEWS_COMPANY)
            company_changed(core, profile);
        else
            workload_changed(core, profile);
        profile->news = 0;
    }
    for (const struct line *line = core->lines; line && core->guesses_changed; line = line->next)
        ask_line_again(core, line, true);
    core->guesses_changed = false;
}
