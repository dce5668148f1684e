/* Random histories of users, of whom some lie: they run many jobs, tiny or huge, idle or busy, of names that others
 * use, and report any speed. The core that saw all is compared with one that saw the same history without the liars:
 *
 *   - guess: no need is guessed more than 25% apart, by one liar, or by a fifth of five users or more
 *   - guess: with fewer users it is at most 25% above what the user's own runs tell, and never below
 *   - programs, workloads with their memory and activity, speeds alone and beside others: equal
 *   - forgotten liars have taught nothing: all is equal
 *
 * The seed of a failing run is printed. Give it as an argument to repeat that run alone, and a number as the second to
 * try that many from there on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "random.h"
#include "core/learn/pairs.h"
#include "core/core.h"
#include "core/guess/program_history.h"
#include "core/learn/learn.h"
#include "core/ledger.h"
#include "core/state.h"
#include "core/user.h"

#define GPUS     4
#define USERS    15
#define STEPS    240
#define MOST     2000 /* jobs at a time */
#define STEP_NS  (60 * NS_PER_SEC)
#define FIRST_ID 1000

struct running {
    uint64_t job;
    uint32_t uid, gpu;
    int64_t ends_ns, micro_steps_per_s;
    int32_t smact_permille;
};

struct history {
    uint64_t seed;
    struct random random;
    struct core *all, *honest; /* of the honest users alone */
    uint32_t users, liars;     /* the last of them lie */
    int64_t now_ns, likes_bytes[USERS];
    uint64_t last_job;
    bool quiet; /* the liars run little, and so the others are by themselves, or beside few */
    struct running running[MOST];
    size_t count;
};

static bool lies(const struct history *history, uint32_t uid)
{
    return uid >= FIRST_ID + history->users - history->liars;
}

#define expect(history, condition, uid, what)                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "seed %llu, %u users, %u lie: %s of user %u\n", (unsigned long long)(history)->seed,       \
                    (history)->users, (history)->liars, what, (unsigned)(uid));                                        \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void apply(struct history *history, struct core *core, struct record record)
{
    struct error err;

    record.at_ns = history->now_ns;
    if (core_apply(core, &record, &err) == 0)
        return;
    fprintf(stderr, "seed %llu: %s: %s\n", (unsigned long long)history->seed, record_type_name(record.type), err.text);
    abort();
}

static void apply_of(struct history *history, uint32_t uid, struct record record)
{
    apply(history, history->all, record);
    if (!lies(history, uid))
        apply(history, history->honest, record);
}

static void begins(struct history *history, uint32_t uid)
{
    struct random *r = &history->random;
    bool lie = lies(history, uid);
    struct running *run = &history->running[history->count];
    struct record record = {.type = RECORD_SUBMITTED, .job = ++history->last_job};
    int64_t bytes = history->likes_bytes[uid - FIRST_ID], likes = bytes;

    if (history->count == MOST)
        return;
    bytes += bytes / 100 * random_range(r, -20, 20);
    *run = (struct running){.job = record.job, .uid = uid, .gpu = (uint32_t)random_range(r, 0, GPUS - 1)};
    run->ends_ns = history->now_ns + random_range(r, 0, lie && !history->quiet ? 1 : 6) * STEP_NS;
    run->micro_steps_per_s = random_range(r, 1, lie ? 1000000000 : 20) * (lie ? 1 : 1000000);
    run->smact_permille = (int32_t)(lie ? random_range(r, 0, 1) * 1000 : random_range(r, 100, 900));
    record.submitted = (struct record_submitted){.uid = uid, .gpus = 1, .request_bytes = -1, .smact_permille = -1};
    if (random_range(r, 0, 2)) /* half of them of a program, few or many workloads */
        snprintf(record.submitted.workload, sizeof record.submitted.workload, "%s%d",
                 random_range(r, 0, 1) ? "p:" : "w", (int)random_range(r, 0, random_range(r, 0, 1) ? 5 : 1000));
    apply_of(history, uid, record);
    record = (struct record){.type = RECORD_PLACED, .job = run->job};
    record.placed = (struct record_placed){
        .count = 1, .gpus = {run->gpu}, .reserved_bytes = likes, .share = SHARE_TIME_SLICE, .fence_bytes = -1};
    apply_of(history, uid, record);
    record = (struct record){.type = RECORD_FIRST_USE, .job = run->job, .memory = {run->gpu, bytes}};
    apply_of(history, uid, record);
    history->count++;
}

static void end_due(struct history *history)
{
    for (size_t i = 0; i < history->count;) {
        struct running *run = &history->running[i];
        struct record record = {.type = RECORD_EXITED, .job = run->job};
        if (run->ends_ns > history->now_ns) {
            i++;
            continue;
        }
        record.exited =
            (struct record_exited){.cause = random_range(&history->random, 0, 9) ? EXIT_COMPLETED : EXIT_FAILED,
                                   .requested_bytes = -1,
                                   .free_bytes = -1,
                                   .used_bytes = -1,
                                   .failed_gpu = RECORD_NO_GPU};
        apply_of(history, run->uid, record);
        *run = history->running[--history->count];
    }
}

static bool liar_is_on(const struct history *history, uint32_t gpu)
{
    for (size_t i = 0; i < history->count; i++)
        if (history->running[i].gpu == gpu && lies(history, history->running[i].uid))
            return true;
    return false;
}

/* Where nobody lies, it teaches the other core the same. While a liar is there, and shortly after, it may only not.
 * Nor may it beside a process that a liar has started by hand. */
static void sample_gpu(struct history *history, uint32_t number)
{
    const struct gpu *gpu = core_gpu(history->all, number);
    struct record record = {.type = RECORD_SAMPLE};
    int64_t idle = 1000;

    for (size_t i = 0; i < history->count; i++)
        if (history->running[i].gpu == number)
            idle = idle * (1000 - history->running[i].smact_permille) / 1000;
    record.sample = (struct record_sample){.gpu = number,
                                           .used_bytes = GIB,
                                           .smact_permille = (int32_t)(1000 - idle),
                                           .smocc_permille = -1,
                                           .dram_permille = -1,
                                           .others = history->liars && !random_range(&history->random, 0, 3)};
    if (record.sample.others)
        record.sample.smact_permille = 990;
    apply(history, history->all, record);
    if (gpu->learned_ns != history->now_ns || liar_is_on(history, number) || record.sample.others)
        record.sample.smact_permille = -1;
    apply(history, history->honest, record);
}

static bool is_lied(const struct history *history, const struct measure *measure)
{
    return lies(history, measure->key.of->user->uid) ||
           (measure->key.beside && lies(history, measure->key.beside->user->uid));
}

static bool taught_honest(const struct history *history, const struct profile *profile)
{
    for (const struct measure *measure = history->all->measures; measure; measure = measure->hh.next)
        if (measure->key.of == profile && measure->at_ns == history->now_ns && measure->key.kind == PAIRS_SPEED &&
            !is_lied(history, measure))
            return true;
    return false;
}

static void report_speed(struct history *history, const struct running *run)
{
    struct record record = {.type = RECORD_PROGRESSED, .job = run->job};
    const struct profile *profile = core_find_job(history->all, run->job)->profile;

    record.progressed =
        (struct record_progressed){.micro_steps_per_s = run->micro_steps_per_s, .span_ns = STEP_NS, .total = 100};
    if (taught_honest(history, profile))
        return; /* by another job of the workload, just now */
    apply(history, history->all, record);
    if (!lies(history, run->uid) && taught_honest(history, profile))
        apply(history, history->honest, record);
}

/* ---- What is compared ---- */

static void check_guesses(const struct history *history, const struct user *with, const struct user *without)
{
    const struct prior *own = with->own ? with->own : &history->all->prior;
    int64_t pairs[][3] = {{with->likely_bytes, without->likely_bytes, own->likely_bytes},
                          {with->careful_bytes, without->careful_bytes, own->careful_bytes}};
    bool few = history->users < 5;

    for (size_t i = 0; i < array_size(pairs); i++) {
        int64_t one = pairs[i][0], other = pairs[i][1];
        bool bounded = history->liars == 1 || !few;
        expect(history, !bounded || (one <= other + other / 4 && other <= one + one / 4), with->uid, "the guess");
        expect(history, one <= pairs[i][2] + pairs[i][2] / 4 && (!few || one >= pairs[i][2]), with->uid,
               "the guess by few users");
    }
    expect(history, prior_of(history->honest, without)->likely_bytes == own->likely_bytes, with->uid, "the own guess");
}

static void check_workloads(const struct history *history, const struct user *with, const struct user *without)
{
    expect(history, HASH_COUNT(with->profiles) == HASH_COUNT(without->profiles), with->uid, "the workloads");
    for (const struct profile *a = with->profiles; a; a = a->hh.next) {
        const struct profile *b = learn_find(history->honest, without->uid, a->workload);
        expect(history, b, with->uid, "a workload");
        expect(history,
               a->runs == b->runs && a->first_bytes == b->first_bytes && a->distance_sum == b->distance_sum &&
                   a->distance_squares == b->distance_squares && a->peak_bytes == b->peak_bytes,
               with->uid, "the memory of a workload");
        expect(history, a->activity_permille == b->activity_permille && a->variance == b->variance, with->uid,
               "the activity of a workload");
        expect(history,
               !a->program == !b->program && (!a->program || a->program->likely_bytes == b->program->likely_bytes),
               with->uid, "the program of a workload");
    }
}

static void check_measures(const struct history *history)
{
    uint32_t count = 0;

    for (const struct measure *a = history->all->measures; a; a = a->hh.next) {
        const struct measure *b;
        if (is_lied(history, a))
            continue;
        count++;
        for (b = history->honest->measures; b; b = b->hh.next)
            if (b->key.kind == a->key.kind && b->value == a->value && b->readings == a->readings &&
                b->at_ns == a->at_ns && strcmp(b->key.of->workload, a->key.of->workload) == 0 &&
                b->key.of->user->uid == a->key.of->user->uid && !b->key.beside == !a->key.beside)
                break;
        expect(history, b, a->key.of->user->uid, "the speed of a workload");
    }
    expect(history, count == HASH_COUNT(history->honest->measures), 0, "the number of speeds");
}

static void check_forgotten(struct history *history)
{
    for (uint32_t uid = FIRST_ID; uid < FIRST_ID + history->users; uid++)
        if (lies(history, uid))
            apply(history, history->all,
                  (struct record){.type = RECORD_FORGOTTEN, .forgotten = {.of_user = true, .uid = uid}});
    for (const struct user *user = core_users(history->honest); user; user = user->hh.next) {
        const struct user *with = user_find(history->all, user->uid);
        expect(history, with->likely_bytes == user->likely_bytes && with->careful_bytes == user->careful_bytes,
               user->uid, "liars were forgotten, but not in the guess");
    }
    expect(history, HASH_COUNT(history->all->measures) == HASH_COUNT(history->honest->measures), 0,
           "liars were forgotten, but not in the speeds");
}

static void set_up(struct history *history)
{
    struct random *r = &history->random;
    struct record record = {.type = RECORD_RECONFIGURED};

    history->users = (uint32_t)random_range(r, 1, USERS);
    history->liars = history->users < 2   ? 0
                     : history->users < 5 ? (uint32_t)random_range(r, 1, history->users - 1)
                                          : (uint32_t)random_range(r, 1, history->users / 5);
    for (uint32_t u = 0; u < history->users; u++)
        history->likes_bytes[u] = random_range(r, 1, 30) * GIB;
    for (uint32_t u = 0; u < history->users && history->seed % 2; u++) /* most are of one kind, the liars of another */
        history->likes_bytes[u] =
            (lies(history, FIRST_ID + u) ? history->seed % 4 == 1 : history->seed % 4 == 3) ? 32 * GIB : GIB / 2;
    history->all = core_new();
    history->honest = core_new();
    core_config_default(&record.config);
    snprintf(record.config.policy, sizeof record.config.policy, "carma");
    record.config.learn = true;
    record.config.prior_quantile_permille = (int32_t)random_range(r, 500, 950);
    apply(history, history->all, record);
    apply(history, history->honest, record);
    for (uint32_t g = 0; g < GPUS; g++) {
        record =
            (struct record){.type = RECORD_GPU_BACK, .gpu = {.gpu = g, .total_bytes = 40 * GIB, .share = SHARE_AUTO}};
        apply(history, history->all, record);
        apply(history, history->honest, record);
    }
}

static size_t run(uint64_t seed)
{
    struct history *history = xcalloc(1, sizeof *history);
    struct random *r = &history->random;

    history->seed = r->state = seed;
    history->now_ns = STEP_NS;
    set_up(history);
    for (int step = 0; step < STEPS; step++) {
        history->now_ns += STEP_NS;
        history->quiet = step / 30 % 2;
        end_due(history);
        for (uint32_t uid = FIRST_ID; uid < FIRST_ID + history->users; uid++) {
            bool lie = lies(history, uid);
            for (int64_t n = lie && !history->quiet ? random_range(r, 0, 12) : random_range(r, 0, 3) / 3; n > 0; n--)
                begins(history, uid);
        }
        for (uint32_t g = 0; g < GPUS; g++)
            sample_gpu(history, g);
        for (size_t i = 0; i < history->count; i++)
            report_speed(history, &history->running[i]);
        if (step % 40 == 39) {
            for (const struct user *user = core_users(history->honest); user; user = user->hh.next) {
                check_guesses(history, user_find(history->all, user->uid), user);
                check_workloads(history, user_find(history->all, user->uid), user);
            }
            check_measures(history);
        }
    }
    check_forgotten(history);
    size_t jobs = history->last_job;
    core_free(history->all);
    core_free(history->honest);
    free(history);
    return jobs;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    size_t jobs = 0;

    for (uint64_t seed = first; seed < first + runs; seed++)
        jobs += run(seed);
    printf("%llu histories, %zu jobs: nobody's lies moved others beyond the bound\n", (unsigned long long)runs, jobs);
    return 0;
}
