/* A trace's demand, as a plot. */
#ifndef CARMA_CLI_TRACE_PLOT_H
#define CARMA_CLI_TRACE_PLOT_H

#include "base/error.h"
#include "trace/demand.h"
#include "trace/trace.h"

/* Writes an SVG file. */
int trace_plot(const char *path, const char *title, const struct trace *trace, const struct trace_demand *demand,
               struct error *err);

#endif
