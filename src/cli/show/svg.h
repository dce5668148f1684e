/* Small plots as SVG: panels with axes, steps, stacked areas, bars, boxes and a legend, on a light background.
 * Colour-blind people can tell the colours apart (the palette of Okabe and Ito, "Color Universal Design", 2008).
 *
 * Places on the canvas are in pixels from its top left; data is in the units of the panel's axes. Texts are taken as
 * they are: XML's special characters are escaped here. Lines of many points are thinned to the extremes that a pixel
 * can show, areas to the last value of each. */
#ifndef CARMA_CLI_SHOW_SVG_H
#define CARMA_CLI_SHOW_SVG_H

#include <stddef.h>

#include "base/error.h"

#define SVG_COLOURS 8

struct svg;

struct svg *svg_new(double width, double height, const char *title);
void svg_free(struct svg *svg);
void svg_free_at(struct svg **svg); /* for CLEANUP */

/* The whole file, owned by the caller. Nothing can be drawn after it. */
char *svg_finish(struct svg *svg);

/* svg_finish into a file: a reader sees the old or the new one, never a part. */
int svg_write(struct svg *svg, const char *path, struct error *err);

/* "#rrggbb" of the i-th thing of a plot; begins anew after SVG_COLOURS. */
const char *svg_colour(size_t i);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
void svg_text(struct svg *svg, double x, double y, enum svg_anchor anchor, double size, const char *text);

/* A plotting area and its axes. */
struct svg_panel {
    double left, top, width, height; /* pixels, of the area inside the axes */
    double x_low, x_high;            /* data; high is raised where it is not above low */
    double y_low, y_high;
    const char *title;             /* over the area; NULL: none */
    const char *x_label, *y_label; /* NULL: none */
    const char *const *x_names;    /* category i is in the middle of x from i to i + 1; NULL: numbers */
    size_t x_name_count;
};

/* Grid, ticks at round numbers (or the categories), labels. Before the panel's content is drawn. */
void svg_axes(struct svg *svg, struct svg_panel *panel);

/* The round number at or above `value` (above 0) at which an axis from 0 ends well. */
double svg_round_up(double value);

/* For an axis of times: the divisor of seconds, and its name ("s", "min", "h", "days"), for a span of that length.
 */
double svg_time_unit(double span_s, const char **name);

/* ys[i] holds from xs[i], which do not decrease, to xs[i + 1]; the last to the panel's right side; `count` of each.
 * Parts outside the panel are cut off. */
void svg_steps(struct svg *svg, const struct svg_panel *panel, const double *xs, const double *ys, size_t count,
               const char *colour);
/* The same as areas on one another, the first lowest, in the palette's colours: ys[s * count + i] is of the s-th. */
void svg_stack(struct svg *svg, const struct svg_panel *panel, const double *xs, const double *ys, size_t count,
               size_t series);
/* A filled box from (x0, y0) to (x1, y1): a bar, or a job on a time line. `tip` shows under the pointer; may be NULL.
 */
void svg_box(struct svg *svg, const struct svg_panel *panel, double x0, double y0, double x1, double y1,
             const char *colour, const char *tip);

/* Coloured marks and names in a row, from (x, y) on; colours of the palette in order. */
void svg_legend(struct svg *svg, double x, double y, const char *const *names, size_t count);

#endif
