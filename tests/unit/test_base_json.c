/* JSON of foreign origin: counted before it becomes a tree, at each door of carma's. */
#include "unit.h"

#include <malloc.h>

#include "api/capture_answer.h"
#include "api/hf/config.h"
#include "api/lease.h"
#include "api/record_json.h"
#include "api/spec_limits.h"
#include "api/submission_text.h"
#include "base/json/json_read.h"
#include "cli/cluster/children.h"
#include "cli/cluster/foreign.h"
#include "core/record.h"

/* What jansson has, now and at most. */
static size_t held, most_held;

static void *count_allocation(size_t size)
{
    void *memory = xmalloc(size);

    held += malloc_usable_size(memory);
    if (held > most_held)
        most_held = held;
    return memory;
}

static void count_free(void *memory)
{
    held -= memory ? malloc_usable_size(memory) : 0;
    free(memory);
}

AROUND(count_from_here)
{
    json_set_alloc_funcs(count_allocation, count_free);
}

static int read_text(const char *text, const struct json_bounds *bounds, struct error *err)
{
    json_t *json;
    int rc = json_read(text, strlen(text), JSON_REJECT_DUPLICATES, bounds, &json, err);

    assert_int_equal(rc == 0, json != NULL);
    json_decref(json);
    return rc;
}

static const struct {
    const char *text;
    struct json_bounds most;
    const char *refusal;
} each_bound_is_met_and_passed[] = {
    {"{\"a\": [1, true, \"b\"], \"c\": {}}", {8, 2, 9}, NULL},
    {"{\"a\": [1, true, \"b\"], \"c\": {}}", {7, 2, 9}, "8 values and names are too many: at most 7"},
    {"{\"a\": [1, true, \"b\"], \"c\": {}}", {8, 1, 9}, "nested 2 levels deep: at most 1"},
    {"{\"a\": [1, true, \"b\"], \"c\": {}}", {8, 2, 8}, "texts of 9 bytes are too long: at most 8"},
    {"[\"[[[[{{,,,,\"]", {2, 1, 12}, NULL}, /* within a text it is text */
    {"[\"a\\\"[\"]", {2, 1, 6}, NULL},
    {"[[],[],[]]", {4, 2, 0}, NULL}, /* side by side */
    {"]]]][[", {9, 2, 0}, "not JSON in line 1"},
    {"\"abc\\", {9, 9, 9}, "not JSON in line 1"},
    {"{\"a\":1,\"a\":2}", {9, 9, 9}, "not JSON in line 1"},
    {"", {9, 9, 9}, "not JSON in line 1"},
};

EACH_ROW(TEST, test_each_bound_is_met_and_passed, each_bound_is_met_and_passed)
{
    struct error err = {{0}};
    int rc = read_text(row->text, &row->most, &err);
    if ((rc == 0) != !row->refusal || (rc && strncmp(err.text, row->refusal, strlen(row->refusal)) != 0))
        fail_msg("%s: %d, %s", row->text, rc, err.text);
}

static uint32_t drawn(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

/* The list of a request that is read in one piece; NULL: it is not one of objects and arrays. */
static json_t *read_whole(const char *text)
{
    CLEANUP(json_decrefp) json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *list = json_object_get(whole, "jobs"), *item;
    size_t i;

    if (!json_is_array(list) || json_object_size(whole) != 1)
        return NULL;
    json_array_foreach (list, i, item)
        if (!json_is_array(item) && !json_is_object(item))
            return NULL;
    return json_incref(list);
}

static json_t *read_apart(const char *text)
{
    static const struct json_bounds any = {1000, 1000, 1000};
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    CLEANUP(json_decrefp) json_t *frame = NULL;
    struct json_piece pieces[40];
    size_t count = json_take_apart(text, strlen(text), &rest, pieces, array_size(pieces));
    json_t *list = json_array(), *item;

    assert_true(count <= array_size(pieces));
    json_read(rest.text, rest.length, JSON_REJECT_DUPLICATES, &any, &frame, NULL);
    if (json_object_size(frame) == 1 && json_is_array(json_object_get(frame, "jobs")) &&
        json_array_size(json_object_get(frame, "jobs")) == count) {
        size_t i;
        for (i = 0; i < count; i++) {
            if (json_read(pieces[i].text, pieces[i].length, JSON_REJECT_DUPLICATES, &any, &item, NULL))
                break;
            json_array_append_new(list, item);
        }
        if (i == count)
            return list;
    }
    json_decref(list);
    return NULL;
}

/* What is taken is what a reader of the whole takes, and nothing else is. */
TEST(test_taken_apart_it_is_the_same)
{
    static const char *const words[] = {
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\":", "1", " ", "{}", "[]", "{},", "\"\\\"", "{\"c\":[{}]}"};
    uint32_t seed = 1;
    int taken = 0;

    for (int i = 0; i < 20000; i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        strbuf_puts(&text, "{\"jobs\":[");
        for (uint32_t k = drawn(&seed, 7); k > 0; k--)
            strbuf_puts(&text, words[drawn(&seed, array_size(words))]);
        strbuf_puts(&text, "]}");
        CLEANUP(json_decrefp) json_t *whole = read_whole(text.text);
        CLEANUP(json_decrefp) json_t *apart = read_apart(text.text);
        if (!whole != !apart || (whole && !json_equal(whole, apart)))
            fail_msg("%s: %s whole, %s apart", text.text, whole ? "taken" : "refused", apart ? "taken" : "refused");
        taken += whole != NULL;
    }
    assert_true(taken > 300);
}

TEST(test_more_pieces_than_are_wanted_are_counted)
{
    CLEANUP(strbuf_release) struct strbuf rest = {0};
    struct json_piece pieces[2];

    assert_int_equal(json_take_apart("{\"jobs\":[{},[],{}]}", 19, &rest, pieces, 2), 3);
    assert_int_equal(pieces[1].length, 2);
}

/* ---- Doors ---- */

enum worst { DEEP, OBJECTS, ARRAYS, STRINGS, LONG, MEMBERS, DUPLICATES, WORST_COUNT };

static void repeat(struct strbuf *text, const char *piece, size_t bytes)
{
    CLEANUP(free_ptr) char *all = xmalloc(bytes);
    size_t length = strlen(piece);

    bytes -= bytes % length;
    for (size_t i = 0; i < bytes; i += length)
        memcpy(all + i, piece, length);
    strbuf_append(text, all, bytes);
}

/* A text of about so many bytes. `name`: a member that the reader knows. */
static void write_worst(struct strbuf *text, enum worst worst, const char *name, size_t bytes)
{
    static const struct {
        const char *begin, *piece, *end;
    } parts[] = {
        [DEEP] = {"", "[", ""},
        [OBJECTS] = {"[{}", ",{}", "]}"},
        [ARRAYS] = {"[[]", ",[]", "]}"},
        [STRINGS] = {"[\"\"", ",\"\"", "]}"},
        [LONG] = {"\"", "x", "\"}"},
        [MEMBERS] = {"0", NULL, "}"}, /* of a name each */
        [DUPLICATES] = {"0", ",\"a\":0", "}"},
    };

    strbuf_clear(text);
    strbuf_printf(text, "{\"%s\":%s", name, parts[worst].begin);
    if (parts[worst].piece)
        repeat(text, parts[worst].piece, bytes);
    for (unsigned i = 0; !parts[worst].piece && text->length < bytes; i++)
        strbuf_printf(text, ",\"%x\":0", i);
    strbuf_puts(text, parts[worst].end);
}

#define LEASE_DOOR(name, type, parse, release)                                                                         \
    static int name(const char *text, size_t length, struct error *err)                                                \
    {                                                                                                                  \
        struct type told;                                                                                              \
        int rc = parse;                                                                                                \
                                                                                                                       \
        release(&told);                                                                                                \
        return rc;                                                                                                     \
    }

LEASE_DOOR(ask_lease, lease_request, lease_request_parse(text, length, &told, err), lease_request_release)
LEASE_DOOR(attach_lease, lease_attach, lease_attach_parse(text, length, &told, err), lease_attach_release)
LEASE_DOOR(end_lease, lease_end, lease_end_parse(text, length, 65536, &told, err), lease_end_release)

static int answer_capture(const char *text, size_t length, struct error *err)
{
    CLEANUP(free_ptr) char *line = xasprintf("%s\n", text);
    struct capture_answer answer;
    int rc = capture_answer_read(line, length + 1, NULL, &answer, err);

    capture_answer_release(&answer);
    return rc;
}

static int describe_model(const char *text, size_t length, struct error *err)
{
    struct transformer model;

    return hf_config_read(&model, "config.json", text, length, err);
}

static int load_submission(const char *text, size_t length, struct error *err)
{
    struct job_estimate estimate;
    struct job_spec spec;
    struct owner owner;
    int rc = submission_from_text(text, &spec, &estimate, &owner, err);

    job_spec_release(&spec);
    job_estimate_release(&estimate);
    free(owner.user);
    return rc;
}

static int load_record(const char *text, size_t length, struct error *err)
{
    struct record record;

    return record_json_read(text, length, &record, err);
}

static int answer_of_node(const char *text, size_t length, struct error *err)
{
    json_t *json = foreign_json(text, length);

    json_decref(json);
    return json ? 0 : error_set(err, EINVAL, "nothing");
}

static const struct door {
    const char *name, *member;
    int (*read)(const char *text, size_t length, struct error *err);
    size_t bytes; /* of the largest text */
    size_t most;  /* of its tree */
} doors[] = {
    {"a lease", "command", ask_lease, LEASE_REQUEST_MAX_BYTES, 5 * MIB},
    {"a lease's step", "pids", attach_lease, LEASE_REQUEST_MAX_BYTES, 5 * MIB},
    {"a lease's end", "output", end_lease, LEASE_REQUEST_MAX_BYTES, 5 * MIB},
    {"a capture's answer", "files", answer_capture, 2 * MIB, 28 * MIB},
    {"a configuration", "architectures", describe_model, 2 * MIB, 56 * MIB},
    {"a stored submission", "command", load_submission, 2 * MIB, 52 * MIB},
    {"a stored record", "gpus", load_record, MIB, 2 * MIB},
    {"a node's answer", "jobs", answer_of_node, 2 * MIB, 290 * MIB},
};

/* None holds more than its bound, at it and beyond, and each refuses in one line. */
TEST(test_each_door_has_its_bound)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    for (size_t i = 0; i < array_size(doors); i++)
        for (enum worst worst = 0; worst < WORST_COUNT; worst++)
            for (size_t bytes = doors[i].bytes - 64; bytes > 1024; bytes /= 8) {
                struct error err = {{0}};
                write_worst(&text, worst, doors[i].member, bytes);
                most_held = held;
                int rc = doors[i].read(text.text, text.length, &err);
                bool may_be_taken = doors[i].read == answer_of_node;
                if (most_held > doors[i].most || (rc == 0 && !may_be_taken) ||
                    (rc && (!*err.text || strchr(err.text, '\n'))))
                    fail_msg("%s, worst %d of %zu bytes: %d, %zu bytes, '%.200s'", doors[i].name, worst, bytes, rc,
                             most_held, err.text);
                assert_int_equal(held, 0);
            }
}

/* A tree takes no more than is said: values and the strings; while it is read, its longest string once more. */
TEST(test_what_a_text_becomes)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const struct json_bounds any = {MIB, MIB, 2 * MIB};

    for (enum worst worst = OBJECTS; worst < DUPLICATES; worst++) {
        json_t *json;
        write_worst(&text, worst, "a", MIB);
        assert_int_equal(json_read(text.text, text.length, 0, &any, &json, NULL), 0);
        size_t values = worst == MEMBERS ? 2 * json_object_size(json) : 3 + json_array_size(json_object_get(json, "a"));
        if (held > values * 256 + (worst == LONG ? 2 * MIB : 0))
            fail_msg("worst %d: %zu values are %zu bytes", worst, values, held);
        json_decref(json);
    }
}

RUN_TESTS(count_from_here, NULL)
