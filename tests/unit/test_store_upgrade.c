/* Stores of earlier versions are brought to the present words once, and lose nothing by it. */
#include "store_fixture.h"

#include "api/record_json.h"
#include "core/core.h"
#include "core/snapshot.h"

static void make_store_of_0_2(void)
{
    CLEANUP(free_ptr) char *sql = file_text(GOLDEN_STORE_0_2);

    run_sql(sql);
}

/* ---- What the records lead to ---- */

static int apply(uint64_t seq, const struct record *record, void *core)
{
    fail_if(core_apply(core, record, &trouble), trouble);
    return 0;
}

/* As text, and then as a snapshot in the store. */
static char *replay(void)
{
    CLEANUP(record_list_release) struct record_list records = {0};
    CLEANUP(close_store) struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    struct core *core = core_new();

    fail_if(store_load(store, &(struct store_taker){.on_record = apply, .user = core}, &trouble), trouble);
    core_snapshot(core, 1, &records);
    store_batch_snapshot(batch, 1, 0, &records);
    store_commit(store, batch, NULL, NULL);
    char *dump = core_dump(core);
    core_free(core);
    return dump;
}

STORE_TEST(test_a_store_of_0_2_replays_byte_for_byte)
{
    make_store_of_0_2();
    CLEANUP(free_ptr) char *dump = replay(), *again = replay();
    assert_string_equal(dump, again);
    expect_file(GOLDEN_DUMP_0_2, dump);
}

/* The last statement fails, when all else has been done: the store is as it was, and is brought later. */
STORE_TEST(test_a_step_that_fails_leaves_the_old_store)
{
    struct store *store;

    make_store_of_0_2();
    run_sql("CREATE TRIGGER held_up BEFORE UPDATE ON job BEGIN SELECT RAISE(ABORT, 'held up'); END");
    assert_error(store_open(directory, &store, &trouble), -EEXIST, "held up");
    assert_rows("SELECT user_version, (SELECT count(*) FROM record WHERE body LIKE '%\"claim_bytes\"%'),"
                " (SELECT sum(recoveries) FROM history) FROM pragma_user_version",
                "6|31|1\n");
    run_sql("DROP TRIGGER held_up");
    store_close(open_store());
    assert_rows("SELECT count(*) FROM record WHERE body LIKE '%claim_%'", "0\n");
}

/* ---- Each record ---- */

static int put(uint64_t seq, const struct record *record, void *out)
{
    fail_if(record_json_write(record, out, &trouble), trouble);
    strbuf_puts(out, "\n");
    return 0;
}

#define HEAD(type, job) "{\"type\":\"" type "\",\"at_ns\":1,\"job\":" #job
#define PLACED(bytes)                                                                                                  \
    HEAD("placed", 8)                                                                                                  \
    ",\"count\":1,\"gpus\":[0],\"claim_bytes\":" bytes ",\"slowdown_permille\":1000,\"shared\":false,\"recovery\":"    \
    "true}"
#define STATE(more)                                                                                                    \
    HEAD("state_job", 9)                                                                                               \
    ",\"uid\":0,\"gpus\":1,\"wanted_bytes\":7,\"claim_source\":1,\"headed_ns\":4,\"workload\":\"w\","                  \
    "\"setbacks\":3,\"claim_bytes\":7" more "}"

/* Job 8 of that store has requested nothing; its `claim_source` is 0. */
static const struct {
    const char *was, *is;
} of_records[] = {
    {PLACED("-1"), HEAD("placed", 8) ",\"count\":1,\"gpus\":[0],\"reserved_bytes\":-1,\"reservation_source\":0,"
                                     "\"threads_percent\":0,\"fence_bytes\":-1,\"slowdown_permille\":1000,\"share\":0,"
                                     "\"shared\":false,\"retry\":true}"},
    {PLACED("5"), "\"reserved_bytes\":5,\"reservation_source\":4,"},
    {HEAD("requeued", 8) ",\"recovery\":true,\"crashes\":1,\"claim_bytes\":5}",
     HEAD("requeued", 8) ",\"retry\":true,\"crashes\":1,\"reserved_bytes\":5,\"reservation_source\":6,\"unfenced\":"
                         "false,\"overuser\":0}"},
    {HEAD("trimmed", 9) ",\"claim_bytes\":5}", HEAD("shrunk", 9) ",\"reserved_bytes\":5,\"reservation_source\":5}"},
    {HEAD("trimmed", 9) ",\"claim_bytes\":5,\"claim_source\":3}", ",\"reserved_bytes\":5,\"reservation_source\":3}"},
    {HEAD("suspended", 9) "}", HEAD("commanded", 9) ",\"command\":3,\"argument\":0,\"uid\":0}"},
    {HEAD("lost", 9) "}", HEAD("lost", 9) ",\"final\":true}"},
    {HEAD("gave_up", 9) "}", HEAD("gave_up", 9) ",\"memory\":true,\"cause\":0}"},
    {HEAD("strayed", 9) ",\"bytes\":5}", HEAD("strayed", 9) ",\"gpu\":4294967295,\"bytes\":5}"},
    {STATE(""), "\"request_bytes\":7,\"request_source\":1,"},
    {STATE(""), "\"place\":9,"},
    {STATE(",\"place\":6"), "\"place\":6,"},
    {STATE(""), "\"external_failures\":3,"},
    {STATE(""), "\"reserved_bytes\":7,\"reservation_source\":1,"},
    {STATE(",\"claim_from\":2"), "\"reserved_bytes\":7,\"reservation_source\":2,"},
    {STATE(""), "\"granted_bytes\":-1,\"fence_bytes\":-1,"},
};

STORE_TEST(test_each_record_says_what_it_said)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char *line, *rest;

    make_store_of_0_2();
    for (size_t i = 0; i < array_size(of_records); i++) {
        strbuf_clear(&text);
        strbuf_printf(&text,
                      "INSERT INTO record SELECT %zu, 1, json_extract(j, '$.type'), json_extract(j, '$.job'), j"
                      " FROM (SELECT '%s' AS j)",
                      101 + i, of_records[i].was);
        run_sql(text.text);
    }
    strbuf_clear(&text);
    CLEANUP(close_store) struct store *store = open_store();
    fail_if(store_load(store, &(struct store_taker){.on_record = put, .user = &text}, &trouble), trouble);
    line = strtok_r(text.text, "\n", &rest);
    for (size_t i = 0; i < 100 + array_size(of_records); i++, line = strtok_r(NULL, "\n", &rest))
        if (i >= 100)
            assert_has(line, of_records[i - 100].is);
}

/* All lines of 0.2.0 are records that are read strictly; what is none stays as it is, and is named. */
STORE_TEST(test_all_records_of_0_2)
{
    CLEANUP(free_ptr) char *text = file_text(GOLDEN_RECORDS_0_2);
    CLEANUP(strbuf_release) struct strbuf sql = {0};

    make_store_of_0_2();
    strbuf_printf(&sql, "DELETE FROM record; INSERT INTO snapshot VALUES (1, 1, 1, '%s')", text);
    run_sql(sql.text);
    strbuf_clear(&sql);
    CLEANUP(close_store) struct store *store = open_store();
    fail_if(store_load(store, &(struct store_taker){.on_record = put, .user = &sql}, &trouble), trouble);
    assert_has(sql.text, "\"type\":\"state_queued\"");
}

/* ---- The facts of jobs ---- */

STORE_TEST(test_facts_of_jobs)
{
    CLEANUP(free_ptr) char *sql = file_text(GOLDEN_FORM_4);

    run_sql(sql);
    run_sql("UPDATE job SET body = '[7]' WHERE job = 4;"
            "UPDATE job SET body = json_set(body, '$.culprit', 3, '$.fence_bytes', 8) WHERE job = 5");
    store_close(open_store());
    assert_rows("SELECT body FROM job WHERE job = 4", "[7]\n"); /* it is the load's to tell of damage */
    assert_rows(
        "SELECT job, json_extract(body, '$.attempts', '$.retry', '$.reserved_bytes', '$.reservation_source',"
        " '$.first_reserved_bytes', '$.first_reservation_source', '$.victim_of', '$.process_limit_bytes'),"
        " json_extract(json_extract(body, '$.submitted'), '$.request_source'),"
        " json_extract(json_extract(body, '$.exited'), '$.failed_gpu'), body LIKE '%claim%' FROM job WHERE job <> 4",
        "1|[1,false,-1,0,-1,0,0,null]|0|4294967295|0\n"
        "2|[1,false,3221225472,1,3221225472,1,0,null]|1|4294967295|0\n"
        "3|[1,false,6442450944,1,6442450944,1,0,null]|1|4294967295|0\n"
        "5|[2,true,77309411328,6,2147483648,1,3,8]|1|4294967295|0\n");
}
