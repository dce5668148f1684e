/* Traces as others have published them: each format's rows become the jobs they mean; malformed, badly packed or insane
 * data is refused in one line. The files are made for this test, with numbers of its own. */
#include "unit.h"

#include <zlib.h>

#include "trace/csv.h"
#include "trace/gunzip.h"
#include "trace/trace.h"

#define FILES CARMA_FAKES "/traces/"

static struct workloads workloads;
static struct trace_load_options options = {.workloads = &workloads};

static struct trace load(const char *path, const struct trace_load_options *how)
{
    struct trace trace;

    fail_if(trace_load(&trace, path, how, &trouble), trouble);
    return trace;
}

static void refuse_text(const char *text, size_t length, const struct trace_load_options *how, const char *expected)
{
    struct trace trace;
    struct error err = {{0}};

    assert_true(trace_load_text(&trace, "t.csv", text, length, how, &err) < 0);
    assert_string_equal(err.text, expected);
    assert_null(trace.items);
}

static void refuse(const char *text, const char *expected)
{
    refuse_text(text, strlen(text), &options, expected);
}

/* What a row of a file becomes. */
struct expected {
    unsigned line;
    double arrival_s, duration_s;
    uint32_t gpus, gpu_permille; /* 0: 1000 */
};

static void check_job(const struct trace_job *job, const struct expected *expected)
{
    assert_int_equal(job->line, expected->line);
    assert_true(job->arrival_ns == (int64_t)(expected->arrival_s * 1e9));
    assert_true(trace_job_duration_ns(job) == (int64_t)(expected->duration_s * 1e9));
    assert_int_equal(job->gpus, expected->gpus);
    assert_int_equal(job->gpu_permille, expected->gpu_permille ? expected->gpu_permille : 1000);
}

static const struct {
    const char *name;
    struct trace_load_options how;
    enum trace_format format;
    size_t count, left_out;
    struct expected jobs[4];
} each_format[] = {
    {"philly_vc.csv",
     {&workloads},
     TRACE_PHILLY_VC,
     4,
     1, /* the row without a run time is left out */
     {{5, 20, 36000, 16}, {2, 100, 1800.5, 1}, {3, 160, 7200, 4}, {6, 4000, 59.25, 2}}}, /* sorted by arrival */
    {"philly_vc.csv", {.vc = "ab12"}, TRACE_PHILLY_VC, 2, 1, {{2, 100, 1800.5, 1}, {3, 160, 7200, 4}}},
    {"pods.csv", {0}, TRACE_PODS, 3, 1, {{2, 0, 3600, 1}, {3, 30, 600, 1, 250}, {4, 30, 7200, 8}}},
    {"thesis.csv", {&workloads}, TRACE_THESIS, 3, 0, {{2, 0, 2255, 1}, {3, 75, 174, 1}, {4, 75, 4051, 2}}},
    {"tiresias.csv", {0}, TRACE_TIRESIAS, 2, 0, {{2, 0, 90, 1}, {3, 30, 45, 8}}}, /* with \r inside its quotes */
    {"run_times.csv", {.run_times = true}, TRACE_RUN_TIMES, 3, 1, {{3, 0, 30, 1}, {4, 0, 600, 1}, {5, 0, 7200, 1}}},
};

EACH_ROW(TEST, test_each_format, each_format)
{
    CLEANUP(free_ptr) char *path = xasprintf(FILES "%s", row->name);
    CLEANUP(trace_release) struct trace trace = load(path, &row->how);
    assert_int_equal(trace.format, row->format);
    assert_int_equal(trace.count, row->count);
    assert_int_equal(trace.left_out, row->left_out);
    for (size_t k = 0; k < trace.count; k++) {
        const struct workload *workload = trace.items[k].workload;
        check_job(&trace.items[k], &row->jobs[k]);
        assert_int_equal(workload != NULL, trace.format == TRACE_THESIS);
        assert_true(!workload || trace.items[k].duration_ns == -1);
    }
}

static void refuse_file(const char *path, const struct trace_load_options *how, const char *expected)
{
    struct trace trace;

    assert_error(trace_load(&trace, path, how, &trouble), -EINVAL, expected);
}

TEST(test_choices_that_a_file_does_not_have)
{
    refuse_file(FILES "philly_vc.csv", &(struct trace_load_options){.vc = "ab1"},
                "no jobs of a virtual cluster 'ab1': name one of its column vc");
    refuse_file(FILES "pods.csv", &(struct trace_load_options){.vc = "ab12"},
                "pods.csv: it has no virtual clusters: leave out the choice of 'ab12'");
    refuse_file(FILES "run_times.csv", NULL,
                "run_times.csv:2: runtime_s alone: these are run times without arrivals, no trace");
}

TEST(test_own_columns)
{
    static const char text[] = "duration_s,arrival_s,gpus,workload\n"
                               ",0,,gpt2_large_2\n"
                               "12.345,1,4,resnet\n"
                               ",1,1,gpt2_large_2\n";
    static const struct expected jobs[] = {{2, 0, 4051, 2}, {3, 1, 12.345, 4}, {4, 1, 4051, 1}};
    CLEANUP(trace_release) struct trace trace;

    assert_int_equal(trace_load_text(&trace, "t.csv", text, sizeof text - 1, &options, NULL), 0);
    assert_int_equal(trace.format, TRACE_CARMA);
    for (size_t i = 0; i < array_size(jobs); i++)
        check_job(&trace.items[i], &jobs[i]);
    assert_ptr_equal(trace.items[2].workload, workloads_find(&workloads, "gpt2_large_2"));
    assert_true(trace.items[0].duration_ns == -1);
}

TEST(test_insane_rows)
{
#define OWN    "arrival_s,workload,gpus,duration_s\n"
#define PHILLY "vc,submit_s,gpus,duration_s_v100\n"
#define PODS   "submit_s,gpus,gpu_milli,duration_s\n"
    refuse(OWN "0,resnet,0,\n", "t.csv:2: gpus: 0 is out of range: 1 to 4096");
    refuse(OWN "0,resnet,1,0\n", "t.csv:2: duration_s 0 is out of range: 0.001 to 100000000");
    refuse_text("arrival_offset_s,workload_id\n0,resnet\n", 38, NULL,
                "t.csv:2: the trace names workloads ('resnet'): say which file describes them");
    refuse(PHILLY "a,-1,1,60\n", "t.csv:2: submit_s -1 is out of range: 0 to 1000000000");
    refuse(PHILLY "a,0,5000,60\n", "t.csv:2: gpus: 5000 is out of range: 1 to 4096");
    refuse(PHILLY "a,0,1,\n", "t.csv:2: no value for 'duration_s_v100': fill it in");
    refuse(PHILLY "a,0,1,0\n", "t.csv: no jobs: none of its 1 ever ran");
    refuse(PODS "0,1,0,60\n", "t.csv:2: gpu_milli: 0 is out of range: 1 to 1000");
    refuse("job_id,num_gpu,submit_time,duration\n0,0,0,1\n", "t.csv:2: num_gpu: 0 is out of range: 1 to 4096");
    refuse("runtime\n1\n", "t.csv:1: unknown column 'runtime': remove it or correct its name");
}

/* gzip data of `length` zlib-made bytes; owned by the caller. */
static char *pack(const char *text, size_t length, size_t *packed_length)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)length};
    size_t room = length + length / 1000 + 1024;
    char *packed = xmalloc(room);

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *packed_length = room - stream.avail_out;
    deflateEnd(&stream);
    return packed;
}

TEST(test_members_are_one_text)
{
    static const char first[] = "arrival_s,workload\n0,res", second[] = "net\n1,vgg\n";
    size_t first_length, second_length;
    CLEANUP(free_ptr) char *one = pack(first, sizeof first - 1, &first_length);
    CLEANUP(free_ptr) char *two = pack(second, sizeof second - 1, &second_length);
    CLEANUP(strbuf_release) struct strbuf both = {0};
    CLEANUP(trace_release) struct trace trace;

    strbuf_append(&both, one, first_length);
    strbuf_append(&both, two, second_length);
    assert_int_equal(trace_load_text(&trace, "t.gz", both.text, both.length, &options, NULL), 0);
    assert_int_equal(trace.count, 2);
}

static void refuse_packed(const char *bytes, size_t length, const char *expected)
{
    struct trace trace;
    struct error err = {{0}};

    assert_true(trace_load_text(&trace, "t.gz", bytes, length, &options, &err) < 0);
    if (!strstr(err.text, expected) || strncmp(err.text, "t.gz: ", 6) != 0)
        fail_msg("'%s' does not say '%s'", err.text, expected);
    assert_null(trace.items);
}

TEST(test_damaged_gzip)
{
    static const char text[] = "arrival_s,workload\n0,resnet\n1,resnet\n2,resnet\n";
    size_t length;
    CLEANUP(free_ptr) char *good = pack(text, sizeof text - 1, &length);
    CLEANUP(strbuf_release) struct strbuf bad = {0};

    refuse_packed("\x1f\x8b", 2, "damaged gzip data at byte 2 (it ends too early)");
    refuse_packed("\x1f\x8b\x08garbage, not data", 20, "damaged gzip data");
    for (size_t cut = 2; cut < length; cut++)
        refuse_packed(good, cut, "damaged gzip data");
    strbuf_append(&bad, good, length);
    strbuf_puts(&bad, "more");
    refuse_packed(bad.text, bad.length, "damaged gzip data");
    for (size_t i = length - 8; i < length; i++) { /* its checksum and length */
        strbuf_clear(&bad);
        strbuf_append(&bad, good, length);
        bad.text[i] ^= 1;
        refuse_packed(bad.text, bad.length, "damaged gzip data");
    }
}

TEST(test_gunzip_limit)
{
    CLEANUP(free_ptr) char *zeros = xcalloc(1, 1 << 20);
    size_t length, text_length;
    CLEANUP(free_ptr) char *packed = pack(zeros, 1 << 20, &length);
    CLEANUP(free_ptr) char *text = NULL;

    assert_int_equal(gunzip("t.gz", packed, length, (1 << 20) - 1, &text, &text_length, &trouble), -EFBIG);
    assert_null(text);
    assert_int_equal(gunzip("t.gz", packed, length, 1 << 20, &text, &text_length, &trouble), 0);
    assert_int_equal(text_length, 1 << 20);
    assert_int_equal(text[text_length], '\0');
}

/* A few hundred KiB, member after member, that would unpack to more than memory is meant for. */
TEST(test_gzip_bomb)
{
    CLEANUP(free_ptr) char *zeros = xcalloc(1, 1 << 20);
    CLEANUP(strbuf_release) struct strbuf bomb = {0};
    size_t length;
    CLEANUP(free_ptr) char *packed = pack(zeros, 1 << 20, &length);

    for (size_t mib = 0; mib <= CSV_MAX_TEXT >> 20; mib++)
        strbuf_append(&bomb, packed, length);
    assert_true(bomb.length < 1 << 20);
    refuse_packed(bomb.text, bomb.length, "it unpacks to more than 256 MiB: split the file");
}

static void check_class(const char *figures, enum workload_class expected)
{
    CLEANUP(free_ptr)
    char *text = xasprintf("id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity\nw,%s\n", figures);
    CLEANUP(workloads_release) struct workloads one;

    assert_int_equal(workloads_read_text(&one, "w.csv", text, strlen(text), NULL), 0);
    assert_string_equal(workload_class_name(workload_class(&one.items[0])), workload_class_name(expected));
}

TEST(test_classes)
{
    size_t counts[WORKLOAD_CLASS_COUNT] = {0};

    check_class("1,4095,4095,60,0.299", WORKLOAD_LIGHT);
    check_class("1,4095,4096,60,0.299", WORKLOAD_MEDIUM);
    check_class("1,4095,4095,60,0.3", WORKLOAD_MEDIUM);
    check_class("1,24575,10,60,0.899", WORKLOAD_MEDIUM);
    check_class("1,24576,10,60,0.1", WORKLOAD_HEAVY);
    check_class("1,10,10,60,0.9", WORKLOAD_HEAVY);
    check_class("2,10,10,60,0.1", WORKLOAD_HEAVY);
    for (size_t i = 0; i < workloads.count; i++)
        counts[workload_class(&workloads.items[i])]++;
    assert_int_equal(counts[WORKLOAD_LIGHT], 26);
    assert_int_equal(counts[WORKLOAD_MEDIUM], 19);
    assert_int_equal(counts[WORKLOAD_HEAVY], 6);
}

static int setup(void **state)
{
    return workloads_read(&workloads, CARMA_DATA "/workloads.csv", NULL);
}

AROUND(teardown)
{
    workloads_release(&workloads);
}

RUN_TESTS(setup, teardown)
