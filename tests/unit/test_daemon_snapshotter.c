/* Forgetting with a snapshot: little enough not to hold up the writer, and more than can have come since the last. */
#include "store_fixture.h"

#include "daemon/engine/engine.h"
#include "daemon/engine/snapshotter.h"
#include "daemon/log.h"
#include "store/history.h"

#define RETENTION_NS (60 * NS_PER_SEC)

/* Lines for the operator, in place of log.c's. None is to come. */
void daemon_log(const char *format, ...)
{
    fail_msg("logged: %s", format);
}

static void on_stored(int status, const char *error_text, void *user)
{
    if (status != 0)
        fail_msg("%s", error_text);
    *(bool *)user = true;
}

/* Rows of jobs that ended in this order, the last of them `youngest_ns` ago. */
static void add_rows(struct store *store, uint64_t count, int64_t youngest_ns)
{
    struct store_batch *batch = store_batch_new();
    bool stored = false;

    for (uint64_t job = 1; job <= count; job++)
        store_batch_history(
            batch, &(struct store_history){.job = job,
                                           .state = "COMPLETED",
                                           .ended_ns = nodetime_now_ns() - youngest_ns - (int64_t)(count - job),
                                           .reservation_source = "",
                                           .last_reservation_source = "",
                                           .model = "",
                                           .user = "",
                                           .name = "",
                                           .workload = ""});
    store_commit(store, batch, on_stored, &stored);
    while (!stored) {
        struct pollfd ready = {.fd = store_event_fd(store), .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        store_dispatch(store);
    }
}

static bool told;

/* No job is known here. */
static void store_changed(struct daemon *daemon, struct store_batch *batch)
{
    assert_null(daemon->views.jobs);
    assert_non_null(batch);
}

static void changed_taken(struct daemon *daemon)
{
    assert_null(daemon->views.jobs);
}

static void changed_stored(struct daemon *daemon, bool stored, int64_t forgotten_before_ns)
{
    assert_null(daemon->views.jobs);
    assert_true(stored);
    told = true;
    assert_true(forgotten_before_ns < nodetime_now_ns());
}

static const struct engine_calls calls = {
    .store_changed = store_changed, .changed_taken = changed_taken, .changed_stored = changed_stored};

/* The number of rows left behind a snapshot that comes after a number of records. */
static uint64_t rows_left(uint64_t rows, int64_t youngest_ns, size_t records)
{
    struct daemon daemon = {.loop = uv_default_loop(),
                            .config = {.retention_ns = RETENTION_NS, .history_retention_ns = 1}};
    uint64_t left;

    make_directory(NULL);
    fail_if(store_open(directory, &daemon.store, &trouble), trouble);
    daemon.core = core_new();
    daemon.snapshotter = snapshotter_new(&daemon, &calls);
    add_rows(daemon.store, rows, youngest_ns);
    snapshotter_count(daemon.snapshotter, records);
    for (told = records < 250; !told; store_dispatch(daemon.store))
        uv_run(daemon.loop, UV_RUN_NOWAIT);
    uint64_t transactions = store_transactions(daemon.store);
    store_close(daemon.store);
    assert_int_equal(store_check_history(directory, &left, &trouble), 0);
    /* Beside add_rows: a large one has a mark and a bit. Of old rows, 200 are forgotten at once. */
    assert_int_equal(transactions, 1 + (records >= 250) + (records >= 500) + (rows - left) / 200);
    snapshotter_free(daemon.snapshotter);
    uv_run(daemon.loop, UV_RUN_DEFAULT);
    core_free(daemon.core);
    remove_directory(NULL);
    return left;
}

TEST(test_the_history_is_forgotten_bit_by_bit)
{
    assert_int_equal(rows_left(5000, 2 * RETENTION_NS, 5000), 0);
    assert_int_equal(rows_left(5000, 2 * RETENTION_NS, 250), 0);
}

TEST(test_what_is_young_stays)
{
    assert_int_equal(rows_left(300, 0, 250), 300);
    assert_int_equal(rows_left(300, 2 * RETENTION_NS, 249), 300); /* no snapshot is due */
}
