/* The plots' SVG: places, round numbers, escaping, and that many points become few. */
#include "unit.h"

#include <math.h>

#include "cli/show/svg.h"

/* 100 x 100 pixels from (50, 20) on, data from 0 to 10. */
static const struct svg_panel square = {.left = 50, .top = 20, .width = 100, .height = 100, .x_high = 10, .y_high = 10};

/* The parts that drawing has added to an empty plot; owned by the caller. */
static char *drawn(void (*draw)(struct svg *svg))
{
    CLEANUP(svg_free_at) struct svg *svg = svg_new(200, 150, "");
    CLEANUP(svg_free_at) struct svg *empty = svg_new(200, 150, "");
    CLEANUP(free_ptr) char *without = svg_finish(empty);
    CLEANUP(free_ptr) char *with = NULL;
    size_t common = strlen(without) - strlen("</svg>\n");

    draw(svg);
    with = svg_finish(svg);
    assert_int_equal(strncmp(with, without, common), 0);
    with[strlen(with) - strlen("</svg>\n")] = '\0';
    return xstrdup(with + common);
}

#define CLIP                                                                                                           \
    "<clipPath id=\"c1\"><rect x=\"50.0\" y=\"20.0\" width=\"100.0\" height=\"100.0\"/></clipPath>\n"                  \
    "<g clip-path=\"url(#c1)\">"

static void draw_steps(struct svg *svg)
{
    static const double xs[] = {0, 5}, ys[] = {2, 8};

    svg_steps(svg, &square, xs, ys, 2, "#123456");
}

static void draw_stack(struct svg *svg)
{
    static const double xs[] = {0, 5}, ys[] = {1, 2, 4, 3};

    svg_stack(svg, &square, xs, ys, 2, 2);
}

static void draw_boxes(struct svg *svg)
{
    svg_box(svg, &square, 1, 0, 2, 5, "#123456", NULL);
    svg_box(svg, &square, -5, 0, 20, 50, "#123456", "cut <off>");
    svg_box(svg, &square, 11, 0, 12, 5, "#123456", NULL); /* not to be seen */
}

TEST(test_places)
{
    CLEANUP(free_ptr) char *steps = drawn(draw_steps);
    CLEANUP(free_ptr) char *stack = drawn(draw_stack);
    CLEANUP(free_ptr) char *boxes = drawn(draw_boxes);

    assert_string_equal(steps, CLIP "<polyline fill=\"none\" stroke=\"#123456\" stroke-width=\"1.5\" "
                                    "points=\"50.0,100.0 100.0,100.0 100.0,40.0 150.0,40.0 \"/></g>\n");
    assert_string_equal(stack, CLIP "<polygon fill=\"#0072b2\" fill-opacity=\"0.85\" "
                                    "points=\"50.0,110.0 100.0,110.0 100.0,100.0 150.0,100.0 "
                                    "150.0,120.0 100.0,120.0 100.0,120.0 50.0,120.0 \"/>\n"
                                    "<polygon fill=\"#e69f00\" fill-opacity=\"0.85\" "
                                    "points=\"50.0,70.0 100.0,70.0 100.0,70.0 150.0,70.0 "
                                    "150.0,100.0 100.0,100.0 100.0,110.0 50.0,110.0 \"/>\n</g>\n");
    assert_string_equal(boxes,
                        "<rect x=\"60.00\" y=\"70.00\" width=\"10.00\" height=\"50.00\" fill=\"#123456\"></rect>\n"
                        "<rect x=\"50.00\" y=\"20.00\" width=\"100.00\" height=\"100.00\" fill=\"#123456\">"
                        "<title>cut &lt;off&gt;</title></rect>\n");
}

static void draw_text(struct svg *svg)
{
    svg_text(svg, 1, 2, SVG_END, 9, "a<b> & \"c\"\x1b\n");
}

TEST(test_text_is_escaped)
{
    CLEANUP(free_ptr) char *text = drawn(draw_text);

    assert_string_equal(text, "<text x=\"1.0\" y=\"2.0\" font-size=\"9\" text-anchor=\"end\">"
                              "a&lt;b&gt; &amp; &quot;c&quot;  </text>\n");
}

TEST(test_round_numbers)
{
    static const double cases[][2] = {{6, 6},     {7, 8},       {83, 100},  {100, 100},
                                      {101, 120}, {0.07, 0.08}, {1e6, 1e6}, {0, 1}};

    for (size_t i = 0; i < array_size(cases); i++)
        if (fabs(svg_round_up(cases[i][0]) - cases[i][1]) > 1e-9 * cases[i][1])
            fail_msg("%g is rounded to %g", cases[i][0], svg_round_up(cases[i][0]));
}

TEST(test_time_units)
{
    const char *name;

    assert_true(svg_time_unit(179, &name) == 1);
    assert_string_equal(name, "s");
    assert_true(svg_time_unit(180, &name) == 60);
    assert_string_equal(name, "min");
    assert_true(svg_time_unit(7200, &name) == 3600);
    assert_string_equal(name, "h");
    assert_true(svg_time_unit(4 * 86400, &name) == 86400);
    assert_string_equal(name, "days");
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static void draw_axes(struct svg *svg)
{
    static const char *const names[] = {"one", "two"};
    struct svg_panel panel = square;

    panel.x_low = 2;
    panel.y_low = 0.5;
    panel.y_high = 2;
    svg_axes(svg, &panel);
    panel.x_low = 0;
    panel.x_high = 2;
    panel.x_names = names;
    panel.x_name_count = 2;
    panel.y_high = panel.y_low; /* nothing in between: an axis all the same */
    svg_axes(svg, &panel);
    assert_true(panel.y_high == 1.5);
}

TEST(test_axes)
{
    CLEANUP(free_ptr) char *axes = drawn(draw_axes);

    for (int tick = 2; tick <= 10; tick += 2) {
        CLEANUP(free_ptr)
        char *text = xasprintf("<text x=\"%.1f\" y=\"136.0\" font-size=\"12\" text-anchor=\"middle\">%d</text>",
                               50 + (tick - 2) * 12.5, tick);
        if (!strstr(axes, text))
            fail_msg("no %s in %s", text, axes);
    }
    assert_non_null(strstr(axes, ">0.5</text>"));
    assert_non_null(strstr(axes, "x=\"75.0\" y=\"136.0\" font-size=\"12\" text-anchor=\"middle\">one</text>"));
    assert_non_null(strstr(axes, "x=\"125.0\" y=\"136.0\" font-size=\"12\" text-anchor=\"middle\">two</text>"));
    assert_int_equal(count_of(axes, "nan"), 0);
}

#define MANY 100000

/* One spike among a hundred thousand points stays to be seen. */
static void draw_many(struct svg *svg)
{
    double *xs = xcalloc(MANY, sizeof *xs), *ys = xcalloc(MANY, sizeof *ys);

    for (size_t i = 0; i < MANY; i++) {
        xs[i] = (double)i * 10 / MANY;
        ys[i] = i == 54321 ? 9 : i == 70001 ? 1 : 5;
    }
    svg_steps(svg, &square, xs, ys, MANY, "#123456");
    svg_stack(svg, &square, xs, ys, MANY, 1);
    free(xs);
    free(ys);
}

TEST(test_many_points)
{
    CLEANUP(free_ptr) char *many = drawn(draw_many);

    assert_true(strlen(many) < 60000);
    assert_int_equal(count_of(many, ",30.0 "), 1); /* the spike */
    assert_int_equal(count_of(many, ",110.0 "), 1);
}

RUN_TESTS(NULL, NULL)
