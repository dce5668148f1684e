/* A job as its submitter describes it: sent by `carma submit` and stored by the daemon. Free of transport.
 *
 * A new field changes the struct, and all that sees it is built again. So a header that only passes one on declares it
 * (`struct job_spec;`). */
#ifndef CARMA_API_SPEC_H
#define CARMA_API_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/spec_limits.h"
#include "api/spec_strings.h"
#include "base/error.h"

/* Figures that come with a job (a .rad file's optional columns, a trace's workload): memory in bytes, -1 = none. */
enum spec_recorded { SPEC_MEASURED, SPEC_HORUS, SPEC_FAKETENSOR, SPEC_GPUMEMNET, SPEC_RECORDED_COUNT };
extern const char *const spec_recorded_names[SPEC_RECORDED_COUNT]; /* "measured", "horus", "faketensor", "gpumemnet" */

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
#define JOB_FIELD_C_RANK    int32_t
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
#define SPEC_NO_COUNT UINT32_MAX                 /* a COUNT that is not said */
void job_spec_init_empty(struct job_spec *spec); /* says nothing at all, not even how many GPUs */
void job_spec_release(struct job_spec *spec);

/* Checks ranges and lengths (limits below); -EINVAL with one line that names the value and the remedy. */
int job_spec_check(const struct job_spec *spec, struct error *err);

json_t *job_spec_to_json(const struct job_spec *spec);                                /* a new reference */
json_t *job_spec_said_to_json(const struct job_spec *spec);                           /* without what it does not say */
int job_spec_from_json(const json_t *json, struct job_spec *spec, struct error *err); /* inits; checks too */

/* Whether all members of both are equal, and a figure by which a possibly equal one is found. */
bool job_spec_equal(const struct job_spec *a, const struct job_spec *b);
uint64_t job_spec_digest(const struct job_spec *spec);

struct job_spec job_spec_copy(const struct job_spec *spec);

size_t job_spec_bytes(const struct job_spec *spec); /* of memory, with its texts */

/* The fields of `over` replace those of *spec. */
void job_spec_overlay(struct job_spec *spec, const struct job_spec *over);

#define SPEC_CAPTURE_AUTO "auto"

/* `--capture auto`: carma is to record it, also where no sandbox can be had for its command. */
bool job_spec_asks_for_capture(const struct job_spec *spec);

#endif
