/* The command line's input and output: id lists, safe text, tables. */
#include "unit.h"

#include "cli/ids.h"
#include "cli/show/markup.h"
#include "cli/show/table.h"
#include "cli/show/term.h"

static void expect_ids(const char *text, size_t count, const uint64_t *ids)
{
    CLEANUP(id_list_release) struct id_list list = {0};

    assert_int_equal(id_list_parse(&list, text, NULL), 0);
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(list.items[i] == ids[i]);
}

TEST(id_lists_are_read)
{
    expect_ids("7", 1, (uint64_t[]){ID_WORD}); /* it may be an array */
    expect_ids("1,3-5", 4, (uint64_t[]){ID_WORD, 3, 4, 5});
    expect_ids("3-5,2-4", 4, (uint64_t[]){3, 4, 5, 2}); /* each once, as written */
    expect_ids("4-4", 1, (uint64_t[]){4});
    expect_ids("@,2,7_3,7_[0-2,9]", 4, (uint64_t[]){ID_WORD, ID_WORD + 1, ID_WORD + 2, ID_WORD + 3});
}

TEST(bad_id_lists_are_refused)
{
    CLEANUP(free_ptr)
    char *bad = xstrdup("|,|1,|,1|0|-1|1-|a|1-b|5-3|1 2|@1|1--2|+1|@-3|99999999999999999999|"
                        "1-99999999999|1-10002|7_|7_[1|7_1-3|_3|7_[3-1]|7_[0-3%2]");
    char *rest = bad;

    for (char *text = strsep(&rest, "|"); text; text = strsep(&rest, "|")) {
        CLEANUP(id_list_release) struct id_list list = {0};
        struct error err = {{0}};
        if (id_list_parse(&list, text, &err) >= 0 || !*err.text)
            fail_msg("'%s' was taken", text);
    }
}

TEST(id_lists_are_bounded_in_all)
{
    CLEANUP(id_list_release) struct id_list list = {0};

    assert_int_equal(id_list_parse(&list, "1-10000", NULL), 0);
    assert_int_equal(list.count, ID_LIST_MAX);
    assert_true(id_list_parse(&list, "20000", NULL) < 0);
}

static void expect_escaped(const char *text, const char *expected)
{
    CLEANUP(free_ptr) char *safe = term_escape(text);

    assert_string_equal(safe, expected);
}

TEST(unsafe_text_is_escaped)
{
    expect_escaped("plain text", "plain text");
    expect_escaped("\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m");
    expect_escaped("a\nb\tc\rd\177", "a\\x0ab\\x09c\\x0dd\\x7f");
    expect_escaped("\xc2\x9b"
                   "31m",
                   "\\xc2\\x9b31m"); /* C1: CSI in one character */
    expect_escaped("x\xe2\x80\xae"
                   "fdp",
                   "x\\xe2\\x80\\xae"
                   "fdp");                             /* right-to-left override */
    expect_escaped("\xff\xc0\xaf", "\\xff\\xc0\\xaf"); /* no UTF-8; overlong */
    expect_escaped("\xe2\x82", "\\xe2\\x82");          /* cut off */
    expect_escaped(NULL, "-");
    expect_escaped("gr\xc3\xbc\xc3\x9f", term_utf8() ? "gr\xc3\xbc\xc3\x9f" : "gr\\xc3\\xbc\\xc3\\x9f");
}

TEST(styles_take_no_columns)
{
    assert_int_equal(term_text_width("\033[31mred\033[0m"), 3);
    assert_int_equal(term_text_width("abc"), 3);
}

TEST(bars_are_clamped)
{
    CLEANUP(free_ptr) char *half = term_bar(1, 2, 4), *over = term_bar(9, 2, 4), *none = term_bar(-1, 0, 4);

    if (term_utf8()) {
        assert_string_equal(half, "██░░");
        assert_string_equal(over, "████");
        assert_string_equal(none, "░░░░");
    } else {
        assert_string_equal(half, "##..");
        assert_string_equal(over, "####");
        assert_string_equal(none, "....");
    }
}

static const struct table_column columns[] = {
    {"ID", true, 0, 0}, {"NAME", false, 4, 0}, {"X", false, 0, 2}, {"Y", true, 0, 1}};

static struct table *sample(void)
{
    struct table *table = table_new(columns, array_size(columns));

    table_cell(table, STYLE_NONE, "%d", 1);
    table_cell(table, STYLE_RED, "short");
    table_cell(table, STYLE_NONE, "xx");
    table_cell(table, STYLE_NONE, "y");
    table_cell(table, STYLE_NONE, "%d", 234);
    table_cell(table, STYLE_NONE, "longer name");
    table_cell(table, STYLE_NONE, "%s", "");
    table_cell(table, STYLE_NONE, "yyy");
    return table;
}

static void expect_table(int width, bool colour, const char *expected)
{
    struct table *table = sample();
    CLEANUP(strbuf_release) struct strbuf out = {0};

    table_format(table, width, colour, &out);
    assert_string_equal(out.text, expected);
    table_free(table);
}

TEST(tables_are_aligned)
{
    expect_table(TERM_UNLIMITED, false,
                 " ID  NAME         X     Y\n"
                 "  1  short        xx    y\n"
                 "234  longer name      yyy\n");
}

TEST(tables_shrink_then_drop_columns)
{
    const char *dots = term_utf8() ? "…" : "~";
    CLEANUP(free_ptr)
    char *shrunk = xasprintf(" ID  NAME    X     Y\n"
                             "  1  short   xx    y\n"
                             "234  longe%s      yyy\n",
                             dots);
    CLEANUP(free_ptr)
    char *dropped = xasprintf(" ID  NAME      Y\n"
                              "  1  short     y\n"
                              "234  longe%s  yyy\n",
                              dots);

    expect_table(20, false, shrunk);
    expect_table(16, false, dropped);
}

TEST(tables_without_room_stay_whole_lines)
{
    const char *dots = term_utf8() ? "…" : "~";
    CLEANUP(free_ptr) char *least = xasprintf(" ID  NAME\n  1  sho%s\n234  lon%s\n", dots, dots);

    expect_table(5, false, least);
}

TEST(colours_keep_the_alignment)
{
    expect_table(TERM_UNLIMITED, true,
                 " \033[1mID\033[0m  \033[1mNAME\033[0m         \033[1mX\033[0m     \033[1mY\033[0m\n"
                 "  1  \033[31mshort\033[0m        xx    y\n"
                 "234  longer name      yyy\n");
}

TEST(markup_is_text)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    markup_append(&out, "a<b> & \"c\"");
    assert_string_equal(out.text, "a&lt;b&gt; &amp; &quot;c&quot;");
}

int main(void)
{
    setenv("LC_ALL", "C", 1); /* read at the first character that needs it */
    int failed = unit_tests_run("C locale", NULL, NULL);

    if (setlocale(LC_CTYPE, "C.UTF-8"))
        failed += unit_tests_run("UTF-8 locale", NULL, NULL);
    return failed;
}
