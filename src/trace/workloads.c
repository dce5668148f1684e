#include "trace/workloads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "trace/csv.h"

enum {
    ID,
    MODEL,
    DATASET,
    BATCH_SIZE,
    GPUS,
    EPOCHS,
    PEAK,
    RESIDENT,
    RESIDENT_GPU2,
    RUNTIME,
    ACTIVITY,
    ACTIVITY_GPU2,
    OCCUPANCY,
    DRAM,
    POWER,
    MEASURED,
    HORUS,
    FAKETENSOR,
    GPUMEMNET,
    SUMMARY,
    BASIS,
    COLUMN_COUNT
};

static const struct csv_column columns[COLUMN_COUNT] = {
    [ID] = {"id", true},
    [MODEL] = {"model", false},
    [DATASET] = {"dataset", false},
    [BATCH_SIZE] = {"batch_size", false},
    [GPUS] = {"gpus", true},
    [EPOCHS] = {"epochs", false},
    [PEAK] = {"peak_mib", true},
    [RESIDENT] = {"resident_mib", true},
    [RESIDENT_GPU2] = {"resident_mib_gpu2", false},
    [RUNTIME] = {"solo_runtime_s", true},
    [ACTIVITY] = {"sm_activity", true},
    [ACTIVITY_GPU2] = {"sm_activity_gpu2", false},
    [OCCUPANCY] = {"sm_occupancy", false},
    [DRAM] = {"dram_activity", false},
    [POWER] = {"power_w", false},
    [MEASURED] = {"measured_mib", false},
    [HORUS] = {"horus_mib", false},
    [FAKETENSOR] = {"faketensor_mib", false},
    [GPUMEMNET] = {"gpumemnet_mib", false},
    [SUMMARY] = {"summary", false},
    [BASIS] = {"basis", false},
};

static const struct csv_table table = {columns, COLUMN_COUNT, ID};

/* Beyond any GPU and any training run; keeps every product below 2^62. */
#define MAX_MIB       16777216.0 /* 16 TiB */
#define MAX_RUNTIME_S 1e8        /* three years */
#define MAX_POWER_W   10000.0

/* Ids become file names, labels and words of a command line: letters, digits and . _ - + only. */
static int read_id(const struct csv *csv, struct workload *workload, struct error *err)
{
    const char *id = csv->values[ID];

    if (strlen(id) >= sizeof workload->id)
        return csv_error(csv, err, "id '%.40s...' is too long: at most %zu characters", id, sizeof workload->id - 1);
    if (strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") != strlen(id) || *id == '-')
        return csv_error(csv, err, "id '%.63s' must be letters, digits and . _ - + and not begin with -", id);
    strcpy(workload->id, id);
    return 0;
}

static int read_mib(const struct csv *csv, size_t column, int64_t missing, int64_t *bytes, struct error *err)
{
    return csv_number(csv, column, 0, MAX_MIB, (double)MIB, missing, bytes, err);
}

static int read_row(const struct csv *csv, struct workload *workload, struct error *err)
{
    int64_t gpus, smact, smocc, dram;
    int rc;

    if ((rc = read_id(csv, workload, err)) ||
        (rc = csv_integer(csv, BATCH_SIZE, 1, INT64_C(1) << 40, -1, &workload->batch_size, err)) ||
        (rc = csv_integer(csv, GPUS, 1, WORKLOAD_MAX_GPUS, 1, &gpus, err)) ||
        (rc = csv_integer(csv, EPOCHS, 1, INT64_C(1000000000), -1, &workload->epochs, err)) ||
        (rc = read_mib(csv, PEAK, -1, &workload->peak_bytes, err)) ||
        (rc = read_mib(csv, RESIDENT, -1, &workload->resident_bytes[0], err)) ||
        (rc = read_mib(csv, RESIDENT_GPU2, workload->resident_bytes[0], &workload->resident_bytes[1], err)) ||
        (rc = csv_number(csv, RUNTIME, 0.001, MAX_RUNTIME_S, 1e9, -1, &workload->solo_runtime_ns, err)) ||
        (rc = csv_number(csv, OCCUPANCY, 0, 1, 1e3, -1, &smocc, err)) ||
        (rc = csv_number(csv, DRAM, 0, 1, 1e3, -1, &dram, err)) ||
        (rc = csv_number(csv, POWER, 0, MAX_POWER_W, 1e3, -1, &workload->power_mw, err)))
        return rc;
    workload->gpus = (uint32_t)gpus;
    workload->smocc_permille = (int32_t)smocc;
    workload->dram_permille = (int32_t)dram;
    if ((rc = csv_number(csv, ACTIVITY, 0, 1, 1e3, -1, &smact, err)))
        return rc;
    workload->smact_permille[0] = (int32_t)smact;
    if ((rc = csv_number(csv, ACTIVITY_GPU2, 0, 1, 1e3, smact, &smact, err)))
        return rc;
    workload->smact_permille[1] = (int32_t)smact;
    for (size_t i = 0; i < WORKLOAD_RECORDED_COUNT; i++)
        if ((rc = read_mib(csv, MEASURED + i, -1, &workload->recorded_bytes[i], err)))
            return rc;
    workload->model = xstrdup(csv->values[MODEL]);
    workload->dataset = xstrdup(csv->values[DATASET]);
    workload->summary = xstrdup(csv->values[SUMMARY]);
    workload->basis = xstrdup(csv->values[BASIS]);
    workload->line = csv->line;
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    const struct workload *a = *(struct workload *const *)left, *b = *(struct workload *const *)right;
    int order = strcmp(a->id, b->id);

    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int build_index(struct workloads *workloads, const char *path, struct error *err)
{
    workloads->by_id = xcalloc(workloads->count, sizeof *workloads->by_id);
    for (size_t i = 0; i < workloads->count; i++)
        workloads->by_id[i] = &workloads->items[i];
    qsort(workloads->by_id, workloads->count, sizeof *workloads->by_id, compare_ids);
    for (size_t i = 1; i < workloads->count; i++) {
        const struct workload *first = workloads->by_id[i - 1], *again = workloads->by_id[i];
        if (strcmp(first->id, again->id) == 0)
            return error_set(err, EINVAL, "%s:%u: workload '%s' is already on line %u: remove or rename one", path,
                             again->line, again->id, first->line);
    }
    return 0;
}

static int read_rows(struct workloads *workloads, struct csv *csv, struct error *err)
{
    size_t capacity = 0;
    int rc;

    while ((rc = csv_next(csv, err)) > 0) {
        if (workloads->count == WORKLOADS_MAX) {
            rc = csv_error(csv, err, "more than %d workloads: split the file", WORKLOADS_MAX);
            break;
        }
        array_reserve(workloads->items, capacity, workloads->count + 1);
        workloads->items[workloads->count] = (struct workload){0};
        rc = read_row(csv, &workloads->items[workloads->count++], err);
        if (rc)
            break;
    }
    if (!rc)
        rc = build_index(workloads, csv->path, err);
    csv_release(csv);
    if (rc)
        workloads_release(workloads);
    return rc;
}

int workloads_read(struct workloads *workloads, const char *path, struct error *err)
{
    struct csv csv;
    int rc = csv_open(&csv, path, &table, 1, err);

    *workloads = (struct workloads){0};
    return rc ? rc : read_rows(workloads, &csv, err);
}

int workloads_read_text(struct workloads *workloads, const char *path, const char *text, size_t length,
                        struct error *err)
{
    struct csv csv;
    int rc = csv_open_text(&csv, path, text, length, &table, 1, err);

    *workloads = (struct workloads){0};
    return rc ? rc : read_rows(workloads, &csv, err);
}

void workloads_release(struct workloads *workloads)
{
    for (size_t i = 0; i < workloads->count; i++) {
        free(workloads->items[i].model);
        free(workloads->items[i].dataset);
        free(workloads->items[i].summary);
        free(workloads->items[i].basis);
    }
    free(workloads->items);
    free(workloads->by_id);
    *workloads = (struct workloads){0};
}

const struct workload *workloads_find(const struct workloads *workloads, const char *id)
{
    size_t low = 0, high = workloads->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(id, workloads->by_id[middle]->id);
        if (order == 0)
            return workloads->by_id[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

char *workload_summary_path(const struct workload *workload, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!*workload->summary)
        return NULL;
    if (*workload->summary == '/' || !slash)
        return xstrdup(workload->summary);
    return xasprintf("%.*s/%s", (int)(slash - path), path, workload->summary);
}

int64_t workload_resident_bytes(const struct workload *workload, uint32_t k)
{
    return workload->resident_bytes[k > 0];
}

int32_t workload_smact_permille(const struct workload *workload, uint32_t k)
{
    return workload->smact_permille[k > 0];
}

int64_t workload_need_bytes(const struct workload *workload, uint32_t k)
{
    int64_t resident = workload_resident_bytes(workload, k);

    return resident > workload->peak_bytes ? resident : workload->peak_bytes;
}

/* Shares of the 40 GB of the GPU that the figures were measured on: two heavy jobs do not fit it. */
#define HEAVY_BYTES    (24 * GIB)
#define HEAVY_PERMILLE 900 /* alone, it leaves next to nothing of the GPU's compute */
#define LIGHT_BYTES    (4 * GIB)
#define LIGHT_PERMILLE 300

enum workload_class workload_class(const struct workload *workload)
{
    int64_t need_bytes = workload_need_bytes(workload, 0);
    int32_t smact = workload_smact_permille(workload, 0);

    if (workload->gpus > 1 || need_bytes >= HEAVY_BYTES || smact >= HEAVY_PERMILLE)
        return WORKLOAD_HEAVY;
    return need_bytes < LIGHT_BYTES && smact < LIGHT_PERMILLE ? WORKLOAD_LIGHT : WORKLOAD_MEDIUM;
}

const char *workload_class_name(enum workload_class class)
{
    static const char *const names[WORKLOAD_CLASS_COUNT] = {"light", "medium", "heavy"};

    return names[class];
}
