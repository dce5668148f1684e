/* The screen of `carma top`, as lines. Pure. */
#ifndef CARMA_CLI_TOP_VIEW_H
#define CARMA_CLI_TOP_VIEW_H

#include "cli/top/lines.h"
#include "cli/top/model.h"

#define TOP_LEAST_WIDTH  40
#define TOP_LEAST_HEIGHT 10
#define TOP_NODE_LEAST   6 /* the column of the nodes, where there are many */
#define TOP_NODE_MOST    16

/* Fills the screen (of top_screen_init). Moves the cursors' offsets so that the selection is in sight, and tells the
 * model how long its pages are. */
void top_view(struct top_model *model, struct top_screen *screen);

/* A pane of `rows` lines, its title being the first: top/view_gpus.c, top/view_jobs.c. */
void top_view_gpus(const struct top_model *model, struct top_screen *screen, size_t rows);
void top_view_jobs(const struct top_model *model, enum top_pane pane, struct top_screen *screen, size_t rows);

/* "12.4G", "512M": shorter than elsewhere; "-" below 0. Returns text. */
char *top_short_bytes(int64_t bytes, char text[static 32]);

/* The title line of a pane: its name, and of a table its columns' titles. */
void top_view_titles(struct top_line *line, const struct top_column *columns, const size_t *widths, size_t count,
                     size_t sorted);

/* The answers of GET /v1/jobs/ID and GET /v1/jobs/ID/explain about a job, as lines. */
void top_view_details(const json_t *job, const json_t *explanation, struct top_text *text);

void top_view_help(struct top_text *text);

#endif
