/* One user's jobs never change another's order except by use. A random past gives three users their uses, shares and
 * running jobs. Then two of them submit the same jobs in two copies of that world, and the third submits, holds,
 * moves and cancels others in each. Of the two users' jobs the order is the same in both, and so is each user's place
 * among them. Usage: test_order_properties [FIRST_SEED [SEEDS]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/waiting/autocluster.h"
#include "core/waiting/order.h"
#include "random.h"

#define USERS 3 /* the last is the third one */
#define GPUS  4
#define PAST  40
#define OWN   12 /* waiting jobs of the first two */

static uint64_t seed;

static void apply(struct core *core, const struct record *record)
{
    struct error err;

    if (core_apply(core, record, &err) == 0)
        return;
    fprintf(stderr, "seed %" PRIu64 ": %s does not apply: %s\n", seed, record_type_name(record->type), err.text);
    exit(1);
}

static struct record wants(struct random *random, uint64_t job, uint32_t user, int64_t now_ns)
{
    struct record record = {.type = RECORD_SUBMITTED, .at_ns = now_ns, .job = job};

    record.submitted = (struct record_submitted){.uid = user,
                                                 .gpus = (uint32_t)random_range(random, 1, 2),
                                                 .request_bytes = random_range(random, 1, 39) * GIB,
                                                 .request_source = SOURCE_DECLARED,
                                                 .smact_permille = (int32_t)random_range(random, 1, 10) * 100,
                                                 .exclusive = random_range(random, 0, 1)};
    return record;
}

static struct core *begin(struct random *random)
{
    struct record configured = {.type = RECORD_RECONFIGURED}, back = {.type = RECORD_GPU_BACK};
    struct record sample = {.type = RECORD_SAMPLE, .sample = {.smocc_permille = -1, .dram_permille = -1}};
    struct core *core = core_new();

    core_config_default(&configured.config);
    snprintf(configured.config.policy, sizeof configured.config.policy, "carma");
    configured.config.order = ORDER_FAIR;
    configured.config.backfill = 1;
    configured.config.per_user.max_running = (uint32_t)random_range(random, 0, 3);
    apply(core, &configured);
    for (uint32_t i = 0; i < GPUS; i++) {
        back.gpu = (struct record_gpu){.gpu = i, .total_bytes = 40 * GIB, .share = SHARE_AUTO, .part_permille = 1000};
        snprintf(back.gpu.uuid, sizeof back.gpu.uuid, "GPU-%" PRIu32, i);
        apply(core, &back);
        sample.sample.gpu = i;
        apply(core, &sample);
    }
    return core;
}

/* Jobs come, run and end; shares are given. Returns the time. */
static int64_t live(struct core *core, struct random *random)
{
    struct record_list decisions = {0};
    int64_t now_ns = 0;

    for (uint64_t job = 1; job <= PAST; job++) {
        struct record record = wants(random, job, (uint32_t)random_range(random, 0, USERS - 1), now_ns);
        apply(core, &record);
        core_decide(core, now_ns, &decisions);
        now_ns += random_range(random, 1, 7200) * NS_PER_SEC;
        for (uint64_t other = 1; other <= job; other++) {
            const struct job *it = core_find_job(core, other);
            struct record exited = {.type = RECORD_EXITED, .at_ns = now_ns, .job = other};
            exited.exited = (struct record_exited){
                .requested_bytes = -1, .free_bytes = -1, .used_bytes = -1, .failed_gpu = RECORD_NO_GPU};
            if (it && job_state_has_gpus(it->state) && random_range(random, 0, 3) == 0)
                apply(core, &exited);
        }
        record = (struct record){.type = RECORD_SHARE_GIVEN, .at_ns = now_ns};
        record.share_given.uid = (uint32_t)random_range(random, 0, USERS - 1);
        record.share_given.share = (uint32_t)random_range(random, 1, 4);
        record.share_given.group_share = (uint32_t)random_range(random, 0, 2);
        /* the third is in no group with them: its users stand in its turns */
        if (record.share_given.group_share)
            record.share_given.group[0] = record.share_given.uid < USERS - 1 ? 'g' : 'h';
        if (random_range(random, 0, 4) == 0)
            apply(core, &record);
    }
    record_list_release(&decisions);
    return now_ns;
}

static struct core *copy_of(const struct core *core, int64_t now_ns)
{
    struct record_list state = {0};
    struct core *copy = core_new();

    core_snapshot(core, now_ns, &state);
    for (size_t i = 0; i < state.count; i++)
        apply(copy, &state.items[i]);
    record_list_release(&state);
    return copy;
}

static void third_acts(struct core *core, struct random *random, uint64_t *last, int64_t now_ns)
{
    for (int64_t left = random_range(random, 0, 3); left > 0; left--) {
        struct record record = wants(random, ++*last, USERS - 1, now_ns);
        apply(core, &record);
        record = (struct record){
            .type = random_range(random, 0, 1) ? RECORD_CANCELLED : RECORD_HELD, .at_ns = now_ns, .job = *last};
        if (random_range(random, 0, 2) == 0)
            apply(core, &record);
        record = (struct record){.type = RECORD_ORDERED, .at_ns = now_ns, .job = *last};
        record.ordered =
            (struct record_ordered){.last = *last, .where = random_range(random, 0, 1) ? ORDERED_FIRST : ORDERED_LAST};
        if (random_range(random, 0, 2) == 0 && core_find_job(core, *last))
            apply(core, &record);
    }
}

struct seen {
    uint32_t first; /* of the two, whose line is served first */
    size_t count;
    uint64_t jobs[PAST + OWN], own_places[PAST + OWN];
};

static int compare_ranks(const void *left, const void *right)
{
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;

    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The first two users' jobs in the order of turns. */
static void look(const struct core *core, int64_t now_ns, struct seen *seen)
{
    const struct job *found[PAST + OWN];
    uint32_t count;
    struct line **lines = order_lines(core, now_ns, &count);

    seen->first = USERS;
    for (uint32_t i = count; i-- > 0;)
        if (lines[i]->user && lines[i]->user->uid < USERS - 1)
            seen->first = lines[i]->user->uid;
    seen->count = 0;
    for (const struct job *job = core_jobs(core); job; job = job->hh.next)
        if (job->wants->uid < USERS - 1 && order_rank(core, job, now_ns))
            found[seen->count++] = job;
    if (seen->count)
        qsort(found, seen->count, sizeof *found, compare_ranks);
    for (size_t i = 0; i < seen->count; i++) {
        seen->jobs[i] = found[i]->id;
        seen->own_places[i] = order_rank(core, found[i], now_ns)->own_place;
    }
}

/* With what the third user does, as `random` says. */
static void see(const struct core *past, const struct record *own, struct random random, int64_t now_ns,
                struct seen *seen)
{
    struct core *core = copy_of(past, now_ns);
    uint64_t last = PAST + OWN;

    for (size_t i = 0; i < OWN; i++) {
        third_acts(core, &random, &last, now_ns);
        apply(core, &own[i]);
    }
    third_acts(core, &random, &last, now_ns);
    look(core, now_ns, seen);
    core_free(core);
}

static size_t run_world(void)
{
    struct random random = {seed};
    struct core *past = begin(&random);
    int64_t now_ns = live(past, &random);
    struct record own[OWN];
    struct seen seen, other;

    for (size_t i = 0; i < OWN; i++)
        own[i] = wants(&random, PAST + 1 + i, (uint32_t)random_range(&random, 0, USERS - 2), now_ns);
    see(past, own, (struct random){seed + 1}, now_ns, &seen);
    see(past, own, (struct random){seed + 2}, now_ns, &other);
    core_free(past);
    if (seen.first == other.first && seen.count == other.count &&
        memcmp(seen.jobs, other.jobs, seen.count * sizeof *seen.jobs) == 0 &&
        memcmp(seen.own_places, other.own_places, seen.count * sizeof *seen.jobs) == 0)
        return seen.count;
    fprintf(stderr, "seed %" PRIu64 ": the third user's waiting jobs change the order of the others':\n", seed);
    for (size_t i = 0; i < seen.count && i < other.count; i++)
        fprintf(stderr, "%" PRIu64 " %" PRIu64 "\n", seen.jobs[i], other.jobs[i]);
    exit(1);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    size_t jobs = 0;

    for (seed = first; seed < first + seeds; seed++)
        jobs += run_world();
    printf("%" PRIu64 " random worlds, %zu waiting jobs of two users: a third one never changed their order\n", seeds,
           jobs);
    return jobs == 0;
}
