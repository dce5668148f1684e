/* The members of a job's specification. Apart from api/spec.h, so that a new field compiles only the code that looks at
 * some. */
#ifndef CARMA_API_JOB_SPEC_H
#define CARMA_API_JOB_SPEC_H

#include "api/spec.h"

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

#endif
