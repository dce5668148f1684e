/* A job as its submitter describes it: sent by `carma submit` and stored by the daemon. Free of transport. */
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

#define JOB_FIELD_C_TEXT    char *
#define JOB_FIELD_C_WORD    char *
#define JOB_FIELD_C_PATH    char *
#define JOB_FIELD_C_FILE    char *
#define JOB_FIELD_C_CONTENT char *
#define JOB_FIELD_C_LIST    struct spec_strings
#define JOB_FIELD_C_SWITCH  bool
#define JOB_FIELD_C_COUNT   uint32_t
#define JOB_FIELD_C_SIGNAL  uint32_t
#define JOB_FIELD_C_NUMBER  int64_t
#define JOB_FIELD_C_SIZE    int64_t
#define JOB_FIELD_C_FACTOR  int64_t
#define JOB_FIELD_C_TIME    int64_t

/* Its members, their meaning and range: job_fields.def. Texts are owned; NULL, 0, -1 and false: not said. */
struct job_spec {
#define FIELD(type, member, ...)  JOB_FIELD_C_##type member;
#define OPTION(type, member, ...) JOB_FIELD_C_##type member;
#include "api/job_fields.def"
    int64_t recorded_bytes[SPEC_RECORDED_COUNT];
};

void job_spec_init(struct job_spec *spec);       /* all "not said", 1 GPU */
void job_spec_init_empty(struct job_spec *spec); /* says nothing at all: no GPU, either */
void job_spec_release(struct job_spec *spec);

/* Checks ranges and lengths (limits below); -EINVAL with one line that names the value and the remedy. */
int job_spec_check(const struct job_spec *spec, struct error *err);

json_t *job_spec_to_json(const struct job_spec *spec);                                /* a new reference */
int job_spec_from_json(const json_t *json, struct job_spec *spec, struct error *err); /* inits; checks too */

/* Whether all members of both are equal, and a figure by which a possibly equal one is found. */
bool job_spec_equal(const struct job_spec *a, const struct job_spec *b);
uint64_t job_spec_digest(const struct job_spec *spec);

/* The fields of `over` replace those of *spec. */
void job_spec_overlay(struct job_spec *spec, const struct job_spec *over);

#define SPEC_CAPTURE_AUTO "auto"

/* `--capture auto`: carma is to record it, also where no sandbox can be had for its command. */
bool job_spec_asks_for_capture(const struct job_spec *spec);

void spec_strings_add(struct spec_strings *strings, const char *text);
bool spec_strings_equal(const struct spec_strings *a, const struct spec_strings *b);
void spec_strings_release(struct spec_strings *strings);

#define SPEC_MAX_CPUS        4096
#define SPEC_MAX_NAME        128
#define SPEC_MAX_LINE        1024 /* bytes of other texts */
#define SPEC_MAX_BATCH_SIZE  (INT64_C(1) << 40)
#define SPEC_MAX_ARGUMENTS   4096
#define SPEC_MAX_ENVIRONMENT 8192
#define SPEC_MAX_TEXT        (1 << 20)                        /* bytes of command, of environment, each in all */
#define SPEC_MAX_SCRIPT      (1 << 20)                        /* bytes */
#define SPEC_MAX_SUMMARY     (8 << 20)                        /* bytes */
#define SPEC_MAX_CAPTURE     (8 << 20)                        /* bytes */
#define SPEC_MAX_PACKED      (8 << 20)                        /* bytes of all its texts together */
#define SPEC_MAX_SLOWDOWN    1000000                          /* permille */
#define SPEC_MAX_TIME_NS     (3650 * INT64_C(86400000000000)) /* ten years */
#define SPEC_MAX_GPU_MEMORY  (INT64_C(1) << 50)

#endif
