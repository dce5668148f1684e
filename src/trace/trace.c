#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trace/csv.h"

enum { ARRIVAL, WORKLOAD, COLUMN_COUNT };

static const struct csv_column columns[COLUMN_COUNT] = {
    [ARRIVAL] = {"arrival_s", true},
    [WORKLOAD] = {"workload", true},
};

#define MAX_ARRIVAL_S 1e9 /* thirty years: keeps sums of nanoseconds far from 2^63 */

static int read_rows(struct trace *trace, struct csv *csv, const struct workloads *workloads, struct error *err)
{
    int64_t before_ns = 0;
    size_t capacity = 0;
    int rc;

    while ((rc = csv_next(csv, err)) > 0) {
        struct trace_job job = {.line = csv->line};

        rc = csv_number(csv, ARRIVAL, 0, MAX_ARRIVAL_S, 1e9, -1, &job.arrival_ns, err);
        if (rc)
            break;
        if (job.arrival_ns < before_ns) {
            rc = csv_error(csv, err, "arrival_s %.40s is earlier than the row before it: sort the rows by arrival_s",
                           csv->values[ARRIVAL]);
            break;
        }
        job.workload = workloads_find(workloads, csv->values[WORKLOAD]);
        if (!job.workload) {
            rc = csv_error(csv, err, "unknown workload '%.63s': use an id of the workloads file or add it there",
                           csv->values[WORKLOAD]);
            break;
        }
        before_ns = job.arrival_ns;
        array_reserve(trace->items, capacity, trace->count + 1);
        trace->items[trace->count++] = job;
    }
    if (!rc && trace->count == 0)
        rc = error_set(err, EINVAL, "%s: no jobs: add a row such as 0,resnet after the header", csv->path);
    csv_release(csv);
    if (rc)
        trace_release(trace);
    return rc;
}

int trace_read(struct trace *trace, const char *path, const struct workloads *workloads, struct error *err)
{
    struct csv csv;
    int rc = csv_open(&csv, path, columns, COLUMN_COUNT, err);

    *trace = (struct trace){0};
    return rc ? rc : read_rows(trace, &csv, workloads, err);
}

int trace_read_text(struct trace *trace, const char *path, const char *text, size_t length,
                    const struct workloads *workloads, struct error *err)
{
    struct csv csv;
    int rc = csv_open_text(&csv, path, text, length, columns, COLUMN_COUNT, err);

    *trace = (struct trace){0};
    return rc ? rc : read_rows(trace, &csv, workloads, err);
}

void trace_release(struct trace *trace)
{
    free(trace->items);
    *trace = (struct trace){0};
}
