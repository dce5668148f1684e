/* Training workloads as data: a job's need and its GPU activity when it runs alone. The format of the file and where
 * its figures come from: docs/formats/workloads.md. */
#ifndef CARMA_TRACE_WORKLOADS_H
#define CARMA_TRACE_WORKLOADS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WORKLOADS_MAX          100000
#define WORKLOAD_PROFILED_GPUS 2 /* a job's first GPU, and each of its others */
#define WORKLOAD_MAX_GPUS      64
#define WORKLOAD_ID_SIZE       64 /* NUL included */

/* Memory figures that are recorded with a workload, in the order of the .rad file's columns. */
enum workload_recorded {
    WORKLOAD_MEASURED,
    WORKLOAD_HORUS,
    WORKLOAD_FAKETENSOR,
    WORKLOAD_GPUMEMNET,
    WORKLOAD_RECORDED_COUNT
};

struct workload {
    char id[WORKLOAD_ID_SIZE];
    char *model;                                     /* "" = not said */
    char *dataset;                                   /* "" = not said */
    int64_t batch_size;                              /* -1 = not said */
    uint32_t gpus;                                   /* 1 .. WORKLOAD_MAX_GPUS */
    int64_t epochs;                                  /* executed; -1 = not said */
    int64_t peak_bytes;                              /* most memory on a GPU */
    int64_t resident_bytes[WORKLOAD_PROFILED_GPUS];  /* steady memory */
    int64_t solo_runtime_ns;                         /* alone on its GPUs */
    int32_t smact_permille[WORKLOAD_PROFILED_GPUS];  /* mean SM activity alone */
    int32_t smocc_permille;                          /* mean SM occupancy alone; -1 = not said */
    int32_t dram_permille;                           /* mean DRAM activity alone; -1 = not said */
    int64_t power_mw;                                /* mean draw of its GPU alone, idle draw included; -1 = not said */
    int64_t recorded_bytes[WORKLOAD_RECORDED_COUNT]; /* as published, even where no estimate; -1 = none */
    char *summary;                                   /* path of its model's summary beside this file; "" = none */
    char *basis;                                     /* "peak=table resident=figure ...": where they come from */
    unsigned line;
};

struct workloads {
    struct workload *items; /* owned; in the file's order */
    size_t count;
    struct workload **by_id; /* owned; sorted */
};

/* On an error *workloads is empty and the text says FILE:LINE,
 * the value and the remedy. */
int workloads_read(struct workloads *workloads, const char *path, struct error *err);
int workloads_read_text(struct workloads *workloads, const char *path, const char *text, size_t length,
                        struct error *err);
void workloads_release(struct workloads *workloads);

/* The path of the workload's summary, of a workload of the file `path`; NULL: it names none. Owned by the caller. */
char *workload_summary_path(const struct workload *workload, const char *path);

const struct workload *workloads_find(const struct workloads *workloads, const char *id); /* NULL: none such */

/* Of the job's k-th GPU, k = 0, 1, ... */
int64_t workload_resident_bytes(const struct workload *workload, uint32_t k);
int32_t workload_smact_permille(const struct workload *workload, uint32_t k);

/* Light, medium and heavy, as the thesis mixes them (6.3.2); the rule is ours (docs/formats/workloads.md). */
enum workload_class { WORKLOAD_LIGHT, WORKLOAD_MEDIUM, WORKLOAD_HEAVY, WORKLOAD_CLASS_COUNT };
enum workload_class workload_class(const struct workload *workload);
const char *workload_class_name(enum workload_class class);

/* Memory that must be free there for the job not to run out of memory: max(resident, peak). */
int64_t workload_need_bytes(const struct workload *workload, uint32_t k);

#endif
