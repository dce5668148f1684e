#include "cli/show/svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/show/markup.h"

#define FONT      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\""
#define INK       "#222222"
#define GRID      "#dddddd"
#define TEXT_SIZE 12.0
#define TICKS     6   /* about this many on an axis */
#define CELL_PX   0.5 /* points closer than this are thinned */

struct svg {
    struct strbuf out;
    unsigned panels; /* with a clipping path each */
};

/* Okabe and Ito; blue first, black last. */
static const char *const palette[SVG_COLOURS] = {
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000",
};

const char *svg_colour(size_t i)
{
    return palette[i % SVG_COLOURS];
}

struct svg *svg_new(double width, double height, const char *title)
{
    struct svg *svg = xcalloc(1, sizeof *svg);

    strbuf_printf(&svg->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" " FONT
                  " font-size=\"%g\" fill=\"" INK "\">\n",
                  width, height, width, height, TEXT_SIZE);
    strbuf_puts(&svg->out, "<title>");
    markup_append(&svg->out, title);
    strbuf_printf(&svg->out, "</title>\n<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", width, height);
    svg_text(svg, 12, 22, SVG_START, 15, title);
    return svg;
}

void svg_free(struct svg *svg)
{
    if (!svg)
        return;
    strbuf_release(&svg->out);
    free(svg);
}

void svg_free_at(struct svg **svg)
{
    svg_free(*svg);
}

char *svg_finish(struct svg *svg)
{
    strbuf_puts(&svg->out, "</svg>\n");
    return strbuf_steal(&svg->out);
}

int svg_write(struct svg *svg, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *text = svg_finish(svg);

    return file_write_atomic(path, text, strlen(text), 0644, err);
}

void svg_text(struct svg *svg, double x, double y, enum svg_anchor anchor, double size, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};

    strbuf_printf(&svg->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"%s\">", x, y, size,
                  anchors[anchor]);
    markup_append(&svg->out, text);
    strbuf_puts(&svg->out, "</text>\n");
}

static void put_rule(struct svg *svg, double x0, double y0, double x1, double y1, const char *colour)
{
    strbuf_printf(&svg->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x0, y0, x1, y1,
                  colour);
}

/* 1, 2 or 5 times a power of ten, at or above `rough`. */
static double round_step(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double lead = rough / power;

    return power * (lead <= 1 + 1e-9 ? 1 : lead <= 2 + 1e-9 ? 2 : lead <= 5 + 1e-9 ? 5 : 10);
}

double svg_round_up(double value)
{
    double step;

    if (!(value > 0))
        return 1;
    step = round_step(value / TICKS);
    return step * ceil(value / step - 1e-9);
}

double svg_time_unit(double span_s, const char **name)
{
    static const struct {
        double least_span_s, seconds;
        const char *name;
    } units[] = {{4 * 86400, 86400, "days"}, {2 * 3600, 3600, "h"}, {180, 60, "min"}, {0, 1, "s"}};
    size_t i = 0;

    while (span_s < units[i].least_span_s)
        i++;
    *name = units[i].name;
    return units[i].seconds;
}

static double place_x(const struct svg_panel *panel, double x)
{
    return panel->left + (x - panel->x_low) / (panel->x_high - panel->x_low) * panel->width;
}

static double place_y(const struct svg_panel *panel, double y)
{
    return panel->top + panel->height - (y - panel->y_low) / (panel->y_high - panel->y_low) * panel->height;
}

static void put_number(char *text, size_t size, double value, double step)
{
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;

    snprintf(text, size, "%.*f", decimals, fabs(value) < step / 2 ? 0 : value);
}

static void x_ticks(struct svg *svg, const struct svg_panel *panel)
{
    double bottom = panel->top + panel->height, step = round_step((panel->x_high - panel->x_low) / TICKS);

    for (double at = ceil(panel->x_low / step - 1e-9) * step; at <= panel->x_high + step * 1e-6; at += step) {
        char text[32];
        double x = place_x(panel, at);

        put_rule(svg, x, panel->top, x, bottom, GRID);
        put_number(text, sizeof text, at, step);
        svg_text(svg, x, bottom + 16, SVG_MIDDLE, TEXT_SIZE, text);
    }
}

static void x_categories(struct svg *svg, const struct svg_panel *panel)
{
    for (size_t i = 0; i < panel->x_name_count; i++)
        svg_text(svg, place_x(panel, (double)i + 0.5), panel->top + panel->height + 16, SVG_MIDDLE, TEXT_SIZE,
                 panel->x_names[i]);
}

static void y_ticks(struct svg *svg, const struct svg_panel *panel)
{
    double step = round_step((panel->y_high - panel->y_low) / (panel->height < 120 ? 3 : TICKS));

    for (double at = ceil(panel->y_low / step - 1e-9) * step; at <= panel->y_high + step * 1e-6; at += step) {
        char text[32];
        double y = place_y(panel, at);

        put_rule(svg, panel->left, y, panel->left + panel->width, y, GRID);
        put_number(text, sizeof text, at, step);
        svg_text(svg, panel->left - 6, y + 4, SVG_END, TEXT_SIZE, text);
    }
}

void svg_axes(struct svg *svg, struct svg_panel *panel)
{
    double bottom = panel->top + panel->height, right = panel->left + panel->width;

    if (!(panel->x_high > panel->x_low))
        panel->x_high = panel->x_low + 1;
    if (!(panel->y_high > panel->y_low))
        panel->y_high = panel->y_low + 1;
    if (panel->x_names)
        x_categories(svg, panel);
    else
        x_ticks(svg, panel);
    y_ticks(svg, panel);
    put_rule(svg, panel->left, bottom, right, bottom, INK);
    put_rule(svg, panel->left, panel->top, panel->left, bottom, INK);
    if (panel->title)
        svg_text(svg, panel->left, panel->top - 8, SVG_START, 13, panel->title);
    if (panel->x_label)
        svg_text(svg, panel->left + panel->width / 2, bottom + 34, SVG_MIDDLE, TEXT_SIZE, panel->x_label);
    if (panel->y_label) {
        double x = panel->left - 52, y = panel->top + panel->height / 2;
        strbuf_printf(&svg->out,
                      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\">", x, y,
                      x, y);
        markup_append(&svg->out, panel->y_label);
        strbuf_puts(&svg->out, "</text>\n");
    }
}

/* Parts drawn until end_clip show only inside the panel. */
static void begin_clip(struct svg *svg, const struct svg_panel *panel)
{
    svg->panels++;
    strbuf_printf(&svg->out,
                  "<clipPath id=\"c%u\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n"
                  "<g clip-path=\"url(#c%u)\">",
                  svg->panels, panel->left, panel->top, panel->width, panel->height, svg->panels);
}

static void end_clip(struct svg *svg)
{
    strbuf_puts(&svg->out, "</g>\n");
}

static void put_point(struct svg *svg, double x, double y)
{
    strbuf_printf(&svg->out, "%.1f,%.1f ", x, y);
}

static size_t cell_of(const struct svg_panel *panel, double x)
{
    double cell = (place_x(panel, x) - panel->left) / CELL_PX;

    return cell > 0 ? (size_t)cell : 0;
}

/* The end of the run of points from `from` on that share a cell: behind its last. */
static size_t cell_end(const struct svg_panel *panel, const double *xs, size_t from, size_t count)
{
    size_t cell = cell_of(panel, xs[from]), end = from + 1;

    while (end < count && cell_of(panel, xs[end]) == cell)
        end++;
    return end;
}

void svg_steps(struct svg *svg, const struct svg_panel *panel, const double *xs, const double *ys, size_t count,
               const char *colour)
{
    double before = 0;

    begin_clip(svg, panel);
    strbuf_printf(&svg->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
    for (size_t from = 0, end; from < count; from = end) {
        double low = ys[from], high = ys[from], x = place_x(panel, xs[from]);

        end = cell_end(panel, xs, from, count);
        for (size_t i = from; i < end; i++) {
            low = fmin(low, ys[i]);
            high = fmax(high, ys[i]);
        }
        if (from > 0)
            put_point(svg, x, place_y(panel, before));
        if (end - from > 2) { /* a cell's points become the first, the extremes and the last */
            put_point(svg, x, place_y(panel, ys[from]));
            put_point(svg, x, place_y(panel, low));
            put_point(svg, x, place_y(panel, high));
        } else if (end - from == 2) {
            put_point(svg, x, place_y(panel, ys[from]));
        }
        before = ys[end - 1];
        put_point(svg, x, place_y(panel, before));
    }
    if (count)
        put_point(svg, panel->left + panel->width, place_y(panel, before));
    strbuf_puts(&svg->out, "\"/>");
    end_clip(svg);
}

/* The upper edge of one layer from left to right, or, backwards, the lower edge of the layer on it. */
static void put_edge(struct svg *svg, const struct svg_panel *panel, const double *xs, const double *sums,
                     const size_t *kept, size_t kept_count, bool backwards)
{
    for (size_t n = 0; n < kept_count; n++) {
        size_t at = backwards ? kept_count - 1 - n : n;
        double x0 = place_x(panel, xs[kept[at]]), y = place_y(panel, sums[kept[at]]);
        double x1 = at + 1 < kept_count ? place_x(panel, xs[kept[at + 1]]) : panel->left + panel->width;

        put_point(svg, backwards ? x1 : x0, y);
        put_point(svg, backwards ? x0 : x1, y);
    }
}

void svg_stack(struct svg *svg, const struct svg_panel *panel, const double *xs, const double *ys, size_t count,
               size_t series)
{
    CLEANUP(free_ptr) double *below = xcalloc(count + 1, sizeof *below);
    CLEANUP(free_ptr) double *above = xcalloc(count + 1, sizeof *above);
    CLEANUP(free_ptr) size_t *kept = xcalloc(count + 1, sizeof *kept);
    size_t kept_count = 0;

    for (size_t from = 0; from < count; from = cell_end(panel, xs, from, count))
        kept[kept_count++] = cell_end(panel, xs, from, count) - 1;
    begin_clip(svg, panel);
    for (size_t s = 0; s < series; s++) {
        for (size_t i = 0; i < count; i++)
            above[i] = below[i] + ys[s * count + i];
        strbuf_printf(&svg->out, "<polygon fill=\"%s\" fill-opacity=\"0.85\" points=\"", svg_colour(s));
        put_edge(svg, panel, xs, above, kept, kept_count, false);
        put_edge(svg, panel, xs, below, kept, kept_count, true);
        strbuf_puts(&svg->out, "\"/>\n");
        memcpy(below, above, count * sizeof *below);
    }
    end_clip(svg);
}

void svg_box(struct svg *svg, const struct svg_panel *panel, double x0, double y0, double x1, double y1,
             const char *colour, const char *tip)
{
    double left = place_x(panel, fmin(x0, x1)), right = place_x(panel, fmax(x0, x1));
    double top = place_y(panel, fmax(y0, y1)), bottom = place_y(panel, fmin(y0, y1));

    left = fmax(left, panel->left);
    right = fmin(right, panel->left + panel->width);
    top = fmax(top, panel->top);
    bottom = fmin(bottom, panel->top + panel->height);
    if (right < left || bottom < top)
        return;
    strbuf_printf(&svg->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\">", left, top,
                  right - left, bottom - top, colour);
    if (tip) {
        strbuf_puts(&svg->out, "<title>");
        markup_append(&svg->out, tip);
        strbuf_puts(&svg->out, "</title>");
    }
    strbuf_puts(&svg->out, "</rect>\n");
}

/* Columns of text: bytes that begin a character. */
static size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void svg_legend(struct svg *svg, double x, double y, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_printf(&svg->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, y - 10,
                      svg_colour(i));
        svg_text(svg, x + 17, y, SVG_START, TEXT_SIZE, names[i]);
        x += 17 + 7.2 * (double)text_width(names[i]) + 18; /* 7.2 px: a character of that size, on average */
    }
}
