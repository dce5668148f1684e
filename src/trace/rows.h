/* The formats of traces: their columns, and how a row becomes a job. For trace.c. */
#ifndef CARMA_TRACE_ROWS_H
#define CARMA_TRACE_ROWS_H

#include "trace/csv.h"
#include "trace/trace.h"

struct trace_rows {
    const char *name;
    bool sorted; /* rows have to be in the order of arrival */
    /* Fills *job from the row at hand; 1, or 0: this row is left out; or a negative errno. */
    int (*read)(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                struct error *err);
};

extern const struct trace_rows trace_rows[TRACE_FORMAT_COUNT];
extern const struct csv_table trace_tables[TRACE_FORMAT_COUNT];

/* The columns that trace.c asks for by itself. */
#define TRACE_VC_COLUMN 0 /* of TRACE_PHILLY_VC */

#endif
