/* Random worlds drive the core through its contract, and its promises are checked after every step:
 *
 *   - under `reserve` no GPU is over-committed by reservations
 *   - no job is lost or run twice: the world and the core agree on each job
 *   - an exclusive job is alone on its GPUs until it ends, under every policy
 *   - the residents of a GPU use it in one way, its MPS clients are one user's and as few as allowed, a job of several
 *     GPUs begins its MPS server where nobody is, nobody is put on a server that has failed, a MIG instance gets no
 *     part of a job of several GPUs
 *   - the victim of a fault goes before the main queue, as long as its user has a budget for it
 *   - no user is given more GPUs, GPU memory or running jobs than allowed; a user who waits for that delays nobody else
 *   - a lost job, or one that its time limit ended, is retried where that was asked for, at most as often as allowed
 *   - a reservation covers the observed memory of its job, and is never larger than its GPUs
 *   - a job run out of memory by a neighbour is not charged with it, keeps its request, and is not a victim for ever
 *   - a fence is for MPS alone, and never below the request; a job runs out at a guessed one once, and is not charged
 *     with it
 *   - a job of unknown need has no fence that takes what others have reserved, and without a fence it joins them only
 *     where nearly every job would fit
 *   - a record wakes or keeps a waiting job only where a rule of core/waiting/eligible.c names it
 *   - nobody's job comes to a GPU that is reserved for other users, or may run there when that begins
 *   - every waiting job has a reason with a sentence; no other job has one
 *   - a head for which GPUs are reserved starts at the latest when the jobs have ended that ran there at that moment
 *   - the same inputs give the same decisions, and applying the stored records gives the same state
 *
 * The seed of a failing run is printed. Give it as an argument to repeat that run alone, and a number as the second to
 * try that many from there on. */
#include <stdio.h>
#include <string.h>

#include "core/waiting/eligible.h"
#include "core/snapshot.h"
#include "promises.h"

static void apply_all(struct core *core, const struct record_list *log, size_t from, size_t to)
{
    struct error err;

    for (size_t i = from; i < to; i++)
        if (core_apply(core, &log->items[i], &err) != 0) {
            fprintf(stderr, "record %zu (%s) does not apply: %s\n", i, record_type_name(log->items[i].type), err.text);
            abort();
        }
}

static void check_replay(const struct world *world)
{
    CLEANUP(free_ptr) char *decided = core_dump(world->core);
    struct core *other = core_new();

    apply_all(other, &world->log, 0, world->log.count);
    CLEANUP(free_ptr) char *applied = core_dump(other);
    if (strcmp(decided, applied) != 0) {
        fprintf(stderr, "applied:\n%s", applied);
        fail(world, "applying the records gives another state than deciding them");
    }
    core_free(other);
}

/* A rule's answer for a job in the queue turns at no record but those that the rule names (core/waiting/eligible.c). */
static void check_turns(const struct world *world)
{
    CLEANUP(free_ptr) bool *kept = xcalloc(MAX_JOBS, sizeof *kept);
    struct core *core = core_new();

    for (size_t i = 0; i < world->log.count; i++) {
        uint32_t type = world->log.items[i].type;
        apply_all(core, &world->log, i, i + 1);
        for (const struct job *job = core_jobs(core); job; job = job->hh.next) {
            bool queued = job->state == JOB_QUEUED, now = queued && !job_is_eligible(core, job, NULL);
            if (now != kept[job->id] && queued && job->id != world->log.items[i].job && !eligible_turns(core, type))
                fail(world, "'%s' turned a rule's answer for job %" PRIu64, record_type_name(type), job->id);
            kept[job->id] = now;
        }
    }
    core_free(core);
}

static void step(struct world *world)
{
    random_input(world);
    decide(world);
    check_state(world);
}

/* The world goes on with a core that was restored from a snapshot of its own. */
static void restore(struct world *world)
{
    CLEANUP(free_ptr) char *before = core_dump(world->core);
    struct record_list snapshot = {0};
    struct error err;

    core_snapshot(world->core, world->now_ns, &snapshot);
    core_free(world->core);
    world->core = core_new();
    apply_all(world->core, &snapshot, 0, snapshot.count);
    record_list_release(&snapshot);
    if (core_check(world->core, &err) != 0)
        fail(world, "a snapshot is refused: %s", err.text);
    CLEANUP(free_ptr) char *after = core_dump(world->core);
    if (strcmp(before, after) != 0) {
        fprintf(stderr, "before:\n%s", before);
        fail(world, "a snapshot gives another state than it was made of");
    }
}

/* every `restore_every` steps; 0: never. */
static uint64_t run(uint64_t seed, int steps, int restore_every, size_t *records)
{
    struct world *world = world_new(seed);
    uint64_t placements = 0, hash = UINT64_C(1469598103934665603);

    for (int i = 0; i < steps; i++) {
        step(world);
        if (restore_every && i % restore_every == 0)
            restore(world);
        if (i % 64 == 63)
            check_replay(world);
    }
    check_replay(world);
    check_turns(world);
    for (uint64_t id = 1; id < world->next_job; id++)
        placements += world->jobs[id].runs;
    for (size_t i = 0; i < world->log.count; i++) {
        hash = (hash ^ world->log.items[i].type) * UINT64_C(1099511628211);
        hash = (hash ^ world->log.items[i].job) * UINT64_C(1099511628211);
    }
    *records += world->log.count;
    world_free(world);
    return hash + placements;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, runs = argc > 1 ? 1 : 300;
    size_t records = 0;

    if (argc > 2)
        runs = strtoull(argv[2], NULL, 10);
    for (uint64_t seed = first; seed < first + runs; seed++) {
        uint64_t one = run(seed, 600, 0, &records);
        if (seed % 4 == 2 && one != run(seed, 600, 5, &records)) {
            fprintf(stderr, "seed %" PRIu64 ": restored from snapshots, other decisions were made\n", seed);
            return 1;
        }
        if (seed % 16 == 1 && one != run(seed, 600, 0, &records)) {
            fprintf(stderr, "seed %" PRIu64 ": the same inputs gave other decisions\n", seed);
            return 1;
        }
    }
    printf("%" PRIu64 " random worlds, %zu records: every promise held\n", runs, records);
    return 0;
}
