/* The store's accounting: each ended job counts once, also when rows are put twice, renewed, forgotten, or are old. */

#include "store/history.h"
#include "store/store_internal.h"
#include "store_fixture.h"

static void on_done(int status, const char *error_text, void *user)
{
    if (status)
        fail_msg("%s", error_text);
    ++*(int *)user;
}

static void commit(struct store *store, struct store_batch *batch)
{
    int done = 0;

    store_commit(store, batch, on_done, &done);
    while (!done) {
        struct pollfd ready = {.fd = store_event_fd(store), .events = POLLIN};

        assert_int_equal(poll(&ready, 1, 20000), 1);
        store_dispatch(store);
    }
}

static struct store_history row_of(uint64_t job)
{
    return (struct store_history){.job = job,
                                  .uid = 1000,
                                  .state = "COMPLETED",
                                  .cause = "completed",
                                  .submitted_ns = 5 * NS_PER_SEC,
                                  .first_started_ns = 65 * NS_PER_SEC,
                                  .started_ns = 65 * NS_PER_SEC,
                                  .ended_ns = (int64_t)job * 100 * NS_PER_SEC,
                                  .wait_ns = 60 * NS_PER_SEC,
                                  .gpus = 2,
                                  .gpu_ns = 70 * NS_PER_SEC,
                                  .memory_mib_ms = 1 << 20,
                                  .memory_measured_mib_ms = 1 << 19,
                                  .energy_mj = 1000,
                                  .attempts = 2,
                                  .oom_crashes = 1,
                                  .handle_crashes = 2,
                                  .retries = 3,
                                  .reserved_bytes = 8 * GIB,
                                  .reservation_source = "declared",
                                  .estimate_bytes = -1,
                                  .peak_bytes = 7 * GIB,
                                  .user = "ana",
                                  .name = "résumé, \"x\"",
                                  .workload = "",
                                  .last_reserved_bytes = 9 * GIB,
                                  .last_reservation_source = "raised",
                                  .model = "",
                                  .account = job % 2 ? "thesis" : NULL,
                                  .tags = job % 2 ? "a,bc" : NULL};
}

STORE_TEST(test_a_row_is_put_once_and_its_energy_renewed)
{
    struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    struct store_history row = row_of(7);

    store_batch_held(batch, &(struct store_held){.job = 7, .at_ns = 1, .bytes = 2, .mib_ms = 3});
    store_batch_held(batch, &(struct store_held){.job = 8, .at_ns = 1, .bytes = 2, .mib_ms = 3});
    store_batch_history(batch, &row);
    commit(store, batch);
    row.state = "FAILED";
    row.energy_mj = 5;
    batch = store_batch_new();
    store_batch_history(batch, &row); /* again: existing rows stay */
    store_batch_history_energy(batch, 7, 1250);
    store_batch_history_energy(batch, 9, 1250); /* which has no row */
    commit(store, batch);
    store_close(store);
    assert_rows("SELECT * FROM history",
                "7|1000|COMPLETED|completed|5000000000|65000000000|65000000000|700000000000|60000000000|2|70000000000|"
                "1048576|524288|1250|2|1|2|3|8589934592|declared|-1|-|7516192768|ana|résumé, "
                "\"x\"||9663676416|raised||0|0|0|thesis|a,bc\n");
    assert_rows("SELECT * FROM total", "1000|ana|1|0|0|0|0|0|0|1|60000000000|0|0|1|1|1|1|1|1|1|1|1|1|1|70000000000|"
                                       "1048576|1250|1|2|3|0|0\n");
    assert_rows("SELECT * FROM held", "8|1|2|0|3|0\n");
}

static int take_sums(uint32_t uid, const char *user, const struct history_sums *sums, void *user_data)
{
    struct history_sums *all = user_data;

    assert_true(uid < 4);
    assert_string_equal(user, "ana");
    all[uid] = *sums;
    return 0;
}

static void load_sums(struct history_sums all[static 4])
{
    CLEANUP(close_store) struct store *store = open_store();

    memset(all, 0, 4 * sizeof *all);
    fail_if(store_load_sums(store, take_sums, all, &trouble), trouble);
}

/* Forgotten rows stay in the sums; the oldest go first, and not more than asked for. */
STORE_TEST(test_rows_are_forgotten_and_sums_stay)
{
    struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    struct history_sums sums[4];

    for (uint64_t job = 1; job <= 5; job++) {
        struct store_history row = row_of(6 - job);
        row.job = job;
        row.uid = 1;
        store_batch_history(batch, &row);
    }
    commit(store, batch);
    batch = store_batch_new();
    store_batch_forget_history(batch, 450 * NS_PER_SEC, 2);
    commit(store, batch);
    assert_rows("SELECT job FROM history ORDER BY job", "1\n2\n3\n");
    batch = store_batch_new();
    store_batch_forget_history(batch, 400 * NS_PER_SEC, 100);
    commit(store, batch);
    store_close(store);
    assert_rows("SELECT job FROM history ORDER BY job", "1\n2\n");
    load_sums(sums);
    assert_int_equal(sums[1].ended[JOB_COMPLETED], 5);
    assert_int_equal(sums[1].energy_mj, 5000);
}

/* A sum that a damaged row makes too large stays at the largest number, and later jobs are stored all the same. Where
 * a user's sum of waits has stopped, there is nothing wrong with that. */
STORE_TEST(test_sums_do_not_overflow)
{
    struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    struct history_sums sums[4], expected = {0};
    uint64_t rows;

    for (uint64_t job = 1; job <= 3; job++) {
        struct store_history row = row_of(job);
        row.uid = 2;
        row.gpu_ns = row.memory_mib_ms = row.energy_mj = row.wait_ns = INT64_MAX - 5;
        store_batch_history(batch, &row);
        history_sums_add(&expected, &row);
    }
    commit(store, batch);
    store_close(store);
    load_sums(sums);
    assert_memory_equal(&sums[2], &expected, sizeof expected);
    assert_int_equal(sums[2].gpu_ns, INT64_MAX);
    fail_if(store_check_history(directory, &rows, &trouble) != 0, trouble);
    assert_int_equal(rows, 3);
    run_sql("UPDATE total SET wait_ns = wait_ns - 1");
    assert_int_equal(store_check_history(directory, &rows, &trouble), -EBADMSG);
}

/* A store that a daemon of form 4 wrote: its five ended jobs are in the accounting, the sixth runs on. */
STORE_TEST(test_form_4_is_brought_up_to_date)
{
    CLEANUP(free_ptr) char *sql = file_text(GOLDEN_FORM_4);

    run_sql(sql);
    store_close(open_store());
    assert_rows(
        "SELECT job, uid, user, name, state, cause, gpus, attempts, wait_ns, gpu_ns, memory_mib_ms, energy_mj,"
        " oom_crashes, reserved_bytes, reservation_source, estimate_bytes, estimator, peak_bytes,"
        " last_reservation_source FROM history",
        "1|0|root|hello|COMPLETED|completed|1|1|3000668700|52030051200|-1|20678771|0|-1|unknown|-1|-|4294967296|"
        "unknown\n"
        "2|0|root|broken|FAILED|failed|1|1|1583359440|116302740|-1|182130|0|3221225472|declared|-1|-|0|unknown\n"
        "3|0|root|später; \"quoted\"|COMPLETED|completed|2|1|6106696500|144130054440|-1|26374547|0|6442450944|"
        "declared|5905580032|replay|5368709120|unknown\n"
        "4|0|root|never|CANCELLED|-|1|0|-1|0|-1|0|0|-1|unknown|-1|-|0|unknown\n"
        "5|0|root|hungry|GPU_OOM|gpu_oom|1|2|1948174440|54992968800|-1|15421111|2|2147483648|declared|-1|-|"
        "77309411328|unknown\n");
    assert_rows("SELECT uid, user, completed, failed, gpu_oom, cancelled, lost, launched, wait_ns, wait_1s, wait_10s,"
                " gpu_ns, memory_mib_ms, energy_mj, oom_crashes FROM total",
                "0|root|2|1|1|1|0|4|12638899080|0|4|251269377180|0|62656559|2\n");
}

/* Damage is the load's to tell of: it does not stand in the way of the new form. */
STORE_TEST(test_damage_of_form_4_stops_nothing)
{
    CLEANUP(free_ptr) char *sql = file_text(GOLDEN_FORM_4);

    run_sql(sql);
    run_sql("UPDATE job SET body = substr(body, 1, 90) WHERE job = 1;"
            "UPDATE job SET body = replace(body, '\"state\":7', '\"state\":99') WHERE job = 2;"
            "UPDATE job SET body = '[{}, 7]' WHERE job = 4;"
            "UPDATE job SET body = json_set(body, '$.submitted', '{', '$.exited', 9, '$.placements', 'x',"
            " '$.claim_bytes', json('[1]'), '$.user', null,"
            " '$.ran_gpu_ns', 'many', '$.submitted_ns', -9223372036854775807) WHERE job = 5;"
            "UPDATE spec SET body = '}' WHERE job = 3; DELETE FROM spec WHERE job = 5");
    store_close(open_store());
    assert_rows(
        "SELECT job, uid, user, name, state, cause, gpu_ns, peak_bytes, wait_ns = 9223372036854775807 FROM history",
        "3|0|root||COMPLETED|completed|144130054440|5368709120|0\n"
        "5|0|||GPU_OOM|-|0|0|1\n");
}

/* ---- Questions ---- */

#define FAR INT64_MAX
static const struct store_deadline patient = {.deadline_ns = FAR};
static const struct store_history_filter everything = {
    .since_ns = INT64_MIN, .until_ns = INT64_MAX, .most = 100, .latest_first = true};

struct answer {
    struct strbuf jobs; /* "5 3 " */
    int stop_at;        /* how many are taken before it is refused; 0: all are */
    int taken;
};

static int take_job(const struct store_history *row, void *user, struct error *err)
{
    struct answer *answer = user;

    strbuf_printf(&answer->jobs, "%" PRIu64 " ", row->job);
    return ++answer->taken == answer->stop_at ? error_set(err, EINTR, "enough") : 0;
}

static void assert_found(const struct store_history_filter *filter, const char *jobs)
{
    struct answer answer = {{0}};

    strbuf_puts(&answer.jobs, "");
    fail_if(store_read_history(directory, filter, &patient, take_job, &answer, &trouble), trouble);
    assert_string_equal(answer.jobs.text, jobs);
    strbuf_release(&answer.jobs);
}

/* Six jobs, of two users and two names; 2 and 3 end at the same time, 6 before all others. */
static void fill(void)
{
    CLEANUP(close_store) struct store *store = open_store();
    struct store_batch *batch = store_batch_new();

    for (uint64_t job = 1; job <= 6; job++) {
        struct store_history row = row_of(job == 3 ? 2 : job);
        row.job = job;
        row.uid = job % 2 ? 1000 : 1001;
        row.user = job % 2 ? "ana" : "bo";
        row.name = job <= 3 ? "train-a" : "%_[train";
        row.state = job == 5 ? "FAILED" : "COMPLETED";
        if (job == 6)
            row.ended_ns = NS_PER_SEC;
        store_batch_history(batch, &row);
    }
    commit(store, batch);
}

/* A sum of 0 is not asked for. */
static const struct store_history_filter *asked(struct store_history_filter filter)
{
    static struct store_history_filter asked;

    asked = filter;
    asked.since_ns = filter.since_ns ? filter.since_ns : INT64_MIN;
    asked.until_ns = filter.until_ns ? filter.until_ns : INT64_MAX;
    asked.most = filter.most ? filter.most : 100;
    asked.latest_first = true;
    return &asked;
}

#define ASK(...) asked((struct store_history_filter){__VA_ARGS__})

STORE_TEST(test_rows_are_found)
{
    fill();
    assert_found(&everything, "5 4 3 2 1 6 ");
    assert_found(ASK(.since_ns = 200 * NS_PER_SEC, .until_ns = 500 * NS_PER_SEC), "4 3 2 ");
    assert_found(ASK(.user = "ana"), "5 3 1 ");
    assert_found(ASK(.user = "1001"), "4 2 6 ");
    assert_found(ASK(.user = "nobody"), "");
    assert_found(ASK(.user = "77777777777777777777"), "");
    assert_found(ASK(.name = "train-?"), "3 2 1 ");
    assert_found(ASK(.name = "%_[train"), ""); /* a pattern that has no end */
    assert_found(ASK(.name = "%_[[]*"), "5 4 6 ");
    assert_found(ASK(.state = "FAILED"), "5 ");
    assert_found(ASK(.account = "thesis"), "5 1 ");
    assert_found(ASK(.tag = "bc"), "5 1 ");
    assert_found(ASK(.tag = "b"), "");
    assert_found(ASK(.job = 4), "4 ");
    assert_found(ASK(.user = "bo", .name = "t*", .state = "COMPLETED", .until_ns = 300 * NS_PER_SEC), "2 ");
}

/* Page by page nothing is left out or told twice, also where jobs ended at the same time. */
STORE_TEST(test_pages_go_on_where_the_last_ended)
{
    fill();
    assert_found(ASK(.most = 3), "5 4 3 ");
    assert_found(ASK(.most = 2, .after = 3), "2 1 ");
    assert_found(ASK(.after = 1), "6 ");
    assert_found(ASK(.after = 6), "");
    assert_found(ASK(.after = 99), "");
    assert_found(ASK(.after = 4, .user = "ana"), "3 1 ");
}

static int take_sum(const struct store_history *row, void *user, struct error *err)
{
    struct history_sums *sums = user;

    assert_string_equal(row->user, "");
    assert_string_equal(row->name, sums->launched < 3 ? "train-a" : "%_[train");
    history_sums_add(sums, row);
    return 0;
}

/* Columns that sums do not need are not read. */
STORE_TEST(test_rows_for_sums)
{
    struct history_sums sums = {0};

    fill();
    assert_int_equal(
        store_read_history(directory,
                           &(struct store_history_filter){
                               .since_ns = INT64_MIN, .until_ns = INT64_MAX, .most = 100, .sums = true, .text = "name"},
                           &patient, take_sum, &sums, &trouble),
        0);
    assert_int_equal(sums.ended[JOB_COMPLETED], 5);
    assert_int_equal(sums.gpu_ns, 6 * 70 * NS_PER_SEC);
}

/* A question that takes too long, that nobody waits for any more, or that the caller has stopped, ends. */
STORE_TEST(test_questions_end)
{
    struct store_deadline none = {.deadline_ns = 0}, closing = {.deadline_ns = FAR};
    struct answer answer = {{0}}, two = {.stop_at = 2};
    const struct store_history_filter *asks;
    atomic_bool closed = true;

    fill();
    run_sql("WITH RECURSIVE n(i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
            " INSERT INTO history SELECT i, uid, state, cause, 1, 1, 1, i, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, -1, "
            "reservation_source, -1,"
            " NULL, 0, user, name, '', -1, 'unknown', '', -1, 0, 0, NULL, NULL FROM n, history WHERE job = 1");
    asks = ASK(.name = "*no", .most = 9999);
    assert_error(store_read_history(directory, asks, &none, take_job, &answer, &trouble), -ETIMEDOUT, "shorter span");
    closing.closing = &closed;
    assert_int_equal(store_read_history(directory, asks, &closing, take_job, &answer, &trouble), -ETIMEDOUT);
    assert_int_equal(answer.taken, 0);
    assert_int_equal(store_read_history(directory, &everything, &patient, take_job, &two, &trouble), -EINTR);
    assert_int_equal(two.taken, 2);
    strbuf_release(&two.jobs);
    strbuf_release(&answer.jobs);
}

static void assert_verdict(int code)
{
    uint64_t rows;

    assert_int_equal(store_check_history(directory, &rows, &trouble), code);
}

/* By one, and by a little more than a million, of numbers in between. */
STORE_TEST(test_verification_sees_sums_that_are_too_small)
{
    uint64_t rows;

    fill();
    assert_int_equal(store_check_history(directory, &rows, &trouble), 0);
    assert_int_equal(rows, 6);
    run_sql("UPDATE history SET gpu_ns = 1999999; UPDATE total SET gpu_ns = 1999999 *"
            " (SELECT count(*) FROM history WHERE history.uid = total.uid)");
    assert_verdict(0);
    run_sql("UPDATE total SET gpu_ns = gpu_ns - 1 WHERE uid = 1001");
    assert_verdict(-EBADMSG);
    run_sql("UPDATE total SET gpu_ns = gpu_ns - 1000001 WHERE uid = 1001");
    assert_verdict(-EBADMSG);
    run_sql("UPDATE total SET gpu_ns = gpu_ns + 1000002 WHERE uid = 1001; DELETE FROM history WHERE job < 3");
    assert_verdict(0); /* more may be forgotten */
    run_sql("UPDATE total SET gpu_ns = 1 WHERE uid = 1001");
    assert_verdict(-EBADMSG);
    assert_non_null(strstr(trouble.text, "the sums of user 1001 are less"));
    run_sql("DELETE FROM total");
    assert_verdict(-EBADMSG);
}
