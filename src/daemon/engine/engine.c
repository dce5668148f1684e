#include "daemon/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include "api/submission_text.h"
#include "base/handle.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "daemon/engine/snapshotter.h"
#include "daemon/engine/repeats.h"
#include "daemon/log.h"
#include "store/store.h"

#define RETRY_WALL_MS 1000 /* after a commit that failed */
#define TRIM_SPECS    1000 /* of a turn: the C library keeps their memory, on each thread, until it is told */

struct stored_spec {
    uint64_t job;
    char *json; /* owned; NULL: the job is withdrawn */
};

struct turn_listener {
    void (*done)(int status, const char *error, void *user);
    void *user;
};

struct engine_turn {
    struct engine *engine;
    struct record_list records; /* inputs, then decisions */
    size_t input_count;
    struct stored_spec *specs;
    size_t spec_count, spec_capacity;
    struct store_request request; /* id NULL: none; owned */
    uint64_t *ended;              /* jobs that an input of this turn ended */
    size_t ended_count, ended_capacity;
    struct turn_listener *listeners;
    size_t listener_count, listener_capacity;
    struct engine_turn *next;
};

struct engine {
    struct daemon *daemon;
    const struct engine_calls *calls; /* borrowed */
    struct engine_turn *current;
    struct engine_turn *first; /* committed in this order, not known to be stored yet */
    struct engine_turn *last;
    char *trouble;
    uint64_t decisions[RECORD_TYPE_COUNT]; /* since it began */
    uv_timer_t *wake;                      /* the core's next wake */
    uv_timer_t *retry;                     /* of commits */
};

static struct engine_turn *turn_new(struct engine *engine)
{
    struct engine_turn *turn = xcalloc(1, sizeof *turn);

    turn->engine = engine;
    return turn;
}

/* The jobs of an array stand side by side, and share their text. Called for all of them, the first first. */
static void free_spec(const struct engine_turn *turn, size_t i)
{
    char *json = turn->specs[i].json;

    turn->specs[i].json = NULL;
    if (i + 1 == turn->spec_count || turn->specs[i + 1].json != json)
        free(json);
}

static void turn_free(struct engine_turn *turn)
{
    if (!turn)
        return;
    for (size_t i = 0; i < turn->spec_count; i++)
        free_spec(turn, i);
    free(turn->specs);
    free((char *)turn->request.id);
    free(turn->ended);
    free(turn->listeners);
    record_list_release(&turn->records);
    free(turn);
}

static uv_timer_t *timer_new(struct engine *engine)
{
    uv_timer_t *timer = xmalloc(sizeof *timer);

    uv_timer_init(engine->daemon->loop, timer);
    timer->data = engine;
    return timer;
}

struct engine *engine_new(struct daemon *daemon, const struct engine_calls *calls)
{
    struct engine *engine = xcalloc(1, sizeof *engine);

    engine->daemon = daemon;
    engine->calls = calls;
    engine->current = turn_new(engine);
    engine->wake = timer_new(engine);
    engine->retry = timer_new(engine);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    uv_close((uv_handle_t *)engine->wake, free_handle);
    uv_close((uv_handle_t *)engine->retry, free_handle);
    turn_free(engine->current);
    for (struct engine_turn *turn = engine->first, *next; turn; turn = next) {
        next = turn->next;
        turn_free(turn);
    }
    free(engine->trouble);
    free(engine);
}

const char *engine_trouble(const struct engine *engine)
{
    return engine->trouble;
}

uint64_t engine_decisions(const struct engine *engine, uint32_t type)
{
    return engine->decisions[type];
}

/* A job that has ended is stored with its last readings. */
static void add_record(struct engine *engine, struct engine_turn *turn, const struct record *record)
{
    record_list_add(&turn->records, record);
    if (!engine->calls->applied(engine->daemon, record))
        return;
    array_reserve(turn->ended, turn->ended_capacity, turn->ended_count + 1);
    turn->ended[turn->ended_count++] = record->job;
}

int engine_input(struct engine *engine, const struct record *record, struct error *err)
{
    int status = core_apply(engine->daemon->core, record, err);

    if (status == 0)
        add_record(engine, engine->current, record);
    return status;
}

void engine_store_spec(struct engine *engine, uint64_t job, char *json)
{
    struct engine_turn *turn = engine->current;

    array_reserve(turn->specs, turn->spec_capacity, turn->spec_count + 1);
    turn->specs[turn->spec_count++] = (struct stored_spec){.job = job, .json = json};
}

void engine_store_request(struct engine *engine, const struct store_request *request)
{
    struct engine_turn *turn = engine->current;

    assert(!turn->request.id); /* a submission ends its turn */
    turn->request = *request;
    turn->request.id = xstrdup(request->id);
}

void engine_on_stored(struct engine *engine, void (*done)(int status, const char *error, void *user), void *user)
{
    /* Nothing new: no turn is made for it, which would be a record more. */
    struct engine_turn *turn = engine->current->records.count ? engine->current : engine->last;

    if (!turn || (turn == engine->last && engine->trouble)) {
        done(turn ? -EIO : 0, engine->trouble, user);
        return;
    }
    array_reserve(turn->listeners, turn->listener_capacity, turn->listener_count + 1);
    turn->listeners[turn->listener_count++] = (struct turn_listener){.done = done, .user = user};
}

static void tell_listeners(struct engine_turn *turn, int status, const char *error)
{
    for (size_t i = 0; i < turn->listener_count; i++)
        turn->listeners[i].done(status, error, turn->listeners[i].user);
    turn->listener_count = 0;
}

/* ---- Storing ---- */

static void on_stored(int status, const char *error, void *user);

static void commit(struct engine *engine, struct engine_turn *turn)
{
    struct store_batch *batch = store_batch_new();

    for (size_t i = 0; i < turn->spec_count; i++)
        store_batch_spec(batch, turn->specs[i].job, turn->specs[i].json ? turn->specs[i].json : SUBMISSION_WITHDRAWN);
    if (turn->request.id)
        store_batch_request(batch, &turn->request);
    for (size_t i = 0; i < turn->records.count; i++)
        store_batch_record(batch, &turn->records.items[i]);
    for (size_t i = 0; i < turn->ended_count; i++)
        engine->calls->store_ended(engine->daemon, batch, turn->ended[i]);
    store_commit(engine->daemon->store, batch, on_stored, turn);
}

static void on_retry(uv_timer_t *timer)
{
    struct engine *engine = timer->data;

    /* Retries only the oldest commit: with a full disk many may wait, and the others follow it. */
    if (engine->first)
        commit(engine, engine->first);
}

static void drop_spec(struct engine_turn *turn, uint64_t job)
{
    for (size_t i = 0; i < turn->spec_count; i++)
        if (turn->specs[i].job == job)
            free_spec(turn, i);
}

/* The submitter is told that nothing was accepted: the job must not run once the disk has space again, and nobody sees
 * it. Its end is of a later turn, which may not be stored: what is stored in its spec's place tells the next start. */
static void withdraw_submissions(struct engine *engine, struct engine_turn *turn)
{
    if (turn->request.id)
        repeats_drop(engine->daemon->repeats, turn->request.uid, turn->request.id);
    free((char *)turn->request.id);
    turn->request.id = NULL;
    for (size_t i = 0; i < turn->input_count; i++) {
        struct record cancelled = {
            .type = RECORD_CANCELLED, .at_ns = nodetime_now_ns(), .job = turn->records.items[i].job};
        if (turn->records.items[i].type != RECORD_SUBMITTED)
            continue;
        if (engine->calls->withdrawn(engine->daemon, cancelled.job))
            drop_spec(turn, cancelled.job);
        engine_input(engine, &cancelled, NULL);
    }
}

/* Nobody is kept waiting until the disk has space. */
static void fail_listeners(struct engine *engine, struct engine_turn *turn, const char *error)
{
    if (turn->listener_count) {
        tell_listeners(turn, -EIO, error);
        withdraw_submissions(engine, turn);
    }
}

static void on_failed(struct engine *engine, struct engine_turn *turn, const char *error)
{
    if (!engine->trouble) {
        daemon_log("cannot store: %s; new jobs are refused and nothing is started until it can", error);
        engine->trouble = xstrdup(error);
    }
    fail_listeners(engine, turn, error);
    uv_timer_start(engine->retry, on_retry, RETRY_WALL_MS, 0);
}

/* While the disk works. */
static void begin_early(struct engine *engine, const struct engine_turn *turn)
{
    for (size_t i = turn->input_count; i < turn->records.count; i++)
        if (turn->records.items[i].type == RECORD_PLACED)
            engine->calls->placed(engine->daemon, &turn->records.items[i]);
}

static void on_stored(int status, const char *error, void *user)
{
    struct engine_turn *turn = user;
    struct engine *engine = turn->engine;
    struct daemon *daemon = engine->daemon;
    bool trim;

    if (status != 0) {
        if (!daemon->stopping)
            on_failed(engine, turn, error);
        return;
    }
    engine->first = turn->next;
    if (!engine->first)
        engine->last = NULL;
    if (engine->trouble) {
        daemon_log("storing works again");
        free_ptr(&engine->trouble);
        for (struct engine_turn *waiting = engine->first; waiting; waiting = waiting->next)
            commit(engine, waiting);
    }
    for (size_t i = 0; i < turn->input_count; i++)
        if (turn->records.items[i].type == RECORD_SUBMITTED)
            engine->calls->submitted(daemon, turn->records.items[i].job);
    /* Once stopping, decisions are left to the next start, which finds them in the store. */
    for (size_t i = 0; i < turn->records.count && !daemon->stopping; i++)
        engine->calls->stored(daemon, &turn->records.items[i]);
    tell_listeners(turn, 0, NULL);
    trim = turn->spec_count >= TRIM_SPECS;
    turn_free(turn);
    if (trim)
        malloc_trim(0);
    if (!daemon->stopping && engine->current->records.count) /* a start that failed is an input; no other turn is due */
        engine_turn(engine);
}

/* ---- Turns ---- */

static void on_wake(uv_timer_t *timer)
{
    struct engine *engine = timer->data;

    engine_turn(engine);
}

static void set_wake(struct engine *engine, int64_t now_ns)
{
    int64_t wake_ns = core_next_wake_ns(engine->daemon->core, now_ns);

    if (wake_ns == INT64_MAX)
        uv_timer_stop(engine->wake);
    else /* a millisecond late rather than early, which would only come back here */
        uv_timer_start(engine->wake, on_wake, (uint64_t)(nodetime_to_wall_ns(wake_ns - now_ns) / NS_PER_MS + 1), 0);
}

void engine_turn(struct engine *engine)
{
    struct daemon *daemon = engine->daemon;
    struct engine_turn *turn = engine->current;
    int64_t now_ns = nodetime_now_ns();
    struct record_list decisions = {0};

    if (!engine->trouble) /* which nothing could be started for, and which would only pile up */
        engine->calls->ends(daemon);
    if (turn->records.count == 0) {
        /* Time has passed, which may be an input of its own. */
        struct record timer = {.type = RECORD_TIMER, .at_ns = now_ns};
        record_list_add(&turn->records, &timer);
    }
    turn->input_count = turn->records.count;
    core_decide(daemon->core, now_ns, &decisions);
    for (size_t i = 0; i < decisions.count; i++) {
        engine->decisions[decisions.items[i].type]++;
        add_record(engine, turn, &decisions.items[i]);
    }
    record_list_release(&decisions);
    engine->calls->decided(daemon);
    set_wake(engine, now_ns);
    if (turn->records.count == 1 && turn->records.items[0].type == RECORD_TIMER && turn->listener_count == 0) {
        turn->records.count = 0; /* nothing came of it: not worth storing */
        return;
    }
    engine->current = turn_new(engine);
    if (engine->last)
        engine->last->next = turn;
    else
        engine->first = turn;
    engine->last = turn;
    if (engine->trouble) {
        fail_listeners(engine, turn, engine->trouble);
    } else {
        commit(engine, turn);
        begin_early(engine, turn);
        snapshotter_count(daemon->snapshotter, turn->records.count);
    }
}
