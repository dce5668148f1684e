/* Pictures of results, drawn by integrations/bench_plot.py. */
#ifndef CARMA_CLI_SHOW_PICTURE_H
#define CARMA_CLI_SHOW_PICTURE_H

#include <jansson.h>

#include "base/error.h"

/* Draws the results, of a form that the program knows, to the file (.svg, .png or .pdf). An error is the program's last
 * line. */
int picture_draw(const json_t *results, const char *path, struct error *err);

#endif
