#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "trace/rows.h"

static int compare_arrivals(const void *left, const void *right)
{
    const struct trace_job *a = left, *b = right;

    if (a->arrival_ns != b->arrival_ns)
        return a->arrival_ns < b->arrival_ns ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Whether the row at hand is of the virtual cluster that is asked for. */
static bool is_wanted(const struct csv *csv, const char *vc)
{
    return !vc || strcmp(csv->values[TRACE_VC_COLUMN], vc) == 0;
}

static int add_row(struct trace *trace, size_t *capacity, const struct csv *csv,
                   const struct trace_load_options *options, struct error *err)
{
    struct trace_job job = {.duration_ns = -1, .gpus = 1, .gpu_permille = 1000, .line = csv->line};
    const struct trace_rows *rows = &trace_rows[csv->table];
    int rc = rows->read(csv, options, &job, err);

    if (rc < 0)
        return rc;
    if (rc == 0) {
        trace->left_out++;
        return 0;
    }
    if (rows->sorted && trace->count && job.arrival_ns < trace->items[trace->count - 1].arrival_ns)
        return csv_error(csv, err, "%s %.40s is earlier than the row before it: sort the rows by %s",
                         csv->columns[0].name, csv->values[0], csv->columns[0].name);
    array_reserve(trace->items, *capacity, trace->count + 1);
    trace->items[trace->count++] = job;
    return 0;
}

static int read_rows(struct trace *trace, struct csv *csv, const struct trace_load_options *options, struct error *err)
{
    size_t capacity = 0;
    int rc;

    trace->format = (enum trace_format)csv->table;
    if (options->vc && trace->format != TRACE_PHILLY_VC)
        return error_set(err, EINVAL, "%s: it has no virtual clusters: leave out the choice of '%.40s'", csv->path,
                         options->vc);
    while ((rc = csv_next(csv, err)) > 0)
        if (is_wanted(csv, options->vc) && (rc = add_row(trace, &capacity, csv, options, err)) < 0)
            return rc;
    if (rc < 0)
        return rc;
    if (trace->count == 0 && trace->left_out == 0 && options->vc)
        return error_set(err, EINVAL, "%s: no jobs of a virtual cluster '%.40s': name one of its column %s", csv->path,
                         options->vc, csv->columns[TRACE_VC_COLUMN].name);
    if (trace->count == 0 && trace->left_out)
        return error_set(err, EINVAL, "%s: no jobs: none of its %zu ever ran", csv->path, trace->left_out);
    if (trace->count == 0)
        return error_set(err, EINVAL, "%s: no jobs: add a row after the header", csv->path);
    if (!trace_rows[trace->format].sorted)
        qsort(trace->items, trace->count, sizeof *trace->items, compare_arrivals);
    return 0;
}

static int finish(struct trace *trace, struct csv *csv, const struct trace_load_options *options, struct error *err)
{
    static const struct trace_load_options none = {0};
    int rc = read_rows(trace, csv, options ? options : &none, err);

    csv_release(csv);
    if (rc)
        trace_release(trace);
    return rc;
}

int trace_load(struct trace *trace, const char *path, const struct trace_load_options *options, struct error *err)
{
    CLEANUP(free_ptr) char *relative = xasprintf("share/carma/traces/%s.csv", path);
    CLEANUP(free_ptr) char *installed = install_path(relative);
    struct csv csv;
    int rc;

    if (!strchr(path, '/') && access(path, F_OK) != 0 && access(installed, R_OK) == 0)
        path = installed;
    rc = csv_open(&csv, path, trace_tables, TRACE_FORMAT_COUNT, err);
    *trace = (struct trace){0};
    if (rc == -ENOENT && !strchr(path, '/')) {
        CLEANUP(free_ptr) char *directory = install_path("share/carma/traces");
        CLEANUP(free_ptr) char *meant = nearest_file(path, directory, ".csv");
        struct error was = *err;
        error_set(err, ENOENT, "%s%s", was.text, meant);
    }
    return rc ? rc : finish(trace, &csv, options, err);
}

int trace_load_text(struct trace *trace, const char *path, const char *text, size_t length,
                    const struct trace_load_options *options, struct error *err)
{
    struct csv csv;
    int rc = csv_open_text(&csv, path, text, length, trace_tables, TRACE_FORMAT_COUNT, err);

    *trace = (struct trace){0};
    return rc ? rc : finish(trace, &csv, options, err);
}

int trace_read(struct trace *trace, const char *path, const struct workloads *workloads, struct error *err)
{
    int rc = trace_load(trace, path, &(struct trace_load_options){.workloads = workloads}, err);

    if (rc || trace->items[0].workload)
        return rc;
    trace_release(trace);
    return error_set(err, EINVAL, "%s: its jobs have no workloads: give them some with carma trace build", path);
}

void trace_release(struct trace *trace)
{
    free(trace->items);
    *trace = (struct trace){0};
}

const char *trace_format_name(enum trace_format format)
{
    return trace_rows[format].name;
}

int64_t trace_job_duration_ns(const struct trace_job *job)
{
    if (job->duration_ns >= 0)
        return job->duration_ns;
    return job->workload ? job->workload->solo_runtime_ns : -1;
}
