/* Points in time as people say them, and CSV of texts that somebody else wrote. */
#include "unit.h"

#include "cli/history/ended.h"
#include "cli/history/span.h"
#include "cli/show/csv_text.h"

/* Monday, 26 October 2026, 08:30 in Central Europe, the day after its clocks were set back. */
#define NOW_S INT64_C(1792999800)

static void expect(const char *text, bool ends, int64_t second)
{
    struct error err = {{0}};
    int64_t ns = -1;

    if (span_parse(text, ends, NOW_S * NS_PER_SEC, false, &ns, &err))
        fail_msg("%s: %s", text, err.text);
    if (ns != second * NS_PER_SEC)
        fail_msg("%s is %lld, not %lld", text, (long long)(ns / NS_PER_SEC), (long long)second);
}

TEST(test_times_are_read)
{
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    expect("now", false, NOW_S);
    expect("90s", false, NOW_S - 90);
    expect("1.5h", true, NOW_S - 5400);
    expect("2d", false, NOW_S - 2 * 86400);
    expect("2w", false, NOW_S - 14 * 86400);
    expect("99999d", false, 0); /* before there was time */
    expect("today", false, 1792969200);
    expect("today", true, 1792969200 + 86400);
    expect("yesterday", false, 1792879200); /* a day of 25 hours */
    expect("yesterday", true, 1792969200);
    expect("2026-10-25", false, 1792879200);
    expect("2026-10-25", true, 1792969200);
    expect("2026-11", false, 1793487600);
    expect("2026-11", true, 1796079600);
    expect("2026-12", true, 1798758000); /* to the next year */
    expect("2026-10-26T08:30", true, NOW_S);
    expect("2026-10-26 08:30:01", false, NOW_S + 1);
    expect("2026-07-01T12:00", false, 1782900000); /* summer time, though it is winter now */
    expect("@1792999800", false, NOW_S);
}

TEST(test_what_is_no_time_is_refused)
{
    CLEANUP(free_ptr)
    char *bad = xstrdup("|5|-2d|2 d|2x|1e3d|2026-02-29|2026-13-01|2026-1-1T25:00|26-10-25|"
                        "2026-10-26T08:30:61x|tomorrow|@|@-1|@1e99|@99999999999999|1969-12-31| 2d|"
                        "inf d|nand|0x10d");
    char *rest = bad;
    int64_t ns;

    for (char *text = strsep(&rest, "|"); text; text = strsep(&rest, "|"))
        if (span_parse(text, false, NOW_S * NS_PER_SEC, false, &ns, &trouble) != -EINVAL)
            fail_msg("'%s' was taken", text);
}

TEST(test_a_virtual_node_has_no_dates)
{
    int64_t ns;

    assert_int_equal(span_parse("2d", false, 100 * NS_PER_SEC, true, &ns, &trouble), 0);
    assert_int_equal(ns, 0);
    assert_int_equal(span_parse("@12.5", false, 100 * NS_PER_SEC, true, &ns, &trouble), 0);
    assert_int_equal(ns, 12500000000);
    assert_error(span_parse("2026-10-25", false, 100 * NS_PER_SEC, true, &ns, &trouble), -EINVAL, "virtual node");
    assert_int_equal(span_parse("yesterday", false, 100 * NS_PER_SEC, true, &ns, &trouble), -EINVAL);
}

static void expect_csv(const char *text, const char *expected)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    strbuf_puts(&out, "");
    csv_put_text(&out, text);
    assert_string_equal(out.text, expected);
}

TEST(test_csv_keeps_texts_in_their_place)
{
    expect_csv(NULL, "");
    expect_csv("plain-name_1", "plain-name_1");
    expect_csv("two words", "\"two words\"");
    expect_csv("a,b \"c\"", "\"a,b \"\"c\"\"\"");
    expect_csv("=1+1", "\"'=1+1\"");
    expect_csv("  @SUM(A1)", "\"'  @SUM(A1)\"");
    expect_csv("+x", "\"'+x\"");
    expect_csv("-x", "\"'-x\"");
    expect_csv("\t=x", "\"'\\x09=x\"");
    expect_csv("one\nid,two\r", "\"one\\x0aid,two\\x0d\"");
    expect_csv("\x1b[2J\x7f", "\\x1b[2J\\x7f");
    expect_csv("größe", "größe");
}

TEST(test_queries_are_encoded)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    struct ended_options options;

    ended_init(&options);
    strbuf_puts(&path, "/v1/history");
    ended_put_query(&path, &options, "");
    assert_string_equal(path.text, "/v1/history");
    options.name = "a&b=c %ü*";
    options.since_ns = 5;
    ended_put_query(&path, &options, "limit=2");
    assert_string_equal(path.text, "/v1/history?limit=2&since=5&name=a%26b%3Dc%20%25%C3%BC%2A");
}
