/* Workloads and traces: the data that ships is read as published; malformed data is refused in one line. */
#include "unit.h"

#include "core/record.h"
#include "trace/csv.h"
#include "trace/trace.h"

/* the core's limit is restated in trace, which may not see it */
_Static_assert(WORKLOAD_MAX_GPUS == RECORD_MAX_GPUS, "one limit of GPUs for a job");

#define WORKLOADS_HEADER "id,gpus,peak_mib,resident_mib,solo_runtime_s,sm_activity\n"
#define WORKLOADS        WORKLOADS_HEADER "small,1,1000,900,60,0.25\n"

static struct workloads parse_workloads(const char *text)
{
    struct workloads workloads;

    fail_if(workloads_read_text(&workloads, "w.csv", text, strlen(text), &trouble), trouble);
    return workloads;
}

static void refuse_workloads(const char *text, const char *expected)
{
    struct workloads workloads;
    struct error err = {{0}};

    assert_true(workloads_read_text(&workloads, "w.csv", text, strlen(text), &err) < 0);
    assert_string_equal(err.text, expected);
    assert_int_equal(workloads.count, 0);
}

static void refuse_trace_bytes(const char *text, size_t length, const char *expected)
{
    CLEANUP(workloads_release) struct workloads workloads = parse_workloads(WORKLOADS);
    struct trace_load_options options = {.workloads = &workloads};
    struct trace trace;
    struct error err = {{0}};

    assert_true(trace_load_text(&trace, "t.csv", text, length, &options, &err) < 0);
    assert_string_equal(err.text, expected);
    assert_int_equal(trace.count, 0);
}

static void refuse_trace(const char *text, const char *expected)
{
    refuse_trace_bytes(text, strlen(text), expected);
}

TEST(test_shipped_workloads)
{
    CLEANUP(workloads_release) struct workloads workloads;

    assert_int_equal(workloads_read(&workloads, CARMA_DATA "/workloads.csv", &trouble), 0);
    assert_int_equal(workloads.count, 51);
    const struct workload *w = workloads_find(&workloads, "gpt2_large_2");
    assert_non_null(w);
    assert_true(w->gpus == 2 && w->batch_size == 8 && w->solo_runtime_ns == 4051 * NS_PER_SEC);
    assert_true(workload_resident_bytes(w, 1) == 16255 * MIB && workload_need_bytes(w, 0) == 27902 * MIB);
    assert_int_equal(workload_smact_permille(w, 1), 827);
    assert_true(w->smocc_permille == 269 && w->dram_permille == 214 && w->power_mw == 251300);
    assert_true(w->recorded_bytes[WORKLOAD_HORUS] == 40000 * MIB);

    w = workloads_find(&workloads, "xlnet_base_cased_2"); /* steady above peak */
    assert_true(workload_need_bytes(w, 0) == 9935 * MIB);
    assert_true(workload_need_bytes(w, 1) == 9718 * MIB);

    w = workloads_find(&workloads,
                       "resnet18_cifar100_50e_3"); /* thesis memory, and the epochs that its job file runs */
    assert_true(workload_resident_bytes(w, 0) == 2006 * MIB && workload_resident_bytes(w, 3) == 2006 * MIB);
    assert_int_equal(w->epochs, 20);
    assert_string_equal(w->basis, "peak=table resident=table runtime=derived activity=later "
                                  "occupancy=later dram=later power=model");
    assert_int_equal(workload_smact_permille(w, 1), 185);

    w = workloads_find(&workloads, "BERT_base"); /* not published */
    assert_true(w->smocc_permille == -1 && w->dram_permille == -1);

    assert_null(workloads_find(&workloads, "gpt2"));
    assert_null(workloads_find(&workloads, ""));
    for (size_t i = 0; i < workloads.count; i++)
        assert_ptr_equal(workloads_find(&workloads, workloads.items[i].id), &workloads.items[i]);
}

/* Solo work and span of the published traces: a changed, lost or repeated row shows. */
TEST(test_shipped_traces)
{
    static const struct {
        const char *path;
        size_t count;
        int64_t last_s;
        int64_t gpu_seconds;
    } expected[] = {
        {CARMA_DATA "/traces/thesis_90.csv", 90, 12514, 157566},
        {CARMA_DATA "/traces/thesis_60.csv", 60, 8966, 146139},
    };
    CLEANUP(workloads_release) struct workloads workloads;

    assert_int_equal(workloads_read(&workloads, CARMA_DATA "/workloads.csv", NULL), 0);
    for (size_t i = 0; i < array_size(expected); i++) {
        CLEANUP(trace_release) struct trace trace;
        int64_t gpu_seconds = 0;

        fail_if(trace_read(&trace, expected[i].path, &workloads, &trouble), trouble);
        assert_int_equal(trace.count, expected[i].count);
        assert_true(trace.items[0].arrival_ns == 0);
        assert_true(trace.items[trace.count - 1].arrival_ns == expected[i].last_s * NS_PER_SEC);
        for (size_t k = 0; k < trace.count; k++)
            gpu_seconds += trace.items[k].workload->solo_runtime_ns / NS_PER_SEC * trace.items[k].workload->gpus;
        assert_int_equal(gpu_seconds, expected[i].gpu_seconds);
    }
}

TEST(test_csv_forms)
{
    CLEANUP(workloads_release)
    struct workloads workloads = parse_workloads("\xef\xbb\xbf# a comment\r\n\r\n"
                                                 "sm_activity,model,id,gpus,peak_mib,resident_mib,solo_runtime_s\r\n"
                                                 "# another\n"
                                                 "0.5,\"a \"\"b\"\", c\",one,2,10,20.5,1.5\r\n"
                                                 "1,\"\",\"two\",1,0,0,1e3");
    const struct workload *one = workloads_find(&workloads, "one"), *two = workloads_find(&workloads, "two");

    assert_string_equal(one->model, "a \"b\", c");
    assert_int_equal(one->line, 5);
    assert_int_equal(one->smact_permille[0], 500);
    assert_true(one->resident_bytes[1] == 41 * MIB / 2);
    assert_true(one->solo_runtime_ns == 1500 * NS_PER_MS);
    assert_true(one->recorded_bytes[WORKLOAD_GPUMEMNET] == -1 && one->power_mw == -1 && one->batch_size == -1);
    assert_string_equal(two->model, "");
    assert_true(two->solo_runtime_ns == 1000 * NS_PER_SEC);
}

TEST(test_bad_workloads)
{
    refuse_workloads("", "w.csv: no header line: the first line names the columns, e.g. id");
    refuse_workloads("# only\n\n", "w.csv: no header line: the first line names the columns, e.g. id");
    refuse_workloads("id,gpus,colour\n", "w.csv:1: unknown column 'colour': remove it or correct its name");
    refuse_workloads("id,gpus,id\n", "w.csv:1: column 'id' occurs twice: remove one");
    refuse_workloads("id,gpus,peak_mib\n", "w.csv:1: no column 'resident_mib': add it to the header and every row");
    refuse_workloads(WORKLOADS_HEADER "a,1,1\n", "w.csv:2: 3 fields where the header names 6: complete the row");
    refuse_workloads(WORKLOADS_HEADER "a,1,,1,1,1\n", "w.csv:2: no value for 'peak_mib': fill it in");
    refuse_workloads(WORKLOADS_HEADER "a,0,1,1,1,1\n", "w.csv:2: gpus: 0 is out of range: 1 to 64");
    refuse_workloads(WORKLOADS_HEADER "a,1,-1,1,1,1\n", "w.csv:2: peak_mib -1 is out of range: 0 to 16777216");
    refuse_workloads(WORKLOADS_HEADER "a,1,1,0x10,1,1\n", "w.csv:2: resident_mib '0x10' is not a number");
    refuse_workloads(WORKLOADS_HEADER "a,1,1,1,0,1\n", "w.csv:2: solo_runtime_s 0 is out of range: 0.001 to 100000000");
    refuse_workloads(WORKLOADS_HEADER "a,1,1,1,1,1.01\n", "w.csv:2: sm_activity 1.01 is out of range: 0 to 1");
    refuse_workloads(WORKLOADS_HEADER "../a,1,1,1,1,1\n",
                     "w.csv:2: id '../a' must be letters, digits and . _ - + and not begin with -");
    refuse_workloads(WORKLOADS_HEADER "-a,1,1,1,1,1\n",
                     "w.csv:2: id '-a' must be letters, digits and . _ - + and not begin with -");
    refuse_workloads(WORKLOADS_HEADER "0123456789012345678901234567890123456789012345678901234567890123,1,1,1,1,1\n",
                     "w.csv:2: id '0123456789012345678901234567890123456789...' is too long: at most 63 characters");
    refuse_workloads(WORKLOADS_HEADER "a,1,1,1,1,1\nb,1,1,1,1,1\na,1,1,1,1,1\n",
                     "w.csv:4: workload 'a' is already on line 2: remove or rename one");
    refuse_workloads(WORKLOADS_HEADER "\"a,1,1,1,1,1\n", "w.csv:2: field 1 opens a quote that the line does not close");
    refuse_workloads(WORKLOADS_HEADER "\"a\"b,1,1,1,1,1\n", "w.csv:2: field 1 goes on after its closing quote");
}

TEST(test_bad_traces)
{
    refuse_trace("arrival_s,workload\n", "t.csv: no jobs: add a row after the header");
    refuse_trace("arrival_s,workload\n0,huge\n",
                 "t.csv:2: unknown workload 'huge': use an id of the workloads file or add it there");
    refuse_trace("arrival_s,workload\n5,small\n4.999,small\n",
                 "t.csv:3: arrival_s 4.999 is earlier than the row before it: sort the rows by arrival_s");
    refuse_trace("arrival_s,workload\nsoon,small\n", "t.csv:2: arrival_s 'soon' is not a number");
    refuse_trace("arrival_s,workload\n0,\n", "t.csv:2: no value for 'workload': fill it in");
    refuse_trace("arrival_s\n0\n", "t.csv:1: no column 'workload': add it to the header and every row");
    refuse_trace_bytes("arrival_s,workload\n0,sm\0ll\n", 27, "t.csv:2: byte 0x00 at column 5: this is not a text file");
    refuse_trace("arrival_s,workload\n0,\x1b[31m\n", "t.csv:2: byte 0x1b at column 3: this is not a text file");
    refuse_trace("\x7f"
                 "ELF",
                 "t.csv:1: byte 0x7f at column 1: this is not a text file");
}

TEST(test_limits)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    for (int i = 0; i < 100; i++) /* a million columns would already be too long a line */
        strbuf_puts(&text, "arrival_s,");
    refuse_trace(text.text, "t.csv:1: more than 64 columns: remove those that no format page names");
    while (text.length <= CSV_MAX_LINE)
        strbuf_puts(&text, "arrival_s,");
    refuse_trace(text.text, "t.csv:1: the line is longer than 65536 bytes: split the file into lines");
    strbuf_puts(&text, "\n0,small\n");
    refuse_trace(text.text, "t.csv:1: the line is longer than 65536 bytes: split the file into lines");

    strbuf_clear(&text);
    strbuf_puts(&text, "arrival_s,workload\n");
    for (int i = 0; i <= CSV_MAX_ROWS; i++)
        strbuf_puts(&text, "0,small\n");
    refuse_trace(text.text, "t.csv:1000002: more than 1000000 rows: split the file");

    strbuf_clear(&text);
    strbuf_puts(&text, WORKLOADS_HEADER);
    for (int i = 0; i <= WORKLOADS_MAX; i++)
        strbuf_printf(&text, "w%d,1,1,1,1,1\n", i);
    refuse_workloads(text.text, "w.csv:100002: more than 100000 workloads: split the file");
}

TEST(test_files)
{
    char path[] = "/tmp/carma-trace-XXXXXX";
    CLEANUP(close_fd) int fd = mkstemp(path);
    struct workloads workloads;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)100 << 20), 0); /* refused by its size, before it is read */
    assert_error(workloads_read(&workloads, path, &trouble), -EFBIG, path);
    assert_non_null(strstr(trouble.text, "too large"));
    unlink(path);
    assert_int_equal(workloads_read(&workloads, path, &trouble), -ENOENT);
    assert_int_equal(workloads_read(&workloads, "/dev/zero", &trouble), -EFBIG);
    assert_true(workloads_read(&workloads, "/", &trouble) < 0);
}
