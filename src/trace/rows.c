#include "trace/rows.h"

#include "base/memory.h"

#define MAX_ARRIVAL_S  1e9 /* thirty years: keeps sums of nanoseconds far from 2^63 */
#define MAX_DURATION_S 1e8 /* three years, as for workloads */

/* The first column of each is its mark (csv.h). Columns that are only listed are known to occur and mean nothing here.
 */
enum { ARRIVAL, WORKLOAD, GPUS, DURATION, UID };
static const struct csv_column carma_columns[] = {
    [ARRIVAL] = {"arrival_s", true},    [WORKLOAD] = {"workload", true}, [GPUS] = {"gpus", false},
    [DURATION] = {"duration_s", false}, [UID] = {"uid", false},
};

enum { THESIS_ARRIVAL, THESIS_WORKLOAD };
static const struct csv_column thesis_columns[] = {
    [THESIS_ARRIVAL] = {"arrival_offset_s", true},
    [THESIS_WORKLOAD] = {"workload_id", true},
};

enum { PHILLY_VC = TRACE_VC_COLUMN, PHILLY_SUBMIT, PHILLY_GPUS, PHILLY_DURATION };
static const struct csv_column philly_columns[] = {
    [PHILLY_VC] = {"vc", true},
    [PHILLY_SUBMIT] = {"submit_s", true},
    [PHILLY_GPUS] = {"gpus", true},
    [PHILLY_DURATION] = {"duration_s_v100", true},
    {"steps", false},
    {"model_assigned", false},
};

enum { PODS_MILLI, PODS_SUBMIT, PODS_GPUS, PODS_DURATION };
static const struct csv_column pods_columns[] = {
    [PODS_MILLI] = {"gpu_milli", true},
    [PODS_SUBMIT] = {"submit_s", true},
    [PODS_GPUS] = {"gpus", true},
    [PODS_DURATION] = {"duration_s", true},
    {"qos", false},
    {"status", false},
    {"host_mem_mib", false},
    {"cpu_milli", false},
    {"gpu_spec", false},
};

enum { TIRESIAS_GPUS, TIRESIAS_SUBMIT, TIRESIAS_DURATION };
static const struct csv_column tiresias_columns[] = {
    [TIRESIAS_GPUS] = {"num_gpu", true},
    [TIRESIAS_SUBMIT] = {"submit_time", true},
    [TIRESIAS_DURATION] = {"duration", true},
    {"job_id", false},
    {"iterations", false},
    {"model_name", false},
    {"interval", false},
};

static const struct csv_column run_time_columns[] = {{"runtime_s", true}};

#define TABLE(columns)                                                                                                 \
    {                                                                                                                  \
        columns, array_size(columns), 0                                                                                \
    }
const struct csv_table trace_tables[TRACE_FORMAT_COUNT] = {
    [TRACE_CARMA] = TABLE(carma_columns),       [TRACE_THESIS] = TABLE(thesis_columns),
    [TRACE_PHILLY_VC] = TABLE(philly_columns),  [TRACE_PODS] = TABLE(pods_columns),
    [TRACE_TIRESIAS] = TABLE(tiresias_columns), [TRACE_RUN_TIMES] = TABLE(run_time_columns),
};

static int take_arrival(const struct csv *csv, size_t column, struct trace_job *job, struct error *err)
{
    return csv_number(csv, column, 0, MAX_ARRIVAL_S, 1e9, -1, &job->arrival_ns, err);
}

static int take_workload(const struct csv *csv, size_t column, const struct trace_load_options *options,
                         struct trace_job *job, struct error *err)
{
    if (!options->workloads)
        return csv_error(csv, err, "the trace names workloads ('%.63s'): say which file describes them",
                         csv->values[column]);
    job->workload = workloads_find(options->workloads, csv->values[column]);
    if (!job->workload)
        return csv_error(csv, err, "unknown workload '%.63s': use an id of the workloads file or add it there",
                         csv->values[column]);
    job->gpus = job->workload->gpus;
    return 0;
}

static int take_gpus(const struct csv *csv, size_t column, struct trace_job *job, struct error *err)
{
    int64_t gpus;
    int rc = csv_integer(csv, column, 1, TRACE_MAX_GPUS, job->gpus, &gpus, err);

    if (rc == 0)
        job->gpus = (uint32_t)gpus;
    return rc;
}

static int take_uid(const struct csv *csv, size_t column, struct trace_job *job, struct error *err)
{
    int64_t uid;
    int rc = csv_integer(csv, column, 0, UINT32_MAX - 1, 0, &uid, err);

    if (rc == 0)
        job->uid = (uint32_t)uid;
    return rc;
}

/* The measuring party's figure: 0 says that the job never ran. */
static int take_measured(const struct csv *csv, size_t column, struct trace_job *job, struct error *err)
{
    int rc = csv_number(csv, column, 0, MAX_DURATION_S, 1e9, -1, &job->duration_ns, err);

    return rc ? rc : job->duration_ns > 0;
}

static int read_carma(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                      struct error *err)
{
    int rc;

    if ((rc = take_arrival(csv, ARRIVAL, job, err)) || (rc = take_workload(csv, WORKLOAD, options, job, err)) ||
        (rc = take_gpus(csv, GPUS, job, err)) ||
        (rc = csv_number(csv, DURATION, 0.001, MAX_DURATION_S, 1e9, -1, &job->duration_ns, err)) ||
        (rc = take_uid(csv, UID, job, err)))
        return rc;
    return 1;
}

static int read_thesis(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                       struct error *err)
{
    int rc;

    if ((rc = take_arrival(csv, THESIS_ARRIVAL, job, err)) ||
        (rc = take_workload(csv, THESIS_WORKLOAD, options, job, err)))
        return rc;
    return 1;
}

static int read_philly(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                       struct error *err)
{
    int rc;

    if ((rc = take_arrival(csv, PHILLY_SUBMIT, job, err)) || (rc = take_gpus(csv, PHILLY_GPUS, job, err)))
        return rc;
    return take_measured(csv, PHILLY_DURATION, job, err);
}

static int read_pods(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                     struct error *err)
{
    int64_t permille;
    int rc;

    if ((rc = take_arrival(csv, PODS_SUBMIT, job, err)) || (rc = take_gpus(csv, PODS_GPUS, job, err)) ||
        (rc = csv_integer(csv, PODS_MILLI, 1, 1000, 1000, &permille, err)))
        return rc;
    job->gpu_permille = (int32_t)permille;
    return take_measured(csv, PODS_DURATION, job, err);
}

static int read_tiresias(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                         struct error *err)
{
    int rc;

    if ((rc = take_arrival(csv, TIRESIAS_SUBMIT, job, err)) || (rc = take_gpus(csv, TIRESIAS_GPUS, job, err)))
        return rc;
    return take_measured(csv, TIRESIAS_DURATION, job, err);
}

static int read_run_time(const struct csv *csv, const struct trace_load_options *options, struct trace_job *job,
                         struct error *err)
{
    if (!options->run_times)
        return csv_error(csv, err, "%s alone: these are run times without arrivals, no trace", csv->columns[0].name);
    return take_measured(csv, 0, job, err);
}

const struct trace_rows trace_rows[TRACE_FORMAT_COUNT] = {
    [TRACE_CARMA] = {"carma", true, read_carma},           [TRACE_THESIS] = {"thesis", true, read_thesis},
    [TRACE_PHILLY_VC] = {"philly-vc", false, read_philly}, [TRACE_PODS] = {"pods", false, read_pods},
    [TRACE_TIRESIAS] = {"tiresias", false, read_tiresias}, [TRACE_RUN_TIMES] = {"run-times", false, read_run_time},
};
