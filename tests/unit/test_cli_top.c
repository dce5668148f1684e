/* The screen of `carma top` and its keys, without a terminal: tests/fakes/top.json at three sizes as
 * tests/golden/top-COLUMNSxROWS.txt (GOLDEN=write makes them), order, filter, selection, texts. */
#include "unit.h"

#include "cli/show/answer.h"
#include "cli/top/keys.h"
#include "cli/top/answer.h"

#define ADA 1001

static struct top_picture read_picture(void)
{
    CLEANUP(json_release) json_t *all = json_load_file(TOP_JSON, 0, NULL);
    struct top_picture picture;

    assert_non_null(all);
    picture.status = json_incref(json_object_get(all, "status"));
    picture.gpus = json_incref(json_object_get(all, "gpus"));
    picture.running = json_incref(json_object_get(all, "running"));
    picture.waiting = json_incref(json_object_get(all, "waiting"));
    return picture;
}

static int set_up(void **state)
{
    struct top_model *model = xmalloc(sizeof *model);
    struct top_picture picture = read_picture();

    top_model_init(model, ADA);
    top_model_take(model, &picture);
    *state = model;
    return 0;
}

static int tear_down(void **state)
{
    top_model_release(*state);
    free(*state);
    return 0;
}

#define TOP_TEST(name) TEST_ON(name, struct top_model *model, set_up, tear_down)

static void screen_text(const struct top_screen *screen, struct strbuf *out)
{
    for (size_t i = 0; i < screen->height; i++) {
        for (size_t k = 0; k < screen->lines[i].count; k++)
            strbuf_puts(out, screen->lines[i].spans[k].text);
        while (out->length && out->text[out->length - 1] == ' ')
            out->text[--out->length] = '\0';
        strbuf_puts(out, "\n");
    }
}

/* As text, owned by the caller; no line may be wider than the screen. */
static char *show(struct top_model *model, size_t width, size_t height)
{
    struct strbuf out = {0};
    CLEANUP(top_screen_release) struct top_screen screen;

    top_screen_init(&screen, width, height);
    top_view(model, &screen);
    for (size_t i = 0; i < height; i++)
        assert_true(screen.lines[i].width <= width);
    screen_text(&screen, &out);
    return strbuf_steal(&out);
}

/* At the usual size. */
static void expect_shown(struct top_model *model, const char *part)
{
    CLEANUP(free_ptr) char *text = show(model, 80, 24);

    assert_non_null(strstr(text, part));
}

TOP_TEST(screens_are_as_kept)
{
    static const size_t sizes[][2] = {{80, 24}, {40, 10}, {200, 60}};

    for (size_t i = 0; i < array_size(sizes); i++) {
        CLEANUP(free_ptr) char *text = show(model, sizes[i][0], sizes[i][1]);
        char name[sizeof CARMA_GOLDEN + 64];
        snprintf(name, sizeof name, CARMA_GOLDEN "/top-%zux%zu.txt", sizes[i][0], sizes[i][1]);
        expect_file(name, text);
    }
}

TOP_TEST(no_size_is_too_odd)
{
    for (size_t width = 1; width < 140; width += 3)
        for (size_t height = 1; height < 50; height += 2)
            for (enum top_pane pane = 0; pane < TOP_PANES; pane++) {
                model->focus = pane;
                CLEANUP(free_ptr) char *text = show(model, width, height);
                assert_true(width < TOP_LEAST_WIDTH || height < TOP_LEAST_HEIGHT || strstr(text, "carma"));
            }
}

/* ---- Keys ---- */

static int64_t job; /* which the last key was about */

static enum top_request press(struct top_model *model, const char *keys)
{
    enum top_request request = TOP_NOTHING;

    for (; *keys; keys++)
        request = top_key(model, (uint32_t)*keys, &job);
    return request;
}

static void expect_ids(const struct top_model *model, enum top_pane pane, const char *wanted)
{
    CLEANUP(strbuf_release) struct strbuf ids = {0};

    strbuf_puts(&ids, "");
    for (size_t i = 0; i < model->job_count[pane] && i < 5; i++)
        strbuf_printf(&ids, "%s%d", i ? " " : "", (int)model->jobs[pane][i].id);
    assert_string_equal(ids.text, wanted);
}

/* What is done with a row of an array is done with all its jobs, and the question says so. */
TOP_TEST(an_array_is_one_row)
{
    model->focus = TOP_QUEUE;
    model->cursors[TOP_QUEUE].selected = 2;
    expect_shown(model, "11_[3-99%8] later");
    press(model, "c");
    assert_string_equal(model->which, "ids=11_[3-99]&state=HELD");
    expect_shown(model, "cancel all these waiting jobs of the array, 11_[3-99]? y/n");
    assert_int_equal(press(model, "y"), TOP_CANCEL);
    model->cursors[TOP_QUEUE].selected = 1;
    press(model, "c");
    assert_string_equal(model->which, "");
    expect_shown(model, "cancel job 10? y/n");
}

TOP_TEST(jobs_are_sorted)
{
    expect_ids(model, TOP_RUNNING, "7 8");
    model->sort[TOP_RUNNING] = TOP_BY_SLOWDOWN; /* the greatest first, for every question about the most */
    top_model_arrange(model);
    expect_ids(model, TOP_RUNNING, "8 7");
    press(model, "r");
    expect_ids(model, TOP_RUNNING, "7 8");
    for (enum top_sort sort = 0; sort < TOP_SORTS; sort++) { /* all of them come, and the first again */
        model->sort[TOP_RUNNING] = sort;
        press(model, ">");
        assert_int_equal(model->sort[TOP_RUNNING], (sort + 1) % TOP_SORTS);
        press(model, "<");
        assert_int_equal(model->sort[TOP_RUNNING], sort);
    }
    static const struct {
        enum top_sort sort;
        const char *ids;
    } orders[] = {{TOP_BY_ORDER, "7 8"}, {TOP_BY_USER, "7 8"}, {TOP_BY_USED, "7 8"},   {TOP_BY_RESERVED, "7 8"},
                  {TOP_BY_SM, "7 8"},    {TOP_BY_TIME, "7 8"}, {TOP_BY_ENERGY, "7 8"}, {TOP_BY_NAME, "8 7"}};
    for (size_t i = 0; i < array_size(orders); i++) {
        model->sort[TOP_RUNNING] = orders[i].sort;
        top_model_arrange(model);
        expect_ids(model, TOP_RUNNING, orders[i].ids);
    }

    expect_ids(model, TOP_QUEUE, "9 10 11 100 101"); /* retried jobs come before the queue */
    press(model, "\t");
    assert_int_equal(model->focus, TOP_QUEUE);
    press(model, ">>>");
    assert_int_equal(model->sort[TOP_QUEUE], TOP_BY_RESERVED); /* used memory says nothing of waiting jobs */
    expect_ids(model, TOP_QUEUE, "9 100 101 102 103");
    press(model, ">");
    assert_int_equal(model->sort[TOP_QUEUE], TOP_BY_TIME);
    expect_ids(model, TOP_QUEUE, "9 10 100 101 102");
}

TOP_TEST(jobs_are_filtered)
{
    press(model, "/SWEEP-2");
    assert_true(model->typing);
    expect_ids(model, TOP_QUEUE, "102 120 121 122 123");
    assert_int_equal(model->job_count[TOP_RUNNING], 0);
    press(model, "3 b\r");
    assert_false(model->typing);
    expect_ids(model, TOP_QUEUE, "123"); /* each word, somewhere */
    assert_int_equal(top_model_wanted(model), TOP_SEEN_JOBS);
    press(model, "/");
    top_key(model, TOP_KEY_BACKSPACE, &job);
    assert_string_equal(model->filter, "SWEEP-23 ");
}

TOP_TEST(filter_ends)
{
    press(model, "/held\r");
    expect_ids(model, TOP_QUEUE, "11");
    press(model, "\033");
    assert_int_equal(model->job_count[TOP_QUEUE], 33);
    press(model, "u");
    expect_ids(model, TOP_QUEUE, "9 11");
    expect_ids(model, TOP_RUNNING, "7");
    expect_shown(model, "only mine");
    press(model, "u/nobody has this\r");
    expect_shown(model, "none of them (Esc: show all again)");
    for (int i = 0; i < 2 * TOP_FILTER; i++)
        press(model, "/x");
    assert_int_equal(strlen(model->filter), TOP_FILTER - 1);
}

TOP_TEST(selection_follows_its_job)
{
    struct top_picture picture = read_picture();
    json_t *list = json_object_get(picture.waiting, "jobs");
    press(model, "\tjj");
    assert_int_equal(top_model_selected(model)->id, 11);
    json_array_remove(list, 0); /* 10 has been started, 9 cancelled */
    json_array_remove(list, 1);
    top_model_take(model, &picture);
    assert_int_equal(top_model_selected(model)->id, 11);
    assert_int_equal(model->cursors[TOP_QUEUE].selected, 0);

    picture = read_picture(); /* 11 is gone: the row stays */
    json_array_remove(json_object_get(picture.waiting, "jobs"), 1);
    model->cursors[TOP_QUEUE].selected = 2;
    top_model_take(model, &picture);
    assert_int_equal(top_model_selected(model)->id, 100);

    top_key(model, TOP_KEY_END, &job); /* it is brought into sight */
    assert_int_equal(top_model_selected(model)->id, 129);
    CLEANUP(free_ptr) char *end = show(model, 80, 24);
    assert_non_null(strstr(end, "sweep-29"));
    assert_null(strstr(end, "sweep-0 "));
    top_key(model, TOP_KEY_PAGE_UP, &job);
    assert_int_equal(top_model_selected(model)->id, 129 - (int)model->page[TOP_QUEUE]);
    top_key(model, TOP_KEY_HOME, &job);
    top_key(model, TOP_KEY_UP, &job);
    assert_int_equal(top_model_selected(model)->id, 9);

    picture = (struct top_picture){0};
    top_model_take(model, &picture);
    assert_null(top_model_selected(model));
    expect_shown(model, "no job waits");
}

/* More of the queue is asked for where somebody scrolls, and no end of it is. */
TOP_TEST(more_of_the_queue_is_wanted)
{
    model->page[TOP_QUEUE] = 10;
    assert_int_equal(top_model_wanted(model), TOP_HEAD_JOBS);
    model->cursors[TOP_QUEUE].selected = 90;
    assert_int_equal(top_model_wanted(model), 2 * TOP_HEAD_JOBS);
    model->cursors[TOP_QUEUE].selected = 5000000;
    assert_int_equal(top_model_wanted(model), TOP_MOST_JOBS);
}

TOP_TEST(keys_ask_the_daemon)
{
    job = -1;
    assert_int_equal(press(model, "c"), TOP_NOTHING); /* not before it is answered */
    expect_shown(model, "cancel job 7? y/n");
    assert_int_equal(press(model, "n"), TOP_NOTHING);
    assert_int_equal(press(model, "c\r"), TOP_NOTHING);
    assert_int_equal(press(model, "y"), TOP_NOTHING); /* nothing is asked any more */
    assert_int_equal(press(model, "jcy"), TOP_CANCEL);
    assert_int_equal(job, 8);
    assert_int_equal(press(model, "\th"), TOP_HOLD);
    assert_int_equal(job, 9);
    assert_int_equal(press(model, "jjh"), TOP_RELEASE);
    assert_int_equal(job, 11);
    assert_int_equal(press(model, "\tc"), TOP_NOTHING); /* GPUs */
    assert_true(model->message_bad);
    assert_int_equal(model->cancel_job, -1);
    assert_int_equal(press(model, "\tl"), TOP_NOTHING);
    assert_int_equal(model->mode, TOP_LOG);
    assert_int_equal(model->shown_job, 8);
    assert_int_equal(press(model, "q"), TOP_NOTHING); /* back, not out */
    assert_int_equal(model->mode, TOP_LISTS);
    assert_int_equal(press(model, "?"), TOP_NOTHING);
    expect_shown(model, "hold it, or release it");
    assert_int_equal(press(model, "\033q"), TOP_QUIT);
}

/* ---- Errors ---- */

TOP_TEST(a_lost_daemon_is_said)
{
    CLEANUP(top_screen_release) struct top_screen screen;

    snprintf(model->lost, sizeof model->lost, "/run/x: no daemon listens there");
    model->lost_s = 12;
    CLEANUP(free_ptr) char *text = show(model, 80, 24);
    assert_non_null(strstr(text, "NO DAEMON for 12 s, trying again\n"));
    assert_non_null(strstr(text, "/run/x: no daemon listens there\n"));
    assert_non_null(strstr(text, "sweep-0")); /* the last picture stays */
    top_screen_init(&screen, 80, 24);
    top_view(model, &screen);
    assert_true(screen.stale);
}

TOP_TEST(nothing_is_obeyed)
{
    struct top_line line = {0};

    for (size_t width = 40; width <= 200; width += 20) {
        CLEANUP(free_ptr) char *text = show(model, width, 30);
        for (const char *c = text; *c; c++)
            assert_true((unsigned char)*c >= ' ' || *c == '\n');
        assert_null(strstr(text, "\u202e"));
        assert_non_null(strstr(text, "\\x1b"));
    }
    top_put(&line, STYLE_NONE, 12, false, "a\tb\u0378c");
    assert_string_equal(line.spans[0].text, "a\\x09b?c    ");  /* characters that the C library does not know, terminals
                                                                  may not know either */
    top_put(&line, STYLE_NONE, 4, true, "\u6f22\u5b57\u6f22"); /* two columns each */
    assert_string_equal(line.spans[1].text, "\u6f22\u2026 ");
    assert_int_equal(line.width, 16);
    for (size_t i = 0; i < line.count; i++)
        free(line.spans[i].text);
    free(line.spans);
}

/* ---- Layout ---- */

static const struct {
    size_t wants[3], focus, available, rows[3];
} rows_are_shared_rows[] = {
    {{9, 40, 40}, 1, 21, {9, 6, 6}},   {{9, 40, 40}, 1, 22, {9, 7, 6}}, {{9, 40, 40}, 2, 22, {9, 6, 7}},
    {{65, 40, 40}, 0, 21, {10, 6, 5}}, {{65, 2, 2}, 0, 21, {17, 2, 2}}, {{5, 3, 40}, 0, 21, {5, 3, 13}},
    {{5, 40, 2}, 0, 21, {5, 14, 2}},   {{5, 2, 2}, 0, 50, {5, 2, 2}},   {{5, 40, 40}, 1, 8, {4, 2, 2}},
    {{5, 40, 40}, 0, 3, {2, 1, 0}},
};

EACH_ROW(TEST, rows_are_shared, rows_are_shared_rows)
{
    size_t rows[3];

    top_share_rows(row->wants, 3, row->focus, row->available, rows);
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(rows[k], row->rows[k]);
}

static const struct {
    size_t width, widths[4];
} columns_fit_rows[] = {{19, {4, 4, 4, 4}},  {18, {4, 8, 0, 4}},    {14, {4, 4, 0, 4}}, {13, {4, 8, 0, 0}},
                        {34, {4, 9, 14, 4}}, {100, {4, 14, 24, 4}}, {3, {4, 4, 0, 0}}};

EACH_ROW(TEST, columns_fit, columns_fit_rows)
{
    static const struct top_column columns[] = {
        {"A", false, 4, 4, 0}, {"B", false, 4, 14, 0}, {"C", false, 4, 24, 2}, {"D", false, 4, 4, 1}};
    size_t widths[4];

    top_fit(columns, 4, row->width, widths);
    size_t total = 0, shown = 0;
    for (size_t k = 0; k < 4; k++) {
        total += widths[k];
        shown += widths[k] > 0;
    }
    if (row->width >= 9)
        assert_true(total + shown - 1 <= row->width);
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(widths[k], row->widths[k]);
}

/* ---- Texts ---- */

static void put_row(void *user, const char *row)
{
    strbuf_printf(user, "%s|", row);
}

static void expect_text(struct top_text *text, size_t width, size_t height, const char *wanted)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    strbuf_puts(&out, "");
    top_text_show(text, width, height, put_row, &out);
    assert_string_equal(out.text, wanted);
}

TEST(output_becomes_lines)
{
    static const char output[] = "one\n\033[1;31mtwo\033[0m\r\nold\rnew  \rnewest\n\ttab\n\033]0;title\007\nopen";
    static const char lines[] = "one|two|newest|        tab|\\x1b]0;title\\x07|open|";
    struct top_text text = {0};

    top_text_add(&text, output, strlen(output));
    expect_text(&text, 80, 20, lines);
    top_text_release(&text);
    for (size_t i = 0; i < strlen(output); i++) /* in any cut */
        top_text_add(&text, output + i, 1);
    expect_text(&text, 80, 20, lines);
    top_text_add(&text, " end\n", 5);
    expect_text(&text, 80, 2, "\\x1b]0;title\\x07|open end|");
    top_text_release(&text);
}

TEST(texts_scroll_and_are_bounded)
{
    CLEANUP(free_ptr) char *long_line = xcalloc(5 * TOP_TEXT_LINE_BYTES, 1);
    CLEANUP(top_text_release) struct top_text text = {0};
    char line[32];

    for (int i = 0; i < 3 * TOP_TEXT_LINES; i++) {
        snprintf(line, sizeof line, "line %d", i);
        top_text_line(&text, line);
    }
    assert_int_equal(text.count, TOP_TEXT_LINES);
    expect_text(&text, 80, 2, "line 2998|line 2999|");
    text.above = 1;
    expect_text(&text, 80, 2, "line 2997|line 2998|");
    top_text_line(&text, "one more");
    expect_text(&text, 80, 2, "line 2997|line 2998|"); /* a reader further up goes on reading there */
    text.above = INT64_MAX;
    expect_text(&text, 80, 2, "line 2001|line 2002|");
    text.above = 0;
    top_text_line(&text, "words that need more than a row");
    expect_text(&text, 12, 3, "words that |need more |than a row|");
    memset(long_line, 'x', 5 * TOP_TEXT_LINE_BYTES - 1);
    top_text_add(&text, long_line, 5 * TOP_TEXT_LINE_BYTES - 1);
    assert_true(text.open.length < TOP_TEXT_LINE_BYTES);
}

TEST(details_are_lines)
{
    CLEANUP(json_release)
    json_t *described = json_pack("{s:s, s:s, s:s, s:i, s:I, s:s, s:{s:i, s:i, s:f}}", "name", "a\033[31mb", "user",
                                  "ada", "state", "QUEUED", "gpus", 2, "slowdown_permille", (json_int_t)1250,
                                  "last_end", "GPU memory ran out; it is retried before the queue", "progress", "step",
                                  370, "total", 1000, "steps_per_s", 0.4);
    CLEANUP(json_release)
    json_t *explanation = json_pack("{s:s, s:s, s:[{s:i, s:I, s:s}]}", "text", "needs an idle GPU", "memory",
                                    "12.4 GiB on each GPU, declared", "gpus", "index", 3, "free_bytes",
                                    (json_int_t)1 << 30, "verdict", "is busy");
    struct top_text text = {0};

    top_view_details(described, explanation, &text);
    expect_text(&text, 80, 20,
                "Name      a\\x1b[31mb|User      ada|State     QUEUED: needs an idle GPU|"
                "Last run  GPU memory ran out; it is retried before the queue|GPUs      2|"
                "Memory    12.4 GiB on each GPU, declared|Slowdown  1.25, as estimated for those on its GPUs|"
                "Progress  370 of 1000 steps, one in 2.5 s|"
                "GPU 3     1.0 GiB free: is busy|");
    top_text_release(&text);
    top_view_details(NULL, NULL, &text);
    assert_true(text.count > 0);
    top_text_release(&text);
}

int main(void)
{
    json_set_alloc_funcs(xmalloc, free);
    setenv("TZ", "UTC", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    if (!setlocale(LC_CTYPE, ""))
        return 77;
    return unit_tests_run("tests", NULL, NULL);
}
