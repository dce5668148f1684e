/* The part that a snapshot lets the store forget, and the rest when one is damaged. */
#include <sys/mman.h>

#include "store_fixture.h"

/* Records of job `job` at node time `at`, and its spec where it is the first of them. */
static void commit_record(struct store *store, uint64_t job, int64_t at, uint32_t type)
{
    struct store_batch *batch = store_batch_new();

    if (type == RECORD_HELD)
        store_batch_spec(batch, job, "{}");
    store_batch_record(batch, &(struct record){.type = type, .job = job, .at_ns = at});
    store_commit(store, batch, NULL, NULL);
}

/* A snapshot is told by the time until which it would wait. */
static void commit_snapshot(struct store *store, int64_t at, int64_t spacing)
{
    CLEANUP(record_list_release) struct record_list list = {0};
    struct store_batch *batch = store_batch_new();

    record_list_add(&list, &(struct record){.type = RECORD_WAITED, .at_ns = at, .waited.until_ns = at});
    store_batch_snapshot(batch, at, spacing, &list);
    store_commit(store, batch, NULL, NULL);
}

static void commit_end(struct store *store, uint64_t job, int64_t at)
{
    struct store_batch *batch = store_batch_new();

    store_batch_job(batch, job, job != 1, at, "{\"state\":\"ended\"}");
    store_commit(store, batch, NULL, NULL);
}

static void commit_dropped(uint64_t job, int64_t at)
{
    CLEANUP(close_store) struct store *store = open_store();
    struct store_batch *batch = store_batch_new();

    commit_end(store, job, at);
    commit_snapshot(store, at + 2, 0);
    store_batch_drop_spec(batch, job);
    store_commit(store, batch, NULL, NULL);
}

/* Bit by bit, one row of each kind at once. */
static void forget_some(int64_t before, int bits)
{
    CLEANUP(close_store) struct store *store = open_store();

    for (int i = 0; i < bits; i++) {
        struct store_batch *batch = store_batch_new();
        store_batch_forget(batch, before, 1);
        store_commit(store, batch, NULL, NULL);
    }
}

static void forget(int64_t before)
{
    forget_some(before, 9);
}

/* The result, in short: "spec 1,job 1,=40,@5" is the spec and the state of job 1, the snapshot made at 40, record 5. */
static int on_spec(uint64_t job, const char *json, void *user)
{
    strbuf_printf(user, "spec %" PRIu64 ",", job);
    return 0;
}

static int on_job(uint64_t job, uint64_t seq, const char *json, void *user)
{
    assert_string_equal(json, "{\"state\":\"ended\"}");
    strbuf_printf(user, "job %" PRIu64 ",", job);
    return 0;
}

static int on_record(uint64_t seq, const struct record *record, void *user)
{
    if (record->type == RECORD_WAITED)
        strbuf_printf(user, "=%" PRId64 ",", record->waited.until_ns);
    else
        strbuf_printf(user, "@%" PRIu64 ",", seq);
    return 0;
}

static void assert_loads(uint64_t most_ended, const char *expected)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct store_taker taker = {on_spec, on_job, on_record, &text, most_ended};
    struct store *store = open_store();

    strbuf_puts(&text, "");
    fail_if(store_load(store, &taker, &trouble), trouble);
    store_close(store);
    assert_string_equal(text.text, expected);
}

static void assert_reads(const char *expected)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    fail_if(store_read(directory, on_record, &text, &trouble), trouble);
    assert_string_equal(text.text, expected);
}

/* Five records with a snapshot after the second and one after the fourth. */
static void fill(void)
{
    CLEANUP(close_store) struct store *store = open_store();

    commit_record(store, 1, 10, RECORD_HELD);
    commit_record(store, 2, 20, RECORD_HELD);
    commit_snapshot(store, 20, 0);
    commit_record(store, 1, 30, RECORD_RELEASED);
    commit_record(store, 2, 40, RECORD_RELEASED);
    commit_end(store, 1, 30);
    commit_snapshot(store, 40, 0);
    commit_record(store, 2, 50, RECORD_CANCELLED);
}

STORE_TEST(test_the_newest_is_gone_on_from)
{
    fill();
    assert_loads(9, "spec 1,spec 2,job 1,=40,@5,");
    assert_loads(0, "spec 2,=40,@5,"); /* of those that have ended, none was wanted */
    assert_reads("@1,@2,@3,@4,@5,");
}

STORE_TEST(test_a_damaged_one_is_passed_over)
{
    fill();
    run_sql("UPDATE snapshot SET body = substr(body, 1, length(body) - 5) WHERE seq = 4");
    assert_loads(0, "spec 2,=20,@3,@4,@5,");
    run_sql("UPDATE snapshot SET body = ''");
    assert_loads(0, "spec 2,@1,@2,@3,@4,@5,");
}

static int add_energy(const char *gpu, uint64_t party, int64_t mj, void *user)
{
    *(int64_t *)user += mj;
    return 0;
}

/* A forgotten job's energy goes with it; nobody's and unmanaged processes' stays. */
static void assert_energy_mj(int64_t expected)
{
    CLEANUP(close_store) struct store *store = open_store();
    int64_t sum = 0;

    assert_int_equal(store_load_energy(store, NULL, add_energy, &sum, &trouble), 0);
    assert_int_equal(sum, expected);
}

STORE_TEST(test_what_is_old_is_forgotten)
{
    fill();
    run_sql("INSERT INTO energy VALUES ('GPU-1', 0, 1), ('GPU-1', -1, 10), ('GPU-1', 1, 100), ('GPU-1', 2, 1000)");
    assert_energy_mj(1111);
    forget(15); /* before both snapshots */
    assert_reads("@1,@2,@3,@4,@5,");
    forget(25); /* between the two snapshots */
    assert_reads("=20,@3,@4,@5,");
    assert_loads(9, "spec 1,spec 2,job 1,=40,@5,");
    forget(45);
    assert_reads("=40,@5,");
    assert_loads(9, "spec 2,=40,@5,");
    assert_energy_mj(1011);
}

/* The work of a daemon that goes on meanwhile. */
static int forget_and_take(uint64_t seq, const struct record *record, void *user)
{
    if (record->type == RECORD_WAITED)
        run_sql("DELETE FROM record WHERE seq <= 4; DELETE FROM snapshot WHERE seq < 4;");
    return on_record(seq, record, user);
}

STORE_TEST(test_a_reader_sees_one_moment)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    fill();
    forget(25);
    fail_if(store_read(directory, forget_and_take, &text, &trouble), trouble);
    assert_string_equal(text.text, "=20,@3,@4,@5,");
    assert_reads("=40,@5,");
}

/* Of job 1, which has ended, and of user 1's 2 and 3. */
STORE_TEST(test_the_latest_of_each_user_are_loaded)
{
    static const char *const rows[] = {"", "job 3,", "job 1,job 3,", "job 1,job 2,job 3,"};
    struct store *store = open_store();

    for (uint64_t job = 1; job <= 3; job++)
        commit_end(store, job, 10);
    store_close(store);
    for (uint64_t most = 0; most < array_size(rows); most++)
        assert_loads(most, rows[most]);
}

/* ---- A large one, in bits ---- */

#define BIT_JOBS 300
#define LINES    5000 /* more than a part */

static int count_job(uint64_t job, uint64_t seq, const char *json, void *user)
{
    uint64_t *count = user;

    assert_int_equal(seq, job == 1 ? 3 : 2); /* job 1 has ended since the mark, and stays so */
    assert_int_equal(strcmp(json, "{}") == 0, job != 1);
    count[0]++;
    return 0;
}

static int count_record(uint64_t seq, const struct record *record, void *user)
{
    uint64_t *count = user;

    if (record->type == RECORD_WAITED)
        assert_true(seq == 2 && record->waited.until_ns == (int64_t)++count[1]);
    else
        count[2]++;
    return 0;
}

/* What is there when carmad is killed after so many bits, while others' commits went on. */
STORE_TEST(test_one_in_bits_is_as_of_its_mark)
{
    static const uint64_t expected[][3] = {{1, 0, 3}, {200, 0, 3}, {BIT_JOBS, 0, 3}, {BIT_JOBS, LINES, 1}};

    for (size_t bits = 0; bits < array_size(expected); bits++) {
        CLEANUP(record_list_release) struct record_list list = {0};
        CLEANUP(close_fd) int fd = memfd_create("bits", MFD_CLOEXEC);
        struct store *store = (remove_directory(NULL), make_directory(NULL), open_store());
        struct store_batch *mark = store_batch_new(), *whole = store_batch_new(), *bit;
        uint64_t found[3] = {0};
        struct store_taker taker = {NULL, count_job, count_record, found, 9};

        commit_record(store, 1, 10, RECORD_HELD);
        commit_record(store, 2, 20, RECORD_HELD);
        store_batch_mark(mark);
        store_commit(store, mark, NULL, NULL);
        for (uint64_t job = 1; job <= BIT_JOBS; job++)
            store_batch_job(whole, job, 0, -1, "{}");
        for (int64_t at = 1; at <= LINES; at++)
            record_list_add(&list, &(struct record){.type = RECORD_WAITED, .at_ns = at, .waited.until_ns = at});
        store_batch_snapshot(whole, 20, 0, &list);
        fail_if(store_batch_save(whole, fd, &trouble), trouble);
        store_batch_free(whole);
        commit_record(store, 1, 30, RECORD_CANCELLED);
        commit_end(store, 1, 30);
        lseek(fd, 0, SEEK_SET);
        for (size_t i = 0; i < bits && (bit = store_batch_next(fd)); i++)
            store_commit(store, bit, NULL, NULL);
        store_close(store);
        store = open_store();
        fail_if(store_load(store, &taker, &trouble), trouble);
        store_close(store);
        assert_memory_equal(found, expected[bits], sizeof found);
    }
    /* Its parts are forgotten with it: NULL is refused. */
    run_sql("DELETE FROM snapshot");
    forget(5);
    run_sql("INSERT INTO meta SELECT 'parts', iif(count(*), NULL, 0) FROM part");
}

/* Numbers go on where everything was forgotten. */
STORE_TEST(test_numbers_are_not_given_again)
{
    static const char *const left[] = {"INSERT INTO meta SELECT 'jobs', iif(count(*) = 1, 0, NULL) FROM job",
                                       "INSERT INTO meta SELECT 'specs', iif(count(*) = 1, 0, NULL) FROM spec",
                                       "INSERT INTO meta SELECT 'records', iif(count(*) = 4, 0, NULL) FROM record"};

    fill();
    struct store *store = open_store();
    commit_end(store, 2, 50);
    commit_snapshot(store, 60, 0);
    store_close(store);
    forget_some(70, 1);
    for (size_t i = 0; i < array_size(left); i++)
        run_sql(left[i]);
    forget(70);
    assert_loads(9, "=60,");
    store = open_store();
    assert_int_equal(store_last_job(store), 2);
    commit_record(store, 3, 80, RECORD_HELD);
    store_close(store);
    assert_loads(9, "spec 3,=60,@6,");
    assert_reads("=60,@6,");
    commit_dropped(3, 90); /* its submission goes before it is forgotten */
    forget(95);
    assert_loads(9, "=92,");
    store = open_store();
    assert_int_equal(store_last_job(store), 3);
    store_close(store);
}

STORE_TEST(test_few_are_kept)
{
    struct store *store = open_store();

    for (int64_t at = 10; at <= 100; at += 10) {
        commit_record(store, (uint64_t)at, at, RECORD_HELD);
        commit_snapshot(store, at, 45);
    }
    store_close(store);
    run_sql("CREATE TABLE seen AS SELECT group_concat(at_ns) AS all_at FROM (SELECT at_ns FROM snapshot ORDER BY seq)");
    /* one in 45, which the log may begin with one day, and the latest two */
    run_sql("CREATE TRIGGER t BEFORE INSERT ON seen BEGIN SELECT raise(ABORT, 'others are kept')"
            " WHERE (SELECT all_at FROM seen) != '10,60,90,100'; END;"
            "INSERT INTO seen VALUES ('')");
}
