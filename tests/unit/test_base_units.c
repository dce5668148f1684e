#include "unit.h"

TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096B", 4096},
        {"17B", 17},
        {"1K", 1024},
        {"12G", 12 * GIB},
        {"12GiB", 12 * GIB},
        {"12gb", 12 * GIB},
        {"512M", 512 * MIB},
        {"512 MiB", 512 * MIB},
        {"1.5G", 3 * GIB / 2},
        {"2T", 2 * TIB},
        {".5K", 512},
        {"4611686018427387904B", INT64_C(1) << 62},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t bytes = -1;
        assert_int_equal(parse_size(cases[i].text, &bytes, &trouble), 0);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

TEST(nonsense_is_no_size)
{
    static const char *const cases[] = {
        "",    "G",    "-1G",  "+1",   "1.2.3G", "1e3", "0x10", "inf",
        "nan", "12Gi", "12GX", "1G 2", ".",      " 1G", "1,5G", "12345678901234567890123456789012"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        int64_t bytes = 77;
        assert_int_equal(parse_size(cases[i], &bytes, &err), -EINVAL);
        assert_int_equal(bytes, 77);
        assert_non_null(strstr(err.text, cases[i]));
        assert_non_null(strstr(err.text, "12G"));
    }
}

TEST(a_bare_number_is_no_size)
{
    static const char *const cases[] = {"12", "12 ", "7000", "0.5", "12884901888"};
    int64_t bytes = 77;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse_size(cases[i], &bytes, &trouble), -EINVAL);
        assert_int_equal(bytes, 77);
    }
    parse_size("12", &bytes, &trouble);
    assert_string_equal(trouble.text, "'12' has no unit: say 12GiB or 12MiB");
}

TEST(huge_sizes_are_out_of_range)
{
    int64_t bytes = 77;

    assert_int_equal(parse_size("4194305T", &bytes, &trouble), -ERANGE);
    assert_error(parse_size("99999999999999999999B", &bytes, &trouble), -ERANGE, "99999999999999999999");
    assert_int_equal(bytes, 77);
}

TEST(durations_are_read_as_slurm_does)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } cases[] = {
        {"30", 1800},          {"0", 0},
        {"2:30", 150},         {"1:02:03", 3723},
        {"2-12", 216000},      {"1-02:03", 93780},
        {"1-02:03:04", 93784}, {"0-0:0:5", 5},
        {"90s", 90},           {"1.5h", 5400},
        {"2d", 172800},        {"5min", 300},
        {"5m", 300},           {"100:00:00", 360000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -1;
        assert_int_equal(parse_duration(cases[i].text, &ns, &trouble), 0);
        assert_int_equal(ns, cases[i].seconds * NS_PER_SEC);
    }
}

TEST(milliseconds_are_read)
{
    int64_t ns = -1;

    assert_int_equal(parse_duration("250ms", &ns, NULL), 0);
    assert_int_equal(ns, 250 * NS_PER_MS);
}

TEST(nonsense_is_no_duration)
{
    static const char *const cases[] = {"",       "-5",  "-1-2",    "1:",   ":30",  "1:2:3:4", "1-",  "1-2:3:4:5",
                                        "5weeks", "1 h", "99999-0", "1--2", "1:-2", "abc",     "inf", "9999999999999d",
                                        "1:2x",   "+5"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        int64_t ns = 77;
        assert_int_equal(parse_duration(cases[i], &ns, &err), -EINVAL);
        assert_int_equal(ns, 77);
        assert_non_null(strstr(err.text, cases[i]));
    }
}

TEST(integers_are_whole_and_in_range)
{
    static const char *const malformed[] = {"", " 1", "1 ", "+1", "1.0", "0x1", "one", "1e2", "--1"};
    static const char *const outside[] = {"-6", "11", "99999999999999999999", "-99999999999999999999"};
    int64_t value = 77;

    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        assert_int_equal(parse_integer(malformed[i], -5, 10, &value, &trouble), -EINVAL);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_error(parse_integer(outside[i], -5, 10, &value, &trouble), -ERANGE, outside[i]);
        assert_non_null(strstr(trouble.text, "-5 to 10"));
    }
    assert_int_equal(value, 77);
    assert_int_equal(parse_integer("-5", -5, 10, &value, &trouble), 0);
    assert_int_equal(value, -5);
    assert_int_equal(parse_integer("10", -5, 10, &value, &trouble), 0);
    assert_int_equal(value, 10);
}

TEST(bytes_are_written_for_people)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {512 * MIB, "512 MiB"},
        {GIB, "1.0 GiB"},
        {GIB - 1, "1.0 GiB"}, /* not "1024 MiB" */
        {12 * GIB + 2 * GIB / 5, "12.4 GiB"},
        {2 * TIB, "2.0 TiB"},
        {2048 * TIB, "2048.0 TiB"},
        {-512 * MIB, "-512 MiB"},
        {INT64_MIN, "-8388608.0 TiB"},
    };
    char text[UNITS_TEXT];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(format_bytes(cases[i].bytes, text), cases[i].text);
}

TEST(durations_are_written_for_people)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "0:00"},       {7, "0:07"},         {184, "3:04"},         {3599, "59:59"},       {3600, "1:00:00"},
        {7384, "2:03:04"}, {86399, "23:59:59"}, {86400, "1-00:00:00"}, {93784, "1-02:03:04"}, {-5, "0:00"},
    };
    char text[UNITS_TEXT];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(format_duration(cases[i].seconds * NS_PER_SEC, text), cases[i].text);
    assert_string_equal(format_duration(NS_PER_SEC - 1, text), "0:00");
    assert_true(strlen(format_duration(INT64_MAX, text)) < UNITS_TEXT);
}
