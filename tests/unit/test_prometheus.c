/* Prometheus's text format: the writer, and the table in docs/formats/prometheus.md, which --table prints instead. */
#include "unit.h"

#include "daemon/metrics/metrics.h"
#include "daemon/metrics/prometheus.h"

static void expect(struct strbuf *out, const char *text)
{
    assert_string_equal(out->text ? out->text : "", text);
    strbuf_release(out);
}

TEST(test_begin)
{
    struct strbuf out = {0};

    prometheus_begin(&out, "a_total", PROMETHEUS_COUNTER, "What \"is\" \\ and\nwas.", false);
    expect(&out, "# HELP a_total What \"is\" \\\\ and\\nwas.\n# TYPE a_total counter\n");
    prometheus_begin(&out, "a_bytes_total", PROMETHEUS_COUNTER, "\"A\".", true);
    expect(&out, "# HELP a_bytes \\\"A\\\".\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n");
}

static const struct {
    int64_t value;
    enum prometheus_unit unit;
    const char *text;
} values[] = {
    {0, PROMETHEUS_WHOLE, "a 0\n"},
    {INT64_MAX, PROMETHEUS_WHOLE, "a 9223372036854775807\n"},
    {INT64_MIN, PROMETHEUS_WHOLE, "a -9223372036854775808\n"},
    {1, PROMETHEUS_MILLI, "a 0.001\n"},
    {-1999, PROMETHEUS_MILLI, "a -1.999\n"},
    {1000, PROMETHEUS_MILLI, "a 1.000\n"},
    {INT64_C(86400000000001), PROMETHEUS_NANO, "a 86400.000000001\n"},
    {INT64_MIN, PROMETHEUS_NANO, "a -9223372036.854775808\n"},
};

EACH_ROW(TEST, test_values, values)
{
    struct strbuf out = {0};
    prometheus_sample(&out, "a", NULL, row->value, row->unit);
    expect(&out, row->text);
}

/* Possible labels: all names of users and jobs. */
static const struct {
    const char *value, *written;
} labels_rows[] = {
    {"plain", "plain"},
    {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
    {"\"} 1\na{b=\"", "\\\"} 1\\na{b=\\\""},
    {"tab\there\x1b[31m\x7f", "tab?here?[31m?"},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\xff\xfe", "??"},
    {"cut \xe2\x82", "cut ??"},
    {"cut \xc3\"", "cut ?\\\""},
    {"long \xc0\x80 \xe0\x80\x80 \xf0\x80\x80\x80", "long ?? ??? ????"},
    {"half \xed\xa0\x80, beyond \xf4\x90\x80\x80", "half ???, beyond ????"},
};

EACH_ROW(TEST, test_labels, labels_rows)
{
    const struct prometheus_label labels[] = {{"x", row->value}, {"y", "1"}, {NULL, NULL}};
    CLEANUP(free_ptr) char *text = xasprintf("a{x=\"%s\",y=\"1\"} 7\n", row->written);
    struct strbuf out = {0};
    prometheus_sample(&out, "a", labels, 7, PROMETHEUS_WHOLE);
    expect(&out, text);
}

TEST(test_labels_that_say_nothing)
{
    const struct prometheus_label some[] = {{"x", NULL}, {"y", "1"}, {"z", ""}, {NULL, NULL}};
    const struct prometheus_label none[] = {{"x", NULL}, {"y", ""}, {NULL, NULL}};
    struct strbuf out = {0};

    prometheus_sample(&out, "a", some, 7, PROMETHEUS_WHOLE);
    prometheus_sample(&out, "a", none, 7, PROMETHEUS_WHOLE);
    expect(&out, "a{y=\"1\"} 7\na 7\n");
}

TEST(test_histogram)
{
    const int64_t bounds[] = {1, 60}, no_more[] = {2, 2};
    struct strbuf out = {0};

    prometheus_histogram(&out, "a_seconds", bounds, no_more, 2, 5, INT64_C(200500000000), false);
    expect(&out, "a_seconds_bucket{le=\"1\"} 2\na_seconds_bucket{le=\"60\"} 2\na_seconds_bucket{le=\"+Inf\"} 5\n"
                 "a_seconds_sum 200.500000000\na_seconds_count 5\n");
}

/* ---- The table ---- */

TEST(test_documentation)
{
    CLEANUP(free_ptr) char *page = file_text(CARMA_DOCS "/formats/prometheus.md");
    CLEANUP(strbuf_release) struct strbuf table = {0};

    metrics_describe(&table);
    if (!strstr(page, table.text))
        fail_msg("docs/formats/prometheus.md has not the table that test_prometheus --table prints");
}

TEST(test_names)
{
    CLEANUP(strbuf_release) struct strbuf table = {0};
    char *rest = NULL;

    metrics_describe(&table);
    for (char *line = strtok_r(table.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[100], type[20];
        assert_int_equal(sscanf(line, "| `%99[^`]` | %19s |", name, type), 2);
        const char *end = strlen(name) > 6 ? name + strlen(name) - 6 : name;
        if (strncmp(name, "carma_", 6) != 0 && strncmp(name, "process_", 8) != 0)
            fail_msg("'%s' has no prefix", name);
        if ((strcmp(type, "counter") == 0) != (strcmp(end, "_total") == 0))
            fail_msg("'%s' is a %s", name, type);
    }
}

int main(int argc, char **argv)
{
    CLEANUP(strbuf_release) struct strbuf table = {0};

    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        metrics_describe(&table);
        fputs(table.text, stdout);
        return 0;
    }
    return unit_tests_run("tests", NULL, NULL);
}
