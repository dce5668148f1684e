/* The fields of a job (job_fields.def) as data: code that reads, writes, checks or shows a field does so for all of
 * them. */
#ifndef CARMA_API_JOB_FIELD_H
#define CARMA_API_JOB_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct job_spec;

enum job_field_type {
    JOB_FIELD_TEXT,
    JOB_FIELD_WORD,
    JOB_FIELD_PATH,
    JOB_FIELD_FILE,
    JOB_FIELD_CONTENT,
    JOB_FIELD_LIST,
    JOB_FIELD_SWITCH,
    JOB_FIELD_COUNT,
    JOB_FIELD_NUMBER,
    JOB_FIELD_RANK,
    JOB_FIELD_SIZE,
    JOB_FIELD_FACTOR,
    JOB_FIELD_TIME,
    JOB_FIELD_SIGNAL,
    JOB_FIELD_TYPES
};

/* How a member is kept in struct job_spec. */
enum job_field_kind { KIND_TEXT, KIND_LIST, KIND_BOOL, KIND_U32, KIND_I32, KIND_I64 };

enum job_field_group {
    JOB_FIELD_NEEDS = 1,
    JOB_FIELD_PLACE,
    JOB_FIELD_MODEL
}; /* under which the help has its option */

struct job_field {
    const char *name; /* of the member, and in JSON */
    enum job_field_type type;
    size_t offset;
    int64_t low, high;
    const char *option; /* NULL: it has none */
    char letter;        /* of the option; 0: none */
    const char *argument;
    const char *help;
    int (*check)(const char *text, struct error *err); /* of a WORD */
    bool required;
    bool joined; /* said again, it is added to the first */
    bool apart;
    bool edited;
};

extern const struct job_field job_fields[];
extern const size_t job_field_count;

const struct job_field *job_field_find(const char *name); /* NULL: there is none */

/* The field of which the key, its option's name with _ for -, is these first bytes of `text`; NULL: none. */
const struct job_field *job_field_of_key(const char *text, size_t length);

enum job_field_kind job_field_kind(const struct job_field *field);
size_t job_field_size(const struct job_field *field); /* of a member that is no text and no list */
void *job_field_at(const struct job_field *field, const struct job_spec *spec);

/* Whether the member says something: other than NULL, none, false, 0 and -1. */
bool job_field_is_said(const struct job_field *field, const struct job_spec *spec);

/* Sets the member from a person's text; `said` names it in an error. A SWITCH may be NULL (it is on), yes or no.
 * -EINVAL. */
int job_field_parse(const struct job_field *field, const char *said, const char *text, struct job_spec *spec,
                    struct error *err);

/* Sets the member from JSON; null: it says nothing any more. -EINVAL: it is as before, or says nothing. */
int job_field_from_json(const struct job_field *field, const json_t *json, struct job_spec *spec, struct error *err);

json_t *job_field_to_json(const struct job_field *field, const struct job_spec *spec); /* a new reference */

int spec_check_number(const char *name, int64_t value, int64_t low, int64_t high,
                      struct error *err); /* inside api only */

#endif
