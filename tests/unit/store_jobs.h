/* For tests of the store: committed jobs, and their state after a load. */
#ifndef CARMA_TESTS_STORE_JOBS_H
#define CARMA_TESTS_STORE_JOBS_H

#include "store_fixture.h"

#define MANY 200

static inline void assert_refused(int code, const char *says)
{
    struct store *store = NULL;
    struct error err = {{0}};

    assert_int_equal(store_open(directory, &store, &err), code);
    assert_null(store);
    assert_null(strchr(err.text, '\n'));
    assert_non_null(strstr(err.text, directory));
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* The reports to `done`, in their order. */
struct outcome {
    int count;
    int status[MANY];
    int number[MANY];
    char text[512];
};
struct ticket {
    struct outcome *outcome;
    int number;
};

static inline void on_done(int status, const char *error_text, void *user)
{
    struct ticket *ticket = user;
    struct outcome *outcome = ticket->outcome;

    assert_true(outcome->count < MANY);
    assert_int_equal(status == 0, error_text == NULL);
    snprintf(outcome->text, sizeof outcome->text, "%s", error_text ? error_text : "");
    outcome->status[outcome->count] = status;
    outcome->number[outcome->count++] = ticket->number;
    free(ticket);
}

static inline struct record record_of(uint64_t job)
{
    return (struct record){.type = RECORD_HELD, .job = job, .at_ns = (int64_t)job * 10};
}

/* One batch of a spec and two records of the job. */
static inline void commit_job(struct store *store, uint64_t job, struct outcome *outcome)
{
    struct ticket *ticket = xmalloc(sizeof *ticket);
    struct store_batch *batch = store_batch_new();
    struct record held = record_of(job), released = record_of(job);
    char spec[64];

    released.type = RECORD_RELEASED;
    snprintf(spec, sizeof spec, "{\"name\":\"job %" PRIu64 "\"}", job);
    store_batch_spec(batch, job, spec);
    store_batch_record(batch, &held);
    store_batch_record(batch, &released);
    *ticket = (struct ticket){outcome, (int)job};
    store_commit(store, batch, on_done, ticket);
}

static inline void wait_for(struct store *store, struct outcome *outcome, int count)
{
    while (outcome->count < count) {
        struct pollfd ready = {.fd = store_event_fd(store), .events = POLLIN};

        assert_int_equal(poll(&ready, 1, 20000), 1);
        store_dispatch(store);
    }
}

/* The next that is told of. */
static inline void commit_and_wait(struct store *store, uint64_t job, struct outcome *outcome)
{
    commit_job(store, job, outcome);
    wait_for(store, outcome, outcome->count + 1);
}

/* The result of a load: jobs in the order of their specs, and whether the records are those of commit_job. */
struct loaded {
    int specs;
    uint64_t jobs[MANY];
    uint64_t records;
};

static inline int on_spec(uint64_t job, const char *json, void *user)
{
    struct loaded *loaded = user;
    char expected[64];

    assert_int_equal(loaded->records, 0);
    snprintf(expected, sizeof expected, "{\"name\":\"job %" PRIu64 "\"}", job);
    assert_string_equal(json, expected);
    loaded->jobs[loaded->specs++] = job;
    return 0;
}

static inline int on_record(uint64_t seq, const struct record *record, void *user)
{
    struct loaded *loaded = user;
    struct record expected = record_of(loaded->jobs[(seq - 1) / 2]);

    expected.type = seq % 2 ? RECORD_HELD : RECORD_RELEASED;
    assert_int_equal(seq, ++loaded->records);
    assert_int_equal(record->type, expected.type);
    assert_int_equal(record->job, expected.job);
    assert_int_equal(record->at_ns, expected.at_ns);
    return 0;
}

static inline struct loaded load(struct store *store)
{
    struct loaded loaded = {0};
    struct error err = {{0}};
    struct store_taker taker = {.on_record = on_record, .on_spec = on_spec, .user = &loaded, .most_ended = MANY};

    fail_if(store_load(store, &taker, &err), err);
    assert_int_equal(loaded.records, loaded.specs * 2);
    return loaded;
}

static inline struct loaded reopen_and_load(void)
{
    struct store *store = open_store();
    struct loaded loaded = load(store);

    store_close(store);
    return loaded;
}

static inline void fill(int jobs)
{
    struct store *store = open_store();
    struct outcome outcome = {0};

    for (int job = 1; job <= jobs; job++)
        commit_job(store, (uint64_t)job, &outcome);
    store_close(store);
}

#endif
