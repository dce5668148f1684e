/* Outputs' evidence of a failure: each message of tests/golden/failures has a verdict; look-alikes included. */
#include "unit.h"

#include "launch/classify.h"

struct golden {
    char *name, *text, *verdict; /* owned */
    size_t length;
};

static struct golden *goldens;
static size_t count, capacity;

static char *read_golden(const char *name, const char *kind, size_t *length)
{
    CLEANUP(free_ptr) char *path = xasprintf(CARMA_GOLDEN "/failures/%s.%s", name, kind);
    char *text;

    fail_if(file_read(path, 1 << 20, &text, length, &trouble) < 0, trouble);
    return text;
}

AROUND(read_goldens)
{
    DIR *directory = opendir(CARMA_GOLDEN "/failures");
    struct dirent *entry;
    size_t ignored;

    while (directory && (entry = readdir(directory))) {
        char *dot = strstr(entry->d_name, ".txt");
        if (!dot)
            continue;
        *dot = '\0';
        array_reserve(goldens, capacity, count + 1);
        goldens[count] = (struct golden){.name = xstrdup(entry->d_name)};
        goldens[count].text = read_golden(entry->d_name, "txt", &goldens[count].length);
        goldens[count].verdict = read_golden(entry->d_name, "verdict", &ignored);
        count++;
    }
    if (directory)
        closedir(directory);
}

AROUND(free_goldens)
{
    for (size_t i = 0; i < count; i++) {
        free(goldens[i].name);
        free(goldens[i].text);
        free(goldens[i].verdict);
    }
    free(goldens);
}

static char *print_verdict(const struct classify_verdict *verdict)
{
    struct strbuf out = {0};

    strbuf_printf(&out, "kind %s\nrequested_bytes %" PRId64 "\nfree_bytes %" PRId64 "\n",
                  output_kind_name(verdict->kind), verdict->requested_bytes, verdict->free_bytes);
    for (uint32_t i = 0; i < verdict->tenant_count; i++)
        strbuf_printf(&out, "tenant %" PRId32 " %" PRId64 "\n", verdict->tenants[i].pid,
                      verdict->tenants[i].used_bytes);
    if (*verdict->line)
        strbuf_printf(&out, "line %s\n", verdict->line);
    if (verdict->own_error)
        strbuf_puts(&out, "an error of its own\n");
    return strbuf_steal(&out);
}

TEST(test_goldens)
{
    size_t of_kind[OUTPUT_KIND_COUNT] = {0};

    for (size_t i = 0; i < count; i++) {
        struct classify_verdict verdict;
        classify_output(goldens[i].text, goldens[i].length, &verdict);
        CLEANUP(free_ptr) char *said = print_verdict(&verdict);
        if (strcmp(said, goldens[i].verdict) != 0)
            fail_msg("%s: it says\n%sand not\n%s", goldens[i].name, said, goldens[i].verdict);
        of_kind[verdict.kind]++;
    }
    for (size_t kind = 0; kind < OUTPUT_KIND_COUNT; kind++)
        if (!of_kind[kind])
            fail_msg("no message of kind %s", output_kind_name((uint32_t)kind));
}

/* A message as programs dress it up: in colours, by rank, in a log's line, after a progress bar, in other bytes. */
static char *dressed(const char *text, int way)
{
    static const char *const before[] = {"",
                                         "\033[1;31m",
                                         "[rank3]: ",
                                         "2026-01-01 10:00:00,123 ERROR ",
                                         "",
                                         " 45%|####5     | 45/100\r",
                                         "\xff\xfe\x80 "};
    static const char *const behind[] = {"\n", "\033[0m\n", "\n", "\n", "\r\n", "\n", " \xc3\n"};
    struct strbuf out = {0};

    if (way >= (int)array_size(before))
        return NULL;
    for (const char *at = text, *end; *at; at = *end ? end + 2 : end) { /* "\n" of the table */
        end = strstr(at, "\\n");
        end = end ? end : at + strlen(at);
        strbuf_puts(&out, before[way]);
        for (const char *c = at; c < end; c++)
            strbuf_printf(&out, "%c%s", *c, way == 1 && *c == ' ' ? "\033[0;35m" : ""); /* each word by itself */
        strbuf_puts(&out, behind[way]);
    }
    return strbuf_steal(&out);
}

/* tests/golden/messages.tsv. */
TEST(test_the_table_of_messages)
{
    CLEANUP(free_ptr) char *table = file_text(CARMA_GOLDEN "/messages.tsv");
    size_t rows = 0;
    char *rest, *line;

    for (line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *kind = strsep(&line, "\t"), *source = strsep(&line, "\t");
        char *text;
        if (*kind == '#')
            continue;
        for (int way = 0; (text = dressed(line, way)); way++, free(text)) {
            struct classify_verdict verdict;
            classify_output(text, strlen(text), &verdict);
            if (strcmp(output_kind_name(verdict.kind), kind) != 0)
                fail_msg("%s, in way %d: %s, not %s:\n%s", source, way, output_kind_name(verdict.kind), kind, text);
        }
        rows++;
    }
    assert_true(rows > 100);
}

/* The text ends where its length says: no pattern is read on beyond, in any place where it is cut. */
TEST(test_cuts)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t length = i % 7; length < goldens[i].length; length += 7) {
            char *exact = xmalloc(length ? length : 1); /* the sanitizer watches its end */
            struct classify_verdict verdict;
            memcpy(exact, goldens[i].text, length);
            classify_output(exact, length, &verdict);
            free(exact);
        }
    }
}

TEST(test_latest_counts)
{
    static const char text[] =
        "RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; x; 2.00 MiB free; y)\n"
        "retry with less\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. of which "
        "4.00 MiB is free.\nRuntimeError: CUDA error: out of memory\n";
    struct classify_verdict verdict;

    classify_output(text, sizeof text - 1, &verdict);
    assert_int_equal(verdict.kind, OUTPUT_GPU_OOM);
    assert_true(verdict.requested_bytes == 3 * GIB);
    assert_true(verdict.free_bytes == 4 * MIB);
    assert_string_equal(verdict.line, "RuntimeError: CUDA error: out of memory");
}

/* More others than there is room for; texts that only begin like one. */
TEST(test_tenants)
{
    static const char odd[] =
        "CUDA out of memory. Tried to allocate 1.00 GiB. of which 2.00 MiB is free. Process has 1.00 "
        "GiB memory in use. Process 5 has been here. Process 99999999999 has 1.00 GiB memory in use. "
        "Process 7 has 3 things. Process 8 has 1.00 GiB memory in use. Process 9 has 1.00 GiB";
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct classify_verdict verdict;

    classify_output(odd, sizeof odd - 1, &verdict);
    assert_int_equal(verdict.tenant_count, 1);
    assert_int_equal(verdict.tenants[0].pid, 8);
    assert_true(verdict.tenants[0].used_bytes == GIB);
    strbuf_puts(&text, "CUDA out of memory. Tried to allocate 1.00 GiB.");
    for (int i = 1; i < 20; i++)
        strbuf_printf(&text, " Process %d has %d.00 MiB memory in use.", i, i);
    classify_output(text.text, text.length, &verdict);
    assert_int_equal(verdict.tenant_count, CLASSIFY_MAX_TENANTS);
    assert_int_equal(verdict.tenants[CLASSIFY_MAX_TENANTS - 1].pid, CLASSIFY_MAX_TENANTS);
}

/* A MiB of each, in little time: it is read while the job's end waits for it. */
TEST(test_hostile)
{
    static const char *const repeated[] = {
        "C", /* every byte may begin a word */
        "\n",
        "OOM\n",
        "CUDA error: out of memory. Tried to allocate 2.00 GiB ",
        "CUDA out of memory. Tried to allocate 2.00 GiB of which 1.00 GiB is free. Process 7 has 1.00 GiB\n",
        "File \"Segmentation fault exception in thread panicked at ",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x\nmine.Error: bad\n",
    };
    size_t size = 1 << 20;
    CLEANUP(free_ptr) char *text = xmalloc(size);
    struct classify_verdict verdict;

    for (size_t i = 0; i < array_size(repeated); i++) {
        size_t length = strlen(repeated[i]);
        clock_t begun = clock();
        for (size_t at = 0; at < size; at++)
            text[at] = repeated[i][at % length];
        classify_output(text, size, &verdict);
        assert_int_equal(verdict.kind, strstr(repeated[i], "CUDA") ? OUTPUT_GPU_OOM : OUTPUT_NOTHING);
        assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 2); /* with sanitizers; a release takes 30 ms */
    }
    srand(1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)rand();
    classify_output(text, size, &verdict);
    assert_int_equal(verdict.kind, OUTPUT_NOTHING);
    memset(text, '9', size);
    memcpy(text, "CUDA out of memory. Tried to allocate ", 38);
    classify_output(text, size, &verdict);
    assert_true(verdict.kind == OUTPUT_GPU_OOM && verdict.requested_bytes == -1);
}

/* One line may hold the words of many writers: words far apart in it are not a message. */
TEST(test_long_lines)
{
    static const char message[] = "CUDA error: out of memory", end[] = "out of memory";
    size_t size = 1 << 20;
    CLEANUP(free_ptr) char *text = xmalloc(size);
    struct classify_verdict verdict;

    memset(text, '.', size);
    memcpy(text + size / 2, message, sizeof message - 1);
    classify_output(text, size, &verdict);
    assert_int_equal(verdict.kind, OUTPUT_GPU_OOM);
    assert_non_null(strstr(verdict.line, message));
    memset(text, '.', size);
    memcpy(text, "GPU", 3);
    memcpy(text + 3000, end, sizeof end - 1);
    classify_output(text, size, &verdict);
    assert_int_equal(verdict.kind, OUTPUT_NOTHING);
    memset(text, 0, size);
    memcpy(text + size - sizeof message + 1, message, sizeof message - 1);
    classify_output(text, size, &verdict);
    assert_int_equal(verdict.kind, OUTPUT_GPU_OOM);
    assert_string_equal(verdict.line, message);
}

/* A device that does not start is the device's failure, as each framework says it. */
static const char *const devices_that_do_not_start[] = {
    "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
    "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before?",
    "RuntimeError: CUDA error: initialization error",
    "CUDA error at main.cu:12: no CUDA-capable device is detected",
    "cudaGetDevice() failed. Status: CUDA_ERROR_DEVICE_UNAVAILABLE",
    "E external/cuda_driver.cc:265] failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized",
    "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform CUDA",
    "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: No visible GPU devices.",
    "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorDevicesUnavailable",
};

EACH_ROW(TEST, test_devices_that_do_not_start, devices_that_do_not_start)
{
    struct classify_verdict verdict;
    classify_output(*row, strlen(*row), &verdict);
    if (verdict.kind != OUTPUT_GPU_ERROR)
        fail_msg("%s: %s", *row, output_kind_name(verdict.kind));
}

RUN_TESTS(read_goldens, free_goldens)
