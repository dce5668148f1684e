/* Random lives of jobs, folded as the daemon folds them and stored as it stores them. Each user's totals are the sums
 * over that user's jobs' own accounts, kept here beside. They never fall; and a restart, at any moment, finds them
 * again, with any rows forgotten. Usage: test_totals_properties [FIRST_SEED [SEEDS]] */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/spec.h"
#include "base/memory.h"
#include "base/units.h"
#include "daemon/account/totals.h"
#include "daemon/view/view_store.h"
#include "random.h"
#include "store/store.h"

#define USERS      3
#define STEPS      400
#define MOST_ALIVE 12

static uint64_t seed;

static void require_at(bool holds, int line, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "seed %" PRIu64 ", line %d: not so: %s\n", seed, line, what);
    exit(1);
}
#define require(what) require_at(what, __LINE__, #what)

/* The sums of a user's jobs, by the records alone. */
struct expected {
    int64_t submitted, ended, launched, wait_ns, gpu_ns, energy_mj, oom_crashes, handle_crashes, retries;
};

struct world {
    struct random random;
    struct daemon daemon;
    char directory[64];
    int64_t now_ns;
    uint64_t last;
    struct expected expected[USERS];
    struct history_sums shown[USERS];
    unsigned done;
    int64_t forgotten_ns; /* rows of earlier ended jobs may be gone */
    unsigned seen;        /* users that totals_read told of, as bits */
};

static void on_stored(int status, const char *error_text, void *user)
{
    (void)error_text;
    require(status == 0);
    ++*(unsigned *)user;
}

static void commit(struct world *world, struct store_batch *batch)
{
    world->done = 0;
    store_commit(world->daemon.store, batch, on_stored, &world->done);
    while (!world->done) {
        struct pollfd ready = {.fd = store_event_fd(world->daemon.store), .events = POLLIN};
        require(poll(&ready, 1, 60000) == 1);
        store_dispatch(world->daemon.store);
    }
}

static void open_store(struct world *world)
{
    struct error err = {{0}};

    require(store_open(world->directory, &world->daemon.store, &err) == 0);
    world->daemon.totals = totals_new();
}

/* ---- Events ---- */

static struct job_view *fold(struct world *world, struct record record)
{
    record.at_ns = world->now_ns;
    require(core_apply(world->daemon.core, &record, NULL) == 0);
    return views_fold(&world->daemon.views, world->daemon.core, &record);
}

static void submit(struct world *world)
{
    struct record record = {.type = RECORD_SUBMITTED, .job = ++world->last};
    struct job_estimate estimate;
    struct job_spec spec;

    job_spec_init(&spec);
    job_estimate_init(&estimate);
    spec.name = xstrdup("job");
    views_add(&world->daemon.views, record.job, &spec, &estimate);
    record.submitted = (struct record_submitted){.uid = (uint32_t)random_range(&world->random, 0, USERS - 1),
                                                 .gpus = (uint32_t)random_range(&world->random, 1, 4),
                                                 .request_bytes = -1};
    world->expected[record.submitted.uid].submitted++;
    require(fold(world, record));
}

static void end(struct world *world, struct job_view *view)
{
    struct store_batch *batch = store_batch_new();
    struct store_history row = history_row_of(view);
    CLEANUP(free_ptr) char *text = job_view_to_text(view);

    totals_end(world->daemon.totals, view);
    store_batch_spec(batch, view->id, "{}");
    store_batch_job(batch, view->id, view->wants->uid, view->ended_ns, text);
    store_batch_history(batch, &row);
    commit(world, batch);
    world->expected[view->wants->uid].ended++;
}

/* The last of its energy is found after its end. */
static void settle(struct world *world, struct job_view *view)
{
    struct store_batch *batch = store_batch_new();
    int64_t mj = random_range(&world->random, 1, 1000);

    job_view_run(view)->energy_mj += mj;
    totals_add_energy(world->daemon.totals, view->wants->uid, mj);
    world->expected[view->wants->uid].energy_mj += mj;
    store_batch_history_energy(batch, view->id, view->run->energy_mj);
    commit(world, batch);
}

static void leave(struct world *world, struct job_view *view, struct expected *expected)
{
    struct record record = {.type = RECORD_EXITED, .job = view->id};

    record.exited.cause = (uint32_t)random_range(&world->random, EXIT_COMPLETED, EXIT_GPU_HANDLE);
    expected->gpu_ns += (int64_t)view->placement_count * (world->now_ns - view->run->started_ns);
    require(fold(world, record));
    expected->oom_crashes += view->state == JOB_CRASHED && record.exited.cause == EXIT_GPU_OOM;
    expected->handle_crashes += view->state == JOB_CRASHED && record.exited.cause == EXIT_GPU_HANDLE;
}

static void live(struct world *world, struct job_view *view)
{
    struct expected *expected = &world->expected[view->wants->uid];
    struct record record = {.job = view->id};

    switch (view->state) {
    case JOB_QUEUED:
        record.type = random_range(&world->random, 0, 5) ? RECORD_PLACED : RECORD_CANCELLED;
        if (record.type == RECORD_PLACED)
            record.placed = (struct record_placed){
                .count = view->wants->gpus, .gpus = {0, 1, 2, 3}, .reserved_bytes = GIB, .fence_bytes = -1};
        require(fold(world, record));
        break;
    case JOB_PLACED:
        record.type = RECORD_STARTED;
        expected->launched += view->run->first_started_ns < 0;
        expected->wait_ns += view->run->first_started_ns < 0 ? world->now_ns - view->submitted_ns : 0;
        require(fold(world, record));
        break;
    case JOB_RUNNING:
        memory_usage_set(&job_view_run(view)->held, world->now_ns, random_range(&world->random, 0, 80 * GIB), 0);
        int64_t mj = random_range(&world->random, 0, 100000);
        job_view_run(view)->energy_mj += mj;
        expected->energy_mj += mj;
        if (random_range(&world->random, 0, 3) == 0)
            leave(world, view, expected);
        break;
    case JOB_CRASHED:
        record.type = random_range(&world->random, 0, 2) ? RECORD_REQUEUED : RECORD_GAVE_UP;
        record.requeued.retry = record.type == RECORD_REQUEUED && random_range(&world->random, 0, 1);
        expected->retries += record.requeued.retry;
        require(fold(world, record));
        break;
    default:
        return;
    }
    if (job_state_ended(view->state))
        end(world, view);
}

static struct job_view *any_view(struct world *world, bool ended)
{
    struct job_view *found = NULL;
    int64_t seen = 0;

    for (struct job_view *view = world->daemon.views.jobs; view; view = view->hh.next)
        if (job_state_ended(view->state) == ended && random_range(&world->random, 0, seen++) == 0)
            found = view;
    return found;
}

/* ---- Properties ---- */

static void check_total(const struct total *total, void *user)
{
    struct world *world = user;
    const struct expected *expected = &world->expected[total->uid];
    const int64_t *now = (const int64_t *)&total->sums;
    int64_t *shown = (int64_t *)&world->shown[total->uid];
    int64_t running_ns = 0;

    require(total->uid < USERS);
    world->seen |= 1u << total->uid;
    for (const struct job_view *view = world->daemon.views.jobs; view; view = view->hh.next)
        if (view->wants->uid == total->uid && view->state == JOB_RUNNING)
            running_ns += (int64_t)view->placement_count * (world->now_ns - view->run->started_ns);
    require(total->submitted == expected->submitted && total_ended(total) == expected->ended);
    require(total->sums.launched == expected->launched && total->sums.wait_ns == expected->wait_ns);
    require(total->sums.gpu_ns == expected->gpu_ns + running_ns);
    require(total->sums.energy_mj == expected->energy_mj);
    require(total->sums.oom_crashes == expected->oom_crashes && total->sums.retries == expected->retries);
    require(total->sums.handle_crashes == expected->handle_crashes);
    require(total->sums.wait_le[HISTORY_WAIT_BOUNDS - 1] <= total->sums.launched);
    for (size_t i = 0; i < sizeof total->sums / sizeof *now; i++) {
        require(now[i] >= shown[i]);
        shown[i] = now[i];
    }
}

static void check(struct world *world)
{
    world->seen = 0;
    totals_read(&world->daemon, world->now_ns, check_total, world);
    for (uint32_t uid = 0; uid < USERS; uid++)
        require(world->expected[uid].submitted == 0 || world->seen & 1u << uid);
}

/* The ended jobs are known from the store alone. */
static void restart(struct world *world)
{
    struct error err = {{0}};
    struct job_view *view, *next;

    HASH_ITER (hh, world->daemon.views.jobs, view, next) {
        view->changed = false;
        if (job_state_ended(view->state))
            views_remove(&world->daemon.views, view);
    }
    store_close(world->daemon.store);
    totals_free(world->daemon.totals);
    open_store(world);
    require(totals_load(&world->daemon, &err) == 0);
}

static void forget(struct world *world)
{
    struct store_batch *batch = store_batch_new();

    world->forgotten_ns = random_range(&world->random, world->forgotten_ns, world->now_ns);
    store_batch_forget_history(batch, world->forgotten_ns, (uint32_t)random_range(&world->random, 1, 5));
    commit(world, batch);
}

static void live_on(struct world *world)
{
    struct job_view *view;
    unsigned alive = 0;

    world->now_ns += random_range(&world->random, 0, 100 * NS_PER_SEC);
    for (view = world->daemon.views.jobs; view; view = view->hh.next) {
        alive += !job_state_ended(view->state);
        job_view_run(view)->seen_ns = world->now_ns;
    }
    switch (random_range(&world->random, 0, 19)) {
    case 0:
        restart(world);
        break;
    case 1:
        view = any_view(world, true);
        if (view && view->ended_ns >= world->forgotten_ns)
            settle(world, view);
        forget(world);
        break;
    default:
        view = any_view(world, false);
        if (alive < MOST_ALIVE && (!view || random_range(&world->random, 0, 3) == 0))
            submit(world);
        else
            live(world, view);
    }
    check(world);
}

static void run_world(void)
{
    static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm", "store.mark", "lock"};
    struct world world = {
        .random = {seed}, .directory = "/tmp/carma-totals-XXXXXX", .now_ns = NS_PER_SEC, .daemon.core = core_new()};

    require(mkdtemp(world.directory) != NULL);
    open_store(&world);
    for (struct record gpu = {.type = RECORD_GPU_BACK, .gpu.total_bytes = GIB}; gpu.gpu.gpu < 4; gpu.gpu.gpu++)
        require(core_apply(world.daemon.core, &gpu, NULL) == 0);
    for (int step = 0; step < STEPS; step++)
        live_on(&world);
    store_close(world.daemon.store);
    totals_free(world.daemon.totals);
    core_free(world.daemon.core);
    views_release(&world.daemon.views);
    for (size_t i = 0; i < array_size(names); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", world.directory, names[i]);
        unlink(path);
    }
    rmdir(world.directory);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 6;

    for (seed = first; seed < first + seeds; seed++)
        run_world();
    printf("%" PRIu64 " seeds from %" PRIu64 " of %d steps\n", seeds, first, STEPS);
    return 0;
}
