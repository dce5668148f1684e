#include "sim/slurm.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define DELAY_FIRST_NS (5 * NS_PER_SEC)
#define DELAY_MOST_NS  (300 * NS_PER_SEC)
#define REFUSALS_MOST  3 /* of one node */
#define NO_NODE        UINT32_MAX
#define NO_JOB         SIZE_MAX
#define FAILED_MOST    64

struct task {
    struct slurm_ask ask;
    int64_t begin_ns;
    int64_t until_ns; /* by its limit, while it runs */
    int64_t delay_ns; /* of its next refusal */
    uint32_t node;    /* NO_NODE: it waits */
    struct refuser {
        uint32_t node, times;
    } * refusers; /* owned */
    uint32_t refuser_count, excluded_count;
    size_t refuser_capacity;
};

struct counts {
    int64_t of[SLURM_GRES_COUNT];
};

struct node {
    size_t *running; /* owned: jobs */
    uint32_t count;
    size_t capacity;
};

/* The job that backfill must not delay. */
struct kept {
    uint32_t node; /* NO_NODE: there is none */
    int64_t at_ns;
    struct counts spare; /* of the node then, beside the job */
};

struct slurm {
    struct counts whole; /* of each node */
    uint32_t node_count;
    struct node *nodes;  /* owned */
    uint32_t leaf_count; /* a power of two */
    struct counts *most; /* owned: a tree with the free counts of nodes as leaves; a branch has the most of each */
    struct task *tasks;  /* owned */
    uint64_t *waiting;   /* owned: a bit for each job */
    size_t job_count, waiting_count;
    size_t *delayed; /* owned: jobs that wait for their begin_ns: a heap, the earliest first */
    size_t delayed_count, delayed_capacity;
    const struct task **ends; /* owned: scratch */
    size_t end_capacity;
    size_t first;        /* no job before it waits */
    bool backfilling;    /* a pass has begun */
    size_t cursor;       /* of it: the next job to look at */
    uint32_t looked;     /* at how many */
    int64_t backfill_ns; /* when the next pass is due */
    struct kept kept;
    struct slurm_ask failed[FAILED_MOST]; /* asks that this pass found to fit nowhere */
    uint32_t failed_count;
};

/* ---- Free counts ---- */

static bool holds(const struct counts *counts, const struct slurm_ask *ask)
{
    for (enum slurm_gres g = 0; g < SLURM_GRES_COUNT; g++)
        if (ask->counts[g] > counts->of[g])
            return false;
    return true;
}

static void give(struct counts *counts, const struct slurm_ask *ask, int sign)
{
    for (enum slurm_gres g = 0; g < SLURM_GRES_COUNT; g++)
        counts->of[g] += sign * ask->counts[g];
}

static struct counts *free_of(const struct slurm *slurm, uint32_t node)
{
    return &slurm->most[slurm->leaf_count + node];
}

static void refresh(struct slurm *slurm, uint32_t node)
{
    for (uint32_t at = (slurm->leaf_count + node) / 2; at; at /= 2)
        for (enum slurm_gres g = 0; g < SLURM_GRES_COUNT; g++) {
            int64_t left = slurm->most[2 * at].of[g], right = slurm->most[2 * at + 1].of[g];
            slurm->most[at].of[g] = left > right ? left : right;
        }
}

int64_t slurm_free_count(const struct slurm *slurm, uint32_t node, enum slurm_gres gres)
{
    return free_of(slurm, node)->of[gres];
}

/* ---- Choosing a node ---- */

static bool excluded(const struct task *task, uint32_t node)
{
    for (uint32_t i = 0; i < task->refuser_count; i++)
        if (task->refusers[i].node == node)
            return task->refusers[i].times >= REFUSALS_MOST;
    return false;
}

static bool delays(const struct kept *kept, const struct task *task, uint32_t node, int64_t now_ns)
{
    return node == kept->node && now_ns + task->ask.limit_ns > kept->at_ns && !holds(&kept->spare, &task->ask);
}

/* The first node below the branch that takes the job; NO_NODE: none does. */
static uint32_t find_node(const struct slurm *slurm, uint32_t branch, const struct task *task, int64_t now_ns)
{
    uint32_t node;

    if (!holds(&slurm->most[branch], &task->ask))
        return NO_NODE;
    if (branch >= slurm->leaf_count) {
        node = branch - slurm->leaf_count;
        return node >= slurm->node_count || excluded(task, node) || delays(&slurm->kept, task, node, now_ns) ? NO_NODE
                                                                                                             : node;
    }
    node = find_node(slurm, 2 * branch, task, now_ns);
    return node == NO_NODE ? find_node(slurm, 2 * branch + 1, task, now_ns) : node;
}

static int by_end(const void *a, const void *b)
{
    const struct task *first = *(const struct task *const *)a, *second = *(const struct task *const *)b;

    return (first->until_ns > second->until_ns) - (first->until_ns < second->until_ns);
}

/* When the node has the job's counts by the limits of those that run there, if that is before kept->at_ns. */
static void look_ahead(struct slurm *slurm, uint32_t number, const struct task *task, int64_t now_ns, struct kept *kept)
{
    const struct node *node = &slurm->nodes[number];
    struct counts there = *free_of(slurm, number);
    const struct task **ends;
    int64_t at_ns = now_ns;

    array_reserve(slurm->ends, slurm->end_capacity, node->count + 1);
    ends = slurm->ends;
    for (uint32_t i = 0; i < node->count; i++)
        ends[i] = &slurm->tasks[node->running[i]];
    qsort(ends, node->count, sizeof *ends, by_end);
    for (uint32_t i = 0; i < node->count && !holds(&there, &task->ask); i++) {
        give(&there, &ends[i]->ask, 1);
        at_ns = ends[i]->until_ns > now_ns ? ends[i]->until_ns : now_ns;
    }
    if (at_ns >= kept->at_ns || !holds(&there, &task->ask))
        return;
    give(&there, &task->ask, -1);
    *kept = (struct kept){.node = number, .at_ns = at_ns, .spare = there};
}

static void keep_for(struct slurm *slurm, const struct task *task, int64_t now_ns)
{
    struct kept kept = {.node = NO_NODE, .at_ns = INT64_MAX};

    for (uint32_t node = 0; node < slurm->node_count; node++)
        if (!excluded(task, node))
            look_ahead(slurm, node, task, now_ns, &kept);
    slurm->kept = kept;
}

/* ---- The queue ---- */

static void set_waiting(struct slurm *slurm, size_t job, bool waits)
{
    uint64_t bit = UINT64_C(1) << job % 64;

    slurm->waiting[job / 64] = waits ? slurm->waiting[job / 64] | bit : slurm->waiting[job / 64] & ~bit;
    slurm->waiting_count += waits ? 1 : (size_t)-1;
    if (waits && job < slurm->first)
        slurm->first = job;
}

/* The first waiting job from `from` on, NO_JOB: none. */
static size_t next_waiting(const struct slurm *slurm, size_t from)
{
    size_t word = from / 64, words = slurm->job_count / 64 + 1;
    uint64_t bits = word < words ? slurm->waiting[word] & ~UINT64_C(0) << from % 64 : 0;

    while (!bits && ++word < words)
        bits = slurm->waiting[word];
    return bits ? word * 64 + (size_t)__builtin_ctzll(bits) : NO_JOB;
}

static bool begins_before(const struct slurm *slurm, size_t a, size_t b)
{
    int64_t first = slurm->tasks[a].begin_ns, second = slurm->tasks[b].begin_ns;

    return first != second ? first < second : a < b;
}

/* Puts the job into the heap of the delayed. Its place `at` is empty. */
static void put_delayed(struct slurm *slurm, size_t at, size_t job)
{
    for (; at > 0 && begins_before(slurm, job, slurm->delayed[(at - 1) / 2]); at = (at - 1) / 2)
        slurm->delayed[at] = slurm->delayed[(at - 1) / 2];
    for (size_t child; (child = 2 * at + 1) < slurm->delayed_count; at = child) {
        child +=
            child + 1 < slurm->delayed_count && begins_before(slurm, slurm->delayed[child + 1], slurm->delayed[child]);
        if (!begins_before(slurm, slurm->delayed[child], job))
            break;
        slurm->delayed[at] = slurm->delayed[child];
    }
    slurm->delayed[at] = job;
}

/* The job waits from begin_ns on. */
static void wait_until(struct slurm *slurm, size_t job, int64_t begin_ns, int64_t now_ns)
{
    slurm->tasks[job].begin_ns = begin_ns;
    if (begin_ns <= now_ns) {
        set_waiting(slurm, job, true);
        return;
    }
    array_reserve(slurm->delayed, slurm->delayed_capacity, slurm->delayed_count + 1);
    slurm->delayed_count++;
    put_delayed(slurm, slurm->delayed_count - 1, job);
}

static size_t take_delayed(struct slurm *slurm)
{
    size_t job = slurm->delayed[0];

    slurm->delayed_count--;
    if (slurm->delayed_count)
        put_delayed(slurm, 0, slurm->delayed[slurm->delayed_count]);
    return job;
}

static void end_delays(struct slurm *slurm, int64_t now_ns)
{
    while (slurm->delayed_count && slurm->tasks[slurm->delayed[0]].begin_ns <= now_ns) {
        size_t job = take_delayed(slurm);
        struct task *task = &slurm->tasks[job];
        int64_t requeued_ns = task->begin_ns;
        if (task->node == NO_NODE) {
            set_waiting(slurm, job, true);
            continue;
        }
        slurm_ended(slurm, job); /* the refused job has completed */
        wait_until(slurm, job, requeued_ns + task->delay_ns, now_ns);
    }
}

bool slurm_submit(struct slurm *slurm, size_t job, const struct slurm_ask *ask, int64_t begin_ns, int64_t now_ns)
{
    struct task *task = &slurm->tasks[job];

    if (!holds(&slurm->whole, ask))
        return false;
    task->ask = *ask;
    task->node = NO_NODE;
    wait_until(slurm, job, begin_ns, now_ns);
    return true;
}

static void take(struct slurm *slurm, size_t job, uint32_t number, int64_t now_ns)
{
    struct node *node = &slurm->nodes[number];
    struct task *task = &slurm->tasks[job];

    task->node = number;
    task->until_ns = now_ns + task->ask.limit_ns;
    array_reserve(node->running, node->capacity, node->count + 1);
    node->running[node->count++] = job;
    give(free_of(slurm, number), &task->ask, -1);
    refresh(slurm, number);
    set_waiting(slurm, job, false);
}

void slurm_ended(struct slurm *slurm, size_t job)
{
    struct task *task = &slurm->tasks[job];
    struct node *node = &slurm->nodes[task->node];
    uint32_t at = 0;

    while (node->running[at] != job)
        at++;
    node->running[at] = node->running[--node->count];
    give(free_of(slurm, task->node), &task->ask, 1);
    refresh(slurm, task->node);
    task->node = NO_NODE;
}

static void note_refuser(struct slurm *slurm, struct task *task, uint32_t node)
{
    uint32_t i = 0;

    while (i < task->refuser_count && task->refusers[i].node != node)
        i++;
    if (i == task->refuser_count) {
        array_reserve(task->refusers, task->refuser_capacity, task->refuser_count + 1);
        task->refusers[task->refuser_count++] = (struct refuser){.node = node};
    }
    task->excluded_count += ++task->refusers[i].times == REFUSALS_MOST;
    if (task->excluded_count == slurm->node_count)
        task->refuser_count = task->excluded_count = 0;
}

void slurm_refused(struct slurm *slurm, size_t job, int64_t now_ns)
{
    struct task *task = &slurm->tasks[job];

    note_refuser(slurm, task, task->node);
    task->delay_ns = task->delay_ns ? 2 * task->delay_ns : DELAY_FIRST_NS;
    if (task->delay_ns > DELAY_MOST_NS)
        task->delay_ns = DELAY_MOST_NS;
    task->until_ns = now_ns + SLURM_COMPLETING_NS;
    wait_until(slurm, job, task->until_ns, now_ns);
}

/* ---- The passes ---- */

/* Whether this pass has found that nothing can hold as much. */
static bool known_to_fail(const struct slurm *slurm, const struct task *task)
{
    const struct counts counts = {{task->ask.counts[0], task->ask.counts[1], task->ask.counts[2]}};

    for (uint32_t i = 0; i < slurm->failed_count; i++)
        if (holds(&counts, &slurm->failed[i]) && task->ask.limit_ns >= slurm->failed[i].limit_ns)
            return true;
    return false;
}

static void note_failure(struct slurm *slurm, const struct task *task)
{
    if (!task->excluded_count && slurm->failed_count < FAILED_MOST)
        slurm->failed[slurm->failed_count++] = task->ask;
}

static bool try_job(struct slurm *slurm, size_t job, int64_t now_ns, uint32_t *node)
{
    const struct task *task = &slurm->tasks[job];

    *node = known_to_fail(slurm, task) ? NO_NODE : find_node(slurm, 1, task, now_ns);
    if (*node == NO_NODE)
        return false;
    take(slurm, job, *node, now_ns);
    return true;
}

static void begin_backfill(struct slurm *slurm, int64_t now_ns)
{
    slurm->backfilling = true;
    slurm->cursor = slurm->first;
    slurm->looked = 0;
    slurm->failed_count = 0;
    slurm->backfill_ns = now_ns + SLURM_BACKFILL_NS;
}

static bool backfill(struct slurm *slurm, int64_t now_ns, size_t *job, uint32_t *node)
{
    while (slurm->looked++ < SLURM_BACKFILL_JOBS) {
        *job = next_waiting(slurm, slurm->cursor);
        if (*job == NO_JOB)
            break;
        slurm->cursor = *job + 1;
        if (try_job(slurm, *job, now_ns, node))
            return true;
        if (slurm->kept.node == NO_NODE)
            keep_for(slurm, &slurm->tasks[*job], now_ns);
        else
            note_failure(slurm, &slurm->tasks[*job]);
    }
    slurm->backfilling = false;
    slurm->kept.node = NO_NODE;
    slurm->failed_count = 0;
    return false;
}

bool slurm_start(struct slurm *slurm, int64_t now_ns, size_t *job, uint32_t *node)
{
    end_delays(slurm, now_ns);
    if (!slurm->backfilling) {
        *job = next_waiting(slurm, slurm->first);
        slurm->first = *job == NO_JOB ? slurm->job_count : *job;
        if (*job == NO_JOB)
            return false;
        if (try_job(slurm, *job, now_ns, node))
            return true;
        if (now_ns < slurm->backfill_ns)
            return false;
        begin_backfill(slurm, now_ns);
    }
    return backfill(slurm, now_ns, job, node);
}

int64_t slurm_next_ns(const struct slurm *slurm, int64_t now_ns)
{
    int64_t next_ns = slurm->waiting_count && slurm->backfill_ns > now_ns ? slurm->backfill_ns : INT64_MAX;

    if (slurm->delayed_count && slurm->tasks[slurm->delayed[0]].begin_ns < next_ns)
        next_ns = slurm->tasks[slurm->delayed[0]].begin_ns;
    return next_ns;
}

/* ---- Life ---- */

struct slurm *slurm_new(uint32_t nodes, const int64_t counts[SLURM_GRES_COUNT], size_t jobs)
{
    struct slurm *slurm = xcalloc(1, sizeof *slurm);

    memcpy(slurm->whole.of, counts, sizeof slurm->whole.of);
    slurm->node_count = nodes;
    slurm->nodes = xcalloc(nodes, sizeof *slurm->nodes);
    for (slurm->leaf_count = 1; slurm->leaf_count < nodes;)
        slurm->leaf_count *= 2;
    slurm->most = xcalloc(2 * (size_t)slurm->leaf_count, sizeof *slurm->most);
    for (uint32_t node = 0; node < nodes; node++) {
        *free_of(slurm, node) = slurm->whole;
        refresh(slurm, node);
    }
    slurm->job_count = slurm->first = jobs;
    slurm->tasks = xcalloc(jobs, sizeof *slurm->tasks);
    slurm->waiting = xcalloc(jobs / 64 + 1, sizeof *slurm->waiting);
    slurm->kept.node = NO_NODE;
    return slurm;
}

void slurm_free(struct slurm *slurm)
{
    if (!slurm)
        return;
    for (uint32_t node = 0; node < slurm->node_count; node++)
        free(slurm->nodes[node].running);
    for (size_t job = 0; job < slurm->job_count; job++)
        free(slurm->tasks[job].refusers);
    free(slurm->nodes);
    free(slurm->most);
    free(slurm->tasks);
    free(slurm->delayed);
    free(slurm->ends);
    free(slurm->waiting);
    free(slurm);
}
