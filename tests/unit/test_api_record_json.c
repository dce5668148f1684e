/* Records as text: every type against its golden line, random records there and back byte for byte, and refusals. */
#include "unit.h"

#include "api/record_json.h"

static uint64_t seed = 20260411;

static uint64_t next_random(void)
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Extremes are as likely as anything else. */
static uint64_t random_bits(uint64_t low, uint64_t high)
{
    switch (next_random() % 5) {
    case 0:
        return low;
    case 1:
        return high;
    case 2:
        return next_random() % 1000;
    default:
        return next_random();
    }
}

static void random_text(char *text, size_t size)
{
    static const char *const pieces[] = {"a",    "Z", "\"", "\\", "/", "\n", "\x01",
                                         "\x7f", "é", "€",  "😀",  " ", "{",  "\xed\x9f\xbf"};
    size_t used = 0, wanted = next_random() % size;

    for (;;) {
        const char *piece = pieces[next_random() % array_size(pieces)];

        if (used + strlen(piece) > wanted)
            break;
        memcpy(text + used, piece, strlen(piece));
        used += strlen(piece);
    }
    text[used] = '\0';
}

static void random_record(struct record *record, uint32_t type)
{
    uint32_t count = 0;

    memset(record, 0, sizeof *record);
    record->type = type;
    record->at_ns = (int64_t)random_bits((uint64_t)INT64_MIN, INT64_MAX);
    record->job = random_bits(0, INT64_MAX) & INT64_MAX;
    for (size_t i = 0; i < record_field_count; i++) {
        const struct record_field *field = &record_fields[i];
        void *at = (char *)record + field->offset;
        bool counts = i + 1 < record_field_count && record_fields[i + 1].kind == FIELD_U32_ARRAY;

        if (field->type != type)
            continue;
        switch (field->kind) {
        case FIELD_BOOL:
            *(bool *)at = next_random() & 1;
            break;
        case FIELD_U32:
            count = (uint32_t)random_bits(0, UINT32_MAX);
            if (counts)
                count %= (uint32_t)record_fields[i + 1].size + 1;
            *(uint32_t *)at = count;
            break;
        case FIELD_I32:
            *(int32_t *)at = (int32_t)random_bits((uint32_t)INT32_MIN, INT32_MAX);
            break;
        case FIELD_U64: /* a job */
            *(uint64_t *)at = next_random() & INT64_MAX;
            break;
        case FIELD_I64:
            *(int64_t *)at = (int64_t)random_bits((uint64_t)INT64_MIN, INT64_MAX);
            break;
        case FIELD_TEXT:
            random_text(at, field->size);
            break;
        case FIELD_U32_ARRAY:
            for (uint32_t n = 0; n < count; n++)
                ((uint32_t *)at)[n] = (uint32_t)random_bits(0, UINT32_MAX);
            break;
        }
    }
}

TEST(test_random_records_round_trip)
{
    CLEANUP(strbuf_release) struct strbuf first = {0}, second = {0};

    for (int i = 0; i < 20000; i++) {
        struct record in, out;
        struct error err = {{0}};

        random_record(&in, 1 + (uint32_t)(next_random() % (RECORD_TYPE_COUNT - 1)));
        strbuf_clear(&first);
        strbuf_clear(&second);
        assert_int_equal(record_json_write(&in, &first, &err), 0);
        if (record_json_read(first.text, first.length, &out, &err))
            fail_msg("%s: %s", first.text, err.text);
        assert_memory_equal(&in, &out, sizeof in);
        assert_int_equal(record_json_write(&out, &second, &err), 0);
        assert_string_equal(first.text, second.text);
        assert_null(strchr(first.text, '\n'));
    }
}

/* Each line of the golden file is one type's; together they are all types, in order. */
TEST(test_golden)
{
    char *line, *rest;
    uint32_t type = RECORD_NONE;

    char *text = file_text(GOLDEN_RECORDS);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        CLEANUP(strbuf_release) struct strbuf again = {0};
        struct record record;

        if (record_json_read(line, strlen(line), &record, &trouble))
            fail_msg("%s: %s", line, trouble.text);
        assert_int_equal(record.type, ++type);
        assert_int_equal(record_json_write(&record, &again, &trouble), 0);
        assert_string_equal(line, again.text);
    }
    assert_int_equal(type, RECORD_TYPE_COUNT - 1);
    free(text);
}

#define PLACED(count, gpus, reservation, shared, more)                                                                 \
    "{\"type\":\"placed\",\"at_ns\":5,\"job\":1,\"count\":" count ",\"gpus\":" gpus ",\"reserved_bytes\":" reservation \
    ",\"reservation_source\":1,\"threads_percent\":0,\"fence_bytes\":-1,"                                              \
    "\"slowdown_permille\":1000,\"share\":1,\"shared\":" shared ",\"retry\":false" more "}"
#define TEN_GPUS "0,1,2,3,4,5,6,7,8,9"
#define BACK(uuid)                                                                                                     \
    "{\"type\":\"gpu_back\",\"at_ns\":5,\"job\":0,\"gpu\":0,\"uuid\":" uuid                                            \
    ",\"total_bytes\":9,\"share\":0,\"instance\":false,\"part_permille\":0,\"name\":\"\",\"compute\":0}"

static const struct {
    const char *text;
    const char *says; /* NULL: accepted */
} reading_is_strict[] = {
    {PLACED("2", "[0,1]", "7", "true", ""), NULL},
    {BACK("\"GPU-1\""), NULL},
    {"", "not JSON"},
    {"{\"type\":\"timer\",\"at_ns\":5,\"job\":0} x", "not JSON"},
    {"[]", "\"type\""},
    {"{\"type\":7,\"at_ns\":5,\"job\":0}", "\"type\""},
    {"{\"type\":\"none\",\"at_ns\":5,\"job\":0}", "\"none\" is not known"},
    {"{\"type\":\"unknown\",\"at_ns\":5,\"job\":0}", "\"unknown\" is not known"},
    {"{\"type\":\"timer\",\"job\":0}", "\"at_ns\" is missing"},
    {"{\"type\":\"timer\",\"at_ns\":5}", "\"job\" is missing"},
    {"{\"type\":\"timer\",\"at_ns\":5.0,\"job\":0}", "\"at_ns\" must be a whole number"},
    {"{\"type\":\"timer\",\"at_ns\":9223372036854775808,\"job\":0}", "not JSON"},
    {"{\"type\":\"timer\",\"at_ns\":5,\"job\":-1}", "\"job\" is -1"},
    {"{\"type\":\"timer\",\"at_ns\":5,\"job\":0,\"gpu\":0}", "\"gpu\" is not a member"},
    {"{\"type\":\"timer\",\"at_ns\":5,\"job\":0,\"job\":0}", "not JSON"},
    {PLACED("2", "[0,1]", "7", "true", ",\"bytes\":1"), "\"bytes\" is not a member"},
    {"{\"type\":\"lost\",\"at_ns\":5,\"job\":1}", "\"final\" is missing"},
    {PLACED("2", "[0]", "7", "true", ""), "\"gpus\" has 1 elements"},
    {PLACED("1", "[0,1]", "7", "true", ""), "\"gpus\" has 2 elements"},
    {PLACED("65", "[" TEN_GPUS "," TEN_GPUS "," TEN_GPUS "," TEN_GPUS "," TEN_GPUS "," TEN_GPUS ",0,1,2,3,4]", "7",
            "true", ""),
     "\"gpus\" has 65 elements"},
    {PLACED("1", "[-1]", "7", "true", ""), "\"gpus\" is -1"},
    {PLACED("1", "[4294967296]", "7", "true", ""), "\"gpus\" is 4294967296"},
    {PLACED("1", "0", "7", "true", ""), "\"gpus\" must be an array"},
    {PLACED("-1", "[]", "7", "true", ""), "\"count\" is -1"},
    {PLACED("4294967296", "[]", "7", "true", ""), "\"count\" is 4294967296"},
    {PLACED("0", "[]", "\"7\"", "true", ""), "\"reserved_bytes\" must be a whole number"},
    {PLACED("0", "[]", "7", "1", ""), "\"shared\" must be true or false"},
    {BACK("null"), "\"uuid\" must be a text of at most 47 bytes"},
    {BACK("\"123456789012345678901234567890123456789012345678\""), "\"uuid\" must be a text of at most 47 bytes"},
    {BACK("\"a\\u0000b\""), "not JSON"},
    {BACK("\"\xff\""), "not JSON"},
};

EACH_ROW(TEST, test_reading_is_strict, reading_is_strict)
{
    struct error err = {{0}};
    struct record record;
    int rc = record_json_read(row->text, strlen(row->text), &record, &err);

    if (!row->says) {
        assert_int_equal(rc, 0);
    } else {
        assert_int_equal(rc, -EINVAL);
        if (!strstr(err.text, row->says))
            fail_msg("%s: \"%s\" does not say \"%s\"", row->text, err.text, row->says);
    }
}

/* A record that could not be read back is not written, and the buffer stays. */
TEST(test_writing_refuses)
{
    static const char *const bad[] = {"\xff",  "\xc0\x80",     "\xed\xa0\x80",     "\xf4\x90\x80\x80", "\xe2\x82",
                                      "a\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf5\x80\x80\x80"};
    struct record record = {.type = RECORD_GPU_BACK, .gpu = {.uuid = "GPU-1"}};
    CLEANUP(strbuf_release) struct strbuf out = {0};

    strbuf_puts(&out, "before");
    for (size_t i = 0; i < array_size(bad); i++) {
        snprintf(record.gpu.uuid, sizeof record.gpu.uuid, "%s", bad[i]);
        assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
        assert_string_equal(out.text, "before");
    }
    memset(record.gpu.uuid, 'x', sizeof record.gpu.uuid);
    assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
    record = (struct record){.type = RECORD_PLACED, .placed = {.count = RECORD_MAX_GPUS + 1}};
    assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
    record = (struct record){.type = RECORD_TIMER, .job = UINT64_MAX};
    assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
    record = (struct record){.type = RECORD_NONE};
    assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
    record = (struct record){.type = RECORD_TYPE_COUNT};
    assert_int_equal(record_json_write(&record, &out, &trouble), -EINVAL);
    assert_string_equal(out.text, "before");
}
