/* A job as its submitter describes it: what `carma submit` sends and what the daemon stores. Free of transport. */
#ifndef CARMA_API_SPEC_H
#define CARMA_API_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Figures that come with a job (a .rad file's optional columns, a trace's workload): memory in bytes, -1 = none. */
enum spec_recorded { SPEC_MEASURED, SPEC_HORUS, SPEC_FAKETENSOR, SPEC_GPUMEMNET, SPEC_RECORDED_COUNT };
extern const char *const spec_recorded_names[SPEC_RECORDED_COUNT]; /* "measured", "horus", "faketensor", "gpumemnet" */

struct spec_strings {
    char **items; /* owned */
    size_t count;
};

struct job_spec {
    char *name;                  /* never NULL once checked */
    struct spec_strings command; /* argv; at least one */
    char *script;                /* text of the script that is run; command[0] is its name then; NULL = none */
    struct spec_strings environment; /* "NAME=value", the submitter's */
    char *directory;             /* absolute: where it runs */
    char *output;                /* absolute path of stdout; %j = job id */
    char *error;                 /* absolute path of stderr; %j = job id; NULL = same as output */
    char *conda_environment;     /* NULL = none */
    uint32_t gpus;               /* >= 1 */
    int64_t gpu_memory_bytes;    /* per GPU, declared; -1 = not */
    int64_t max_slowdown_permille; /* by sharing, at the most, as predicted; -1 = the daemon's default */
    int64_t mps_threads_percent;    /* under MPS, of each GPU's threads at the most; -1 = as configured */
    int64_t mps_memory_limit_bytes; /* under MPS, what the driver gives each process on a GPU; -1 = as configured */
    int64_t cpus;                /* processors' worth of time that its processes get at the most; -1 = any */
    int64_t host_memory_bytes;   /* of the host, not of a GPU: what its processes get at the most; -1 = as configured */
    char *share;                 /* "streams" or "mps": the only way in which it may share GPUs; NULL = any */
    bool exclusive;
    bool held;
    int64_t time_limit_ns;       /* of each launch, of node time; -1 = none */
    uint32_t signal;             /* number; its processes get it before the time limit; 0 = none */
    int64_t signal_before_ns;    /* so long before; -1 = no signal */
    bool requeue;                /* tried again after its time limit, a lost shepherd, a reboot */
    char *policy_word;           /* as written in a positional .rad file; kept, not enforced; may be NULL */
    char *summary_name;          /* file name of the model summary, or NULL */
    char *summary;               /* its contents, or NULL */
    char *capture_name;          /* file name of the operator trace (docs/formats/capture.md), or NULL */
    char *capture;               /* its contents, or NULL */
    char *dataset;               /* may be NULL */
    int64_t batch_size;          /* on each GPU; -1 = not said */
    char *optimizer;             /* a word of estimate/program/lower.h; NULL = not said */
    char *precision;             /* the same */
    int64_t recorded_bytes[SPEC_RECORDED_COUNT];
};

void job_spec_init(struct job_spec *spec); /* all "not said", 1 GPU */
void job_spec_release(struct job_spec *spec);

/* Checks ranges and lengths (limits below); -EINVAL with one line that names the value and the remedy. */
int job_spec_check(const struct job_spec *spec, struct error *err);

json_t *job_spec_to_json(const struct job_spec *spec);                                      /* a new reference */
int job_spec_from_json(const json_t *json, struct job_spec *spec, struct error *err);       /* inits; checks too */

/* Whether both say the same in every member, and a figure by which one that may be equal is found. */
bool job_spec_equal(const struct job_spec *a, const struct job_spec *b);
uint64_t job_spec_digest(const struct job_spec *spec);

void spec_strings_add(struct spec_strings *strings, const char *text);
bool spec_strings_equal(const struct spec_strings *a, const struct spec_strings *b);
void spec_strings_release(struct spec_strings *strings);

#define SPEC_MAX_CPUS 4096
#define SPEC_MAX_NAME 128
#define SPEC_MAX_ARGUMENTS 4096
#define SPEC_MAX_ENVIRONMENT 8192
#define SPEC_MAX_TEXT (1 << 20)      /* bytes of command, of environment, each in all */
#define SPEC_MAX_SCRIPT (1 << 20)    /* bytes */
#define SPEC_MAX_SUMMARY (8 << 20)   /* bytes */
#define SPEC_MAX_CAPTURE (8 << 20)   /* bytes */
#define SPEC_MAX_PACKED (8 << 20)    /* bytes of all its texts together */
#define SPEC_MAX_SLOWDOWN 1000000    /* permille */
#define SPEC_MAX_TIME_NS (3650 * INT64_C(86400000000000)) /* ten years */
#define SPEC_MAX_GPU_MEMORY (INT64_C(1) << 50)

#endif
