#include "api/job_field.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/array.h"
#include "api/later/begin.h"
#include "api/later/dependency.h"
#include "api/job_signal.h"
#include "api/spec.h"
#include "api/told/label.h"
#include "api/told/notify.h"
#include "base/memory.h"
#include "base/share.h"
#include "base/surroundings.h"
#include "base/text/gpu_list.h"
#include "base/text/nearest.h"
#include "base/units.h"
#include "core/gpus/suits.h"
#include "core/record.h"
#include "estimate/program/lower.h"
#include "estimate/transformer/transformer.h"

static int check_optimizer(const char *text, struct error *err)
{
    enum optimizer ignored;

    return optimizer_parse(text, &ignored, err);
}

static int check_precision(const char *text, struct error *err)
{
    enum precision ignored;

    return precision_parse(text, &ignored, err);
}

static int check_method(const char *text, struct error *err)
{
    struct method ignored;

    method_default(&ignored);
    return method_parse(text, &ignored, err);
}

static int check_engine(const char *text, struct error *err)
{
    return strcmp(text, "slurm") == 0 ? 0 : error_set(err, EINVAL, "engine '%.40s' is not known: slurm", text);
}

static int check_share(const char *text, struct error *err)
{
    enum share_mode way = share_mode_find(text);

    if (way != SHARE_TIME_SLICE && way != SHARE_MPS)
        return nearest_refuse(err, "share", text, "time-slice or mps; or leave it out");
    return 0;
}

static int check_visible_devices(const char *text, struct error *err)
{
    if (strcmp(text, "uuid") != 0 && strcmp(text, "index") != 0)
        return nearest_refuse(err, "visible_devices", text, "uuid or index");
    return 0;
}

/* Which GPUs these are, the daemon knows (daemon/fit.c). */
static int check_exclude_gpu(const char *text, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    struct gpu_list_item item;
    char *rest = copy;
    int status;

    while ((status = gpu_list_next(&rest, &item, err)) > 0)
        ;
    if (status)
        error_prefix(err, "exclude_gpu");
    return status;
}

static int check_attach(const char *text, struct error *err)
{
    unsigned rows, columns;
    int length = 0;

    if (strcmp(text, "pipe") == 0)
        return 0;
    if (!strpbrk(text, "+- ") && sscanf(text, "pty:%4ux%4u%n", &rows, &columns, &length) == 2 && !text[length])
        return 0;
    return nearest_refuse(err, "attach", text, "pipe, or pty:ROWSxCOLUMNS, as pty:24x80");
}

static int check_interactive(const char *text, struct error *err)
{
    return strcmp(text, "shell") == 0 || strcmp(text, "jupyter") == 0
               ? 0
               : nearest_refuse(err, "interactive", text, "shell or jupyter");
}

const struct job_field job_fields[] = {
#define FIELD(kind, member, least, most, ...)                                                                          \
    {.name = #member,                                                                                                  \
     .type = JOB_FIELD_##kind,                                                                                         \
     .offset = offsetof(struct job_spec, member),                                                                      \
     .low = least,                                                                                                     \
     .high = most,                                                                                                     \
     .help = __VA_ARGS__},
#define OPTION(kind, member, least, most, word, sign, form, group, ...)                                                \
    FIELD(kind, member, least, most, __VA_ARGS__, .option = word, .letter = sign, .argument = form)
#include "api/job_fields.def"
};

const size_t job_field_count = array_size(job_fields);

const struct job_field *job_field_find(const char *name)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (strcmp(job_fields[i].name, name) == 0)
            return &job_fields[i];
    return NULL;
}

static bool is_key(const char *option, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != (option[i] == '-' ? '_' : option[i]))
            return false;
    return !option[length];
}

const struct job_field *job_field_of_key(const char *text, size_t length)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option && strlen(job_fields[i].option) == length &&
            is_key(job_fields[i].option, text, length))
            return &job_fields[i];
    return NULL;
}

enum job_field_kind job_field_kind(const struct job_field *field)
{
    static const enum job_field_kind kinds[JOB_FIELD_TYPES] = {
        [JOB_FIELD_LIST] = KIND_LIST,  [JOB_FIELD_SWITCH] = KIND_BOOL,
        [JOB_FIELD_COUNT] = KIND_U32,  [JOB_FIELD_SIGNAL] = KIND_U32,
        [JOB_FIELD_NUMBER] = KIND_I64, [JOB_FIELD_RANK] = KIND_I32,
        [JOB_FIELD_SIZE] = KIND_I64,   [JOB_FIELD_FACTOR] = KIND_I64,
        [JOB_FIELD_TIME] = KIND_I64}; /* all others are texts */

    return kinds[field->type];
}

void *job_field_at(const struct job_field *field, const struct job_spec *spec)
{
    return (char *)spec + field->offset;
}

bool job_field_is_said(const struct job_field *field, const struct job_spec *spec)
{
    const void *at = job_field_at(field, spec);

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        return *(char *const *)at != NULL;
    case KIND_LIST:
        return ((const struct spec_strings *)at)->count > 0;
    case KIND_BOOL:
        return *(const bool *)at;
    case KIND_U32:
        return *(const uint32_t *)at != (field->type == JOB_FIELD_COUNT ? SPEC_NO_COUNT : 0);
    case KIND_I32:
        return *(const int32_t *)at != 0;
    default:
        return *(const int64_t *)at >= 0;
    }
}

static int parse_bytes(const struct job_field *field, const char *text, int64_t *bytes, struct error *err)
{
    char least[UNITS_TEXT], most[UNITS_TEXT];
    int rc = parse_size(text, bytes, err);

    if (rc == 0 && (*bytes < field->low || *bytes > field->high))
        return error_set(err, EINVAL, "%.40s is out of range: %s to %s", text, format_bytes(field->low, least),
                         format_bytes(field->high, most));
    return rc;
}

static int parse_switch(const char *text, bool *on, struct error *err)
{
    *on = !text || strcmp(text, "yes") == 0;
    return *on || strcmp(text, "no") == 0 ? 0 : error_set(err, EINVAL, "'%.40s' is neither yes nor no", text);
}

static int parse_text(const struct job_field *field, const char *text, char **member, struct error *err)
{
    CLEANUP(free_ptr) char *whole = field->joined && *member ? xasprintf("%s,%s", *member, text) : xstrdup(text);
    int rc = field->check ? field->check(whole, err) : 0;

    if (rc == 0) {
        free(*member);
        *member = xstrdup(whole);
    }
    return rc;
}

static int parse(const struct job_field *field, const char *text, struct job_spec *spec, struct error *err)
{
    void *at = job_field_at(field, spec);
    int64_t number = 0;
    int rc;

    switch (field->type) {
    case JOB_FIELD_SWITCH:
        return parse_switch(text, at, err);
    case JOB_FIELD_COUNT:
        rc = parse_integer(text, field->low, field->high, &number, err);
        *(uint32_t *)at = (uint32_t)number;
        return rc;
    case JOB_FIELD_RANK:
        rc = parse_integer(text, field->low, field->high, &number, err);
        *(int32_t *)at = (int32_t)number;
        return rc;
    case JOB_FIELD_NUMBER:
        return parse_integer(text, field->low, field->high, at, err);
    case JOB_FIELD_SIZE:
        return parse_bytes(field, text, at, err);
    case JOB_FIELD_FACTOR:
        if (parse_ratio(text, at, err) || *(int64_t *)at == 0)
            return error_set(err, EINVAL, "'%.40s' is not a factor of at least 1, such as 1.5", text);
        return 0;
    case JOB_FIELD_TIME:
        return job_time_parse(text, at, err);
    case JOB_FIELD_SIGNAL:
        return job_signal_parse(text, at, &spec->signal_before_ns, err);
    default:
        return parse_text(field, text, at, err);
    }
}

int job_field_parse(const struct job_field *field, const char *said, const char *text, struct job_spec *spec,
                    struct error *err)
{
    int rc = parse(field, text, spec, err);

    if (rc && !field->check) /* that has named it */
        error_prefix(err, "%s", said);
    return rc;
}
