/* carma bench collocate: runs commands that train, alone and together on one GPU, under time-slicing, MPS and existing
 * MIG instances. It measures their time per epoch and the GPU (the thesis's chapter 4). All times are node time
 * (base/nodetime.h). */
#ifndef CARMA_BENCH_COLLOCATE_H
#define CARMA_BENCH_COLLOCATE_H

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "gpu/mps/domain.h"
#include "gpu/reading.h"

#define COLLOCATE_JOBS_MAX      48 /* at once: the limit of one MPS server */
#define COLLOCATE_INSTANCES_MAX 16

enum collocate_mode { COLLOCATE_TIME_SLICE, COLLOCATE_MPS, COLLOCATE_MIG, COLLOCATE_MODES };

const char *collocate_mode_name(enum collocate_mode mode); /* "time-slice", "mps", "mig" */

/* ---- The plan (bench/collocate_plan.c) ---- */

struct collocate_command {
    char *name;
    char **argv; /* owned, as its strings; NULL at the end */
};

enum collocate_result { COLLOCATE_OK, COLLOCATE_FAILED, COLLOCATE_SKIPPED };

/* One of the jobs of a run, after it. */
struct collocate_job {
    size_t command;               /* index into the plan's */
    char instance[GPU_UUID_SIZE]; /* the MIG instance that it ran on; else "" */
    int64_t ns;                   /* from its start to its end */
    uint32_t epochs;              /* that were observed, or that it was said to have */
    double epoch_s;               /* mean time of an epoch, as docs/bench.md says; 0: none was observed */
};

/* The GPU's readings during a run. */
struct collocate_figures {
    double metrics[GPU_METRIC_COUNT];   /* means while all jobs train: shares of 0 to 1, bytes a second */
    uint32_t sources[GPU_METRIC_COUNT]; /* enum gpu_source; GPU_SOURCE_NONE: not to be had */
    int64_t memory_peak_bytes;          /* of the whole GPU; -1: not known, as the others */
    int64_t memory_before_bytes;        /* when nothing of ours ran */
    double power_w;                     /* mean, as the metrics */
    double energy_j;                    /* of the whole run: its mean power times its length */
    bool mps_observed;                  /* an MPS client was observed on the GPU */
};

struct collocate_run {
    enum collocate_mode mode;
    bool alone;  /* the baseline of its one command */
    char *label; /* "resnet x 3", "small+medium" */
    struct collocate_job *jobs;
    size_t count;
    enum collocate_result result;
    char reason[sizeof(struct error)]; /* why it failed or was skipped */
    int64_t total_ns;                  /* from the first start to the last end */
    struct collocate_figures figures;
};

struct collocate_plan {
    struct collocate_command *commands;
    size_t command_count;
    struct collocate_run *runs; /* each command's baseline before the runs that are compared with it */
    size_t run_count;
};

/* The command of a command line, named after its program. */
void collocate_plan_command(struct collocate_plan *plan, char *const *argv);
/* Those of a file: lines "NAME: COMMAND", which /bin/sh runs; "#" begins a comment. */
int collocate_plan_read(struct collocate_plan *plan, const char *path, struct error *err);

/* "1,2,4", "1-7": numbers of jobs at once, as set bits (bit n: n jobs). */
int collocate_degrees_parse(const char *text, uint64_t *degrees, struct error *err);
/* "time-slice,mps": as set bits (1 << enum collocate_mode). */
int collocate_modes_parse(const char *text, unsigned int *modes, struct error *err);

/* The runs: each command alone; each in every degree and mode; each mix ("A+A+B") in every mode. */
int collocate_plan_runs(struct collocate_plan *plan, unsigned int modes, uint64_t degrees, const char *const *mixes,
                        size_t mix_count, struct error *err);
void collocate_plan_release(struct collocate_plan *plan);

/* The mean time of an epoch of a command alone; 0 where its baseline did not come about. */
double collocate_alone_epoch_s(const struct collocate_plan *plan, size_t command);
/* How much more is trained in the same time than by one job after another. It is the sum over the jobs of alone /
 * together (time per epoch). 0: not known. */
double collocate_throughput(const struct collocate_plan *plan, const struct collocate_run *run);
/* How long its jobs take one after another, from their baselines. 0: not known. */
double collocate_serial_s(const struct collocate_plan *plan, const struct collocate_run *run);

/* ---- The GPU (bench/collocate_watch.c) ---- */

/* The GPU at one reading. */
struct collocate_sample {
    int64_t at_ns;
    double metrics[GPU_METRIC_COUNT]; /* as in the figures */
    uint32_t sources[GPU_METRIC_COUNT];
    int64_t used_bytes, power_mw, energy_mj; /* -1: not known */
    bool mps_observed;
};

struct collocate_watch {
    uv_loop_t *loop;
    struct gpu_monitor *monitor;
    struct gpu_node_reading *latest; /* owned; count 0 before the first */
    char problem[300];               /* the reason for missing readings; "" where there are readings */
    uint64_t readings;               /* so far */

    /* The run in progress. */
    bool measuring;
    const char *gpu;                        /* UUID of the GPU to read */
    const char (*instances)[GPU_UUID_SIZE]; /* those in use; their metrics stand in where the GPU itself has none */
    size_t instance_count;
    int64_t begun_ns;
    int64_t before_bytes;             /* in use at its beginning; -1: not known */
    struct collocate_sample *samples; /* owned */
    size_t sample_count, sample_capacity;
};

/* Returns once the GPUs have been read, or says why they cannot be. `library`: NVML to load, NULL: the usual. */
int collocate_watch_open(struct collocate_watch *watch, uv_loop_t *loop, const char *library, struct error *err);
void collocate_watch_close(struct collocate_watch *watch);

/* Runs the loop until a reading has come that was taken after this call; false after 5 s of the wall clock without. */
bool collocate_watch_fresh(struct collocate_watch *watch);

/* From now on, readings count for a run on this GPU. `instances` may be NULL; both must stay until the end. */
void collocate_watch_begin(struct collocate_watch *watch, const char *gpu, const char (*instances)[GPU_UUID_SIZE],
                           size_t instance_count);
/* Metrics and power are means from from_ns to to_ns, or over the run where no reading lies between these. */
void collocate_watch_end(struct collocate_watch *watch, int64_t from_ns, int64_t to_ns, int64_t total_ns,
                         struct collocate_figures *figures);

/* By UUID; NULL: it is not there. */
const struct gpu_reading *collocate_watch_find(const struct collocate_watch *watch, const char *uuid);

/* ---- MPS (bench/collocate_mps.c) ---- */

/* A domain of our own for one GPU. Zero-initialise. */
struct collocate_mps {
    uv_loop_t *loop;
    struct mps_domain *domain;
    char *directory; /* owned; all that the domain has is in it */
    const char *pipe;
    enum mps_phase phase;
    bool answered;
    int status;
    struct error err;
};

/* Returns once a server serves us, or says why none does. To be stopped in both cases. */
int collocate_mps_start(struct collocate_mps *mps, uv_loop_t *loop, const char *program, const char *gpu,
                        struct error *err);
/* Has its daemon quit, waits for that, and removes its directory. */
void collocate_mps_stop(struct collocate_mps *mps);

/* ---- One run (bench/collocate_run.c) ---- */

struct collocate_setup {
    struct collocate_watch *watch;
    const char *mps_program;      /* NULL: there is none */
    const char *directory;        /* where each run's output goes, in a directory of its own */
    const regex_t *epoch_pattern; /* NULL: a job has `epochs` of equal length */
    uint32_t epochs;
    int64_t time_limit_ns;                                  /* of a run; 0: none */
    char gpu[GPU_UUID_SIZE];                                /* for time-slicing and MPS */
    bool partitioned;                                       /* it is in MIG mode: neither is possible */
    char parent[GPU_UUID_SIZE];                             /* the GPU with the MIG instances; "": none */
    char instances[COLLOCATE_INSTANCES_MAX][GPU_UUID_SIZE]; /* the largest first */
    size_t instance_count;
    volatile int interrupted; /* the number of the signal that asked to stop */
};

/* Runs the jobs of `run` and fills in the results. `show` is called at each reading. -EINTR: interrupted; other
 * negative values: nothing can be run here at all. A job that fails is a result. */
int collocate_run(struct collocate_setup *setup, const struct collocate_plan *plan, struct collocate_run *run,
                  void (*show)(void *user, const struct collocate_run *run, int64_t elapsed_ns), void *user,
                  struct error *err);

/* ---- The report (bench/collocate_report.c) ---- */

json_t *collocate_report(const struct collocate_plan *plan, const struct collocate_setup *setup);
void collocate_table(const struct collocate_plan *plan, int width, bool colour, struct strbuf *out);

#endif
