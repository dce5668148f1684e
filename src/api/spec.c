#include "api/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_field.h"
#include "api/job_signal.h"
#include "base/digest.h"
#include "base/memory.h"
#include "base/script.h"
#include "base/share.h"
#include "base/units.h"

const char *const spec_recorded_names[SPEC_RECORDED_COUNT] = {"measured", "horus", "faketensor", "gpumemnet"};

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

void job_spec_init_empty(struct job_spec *spec)
{
    *spec = (struct job_spec){0};
    for (size_t i = 0; i < job_field_count; i++)
        if (job_field_kind(&job_fields[i]) == KIND_I64)
            *(int64_t *)job_field_at(&job_fields[i], spec) = -1;
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].type == JOB_FIELD_COUNT)
            *(uint32_t *)job_field_at(&job_fields[i], spec) = SPEC_NO_COUNT;
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        spec->recorded_bytes[i] = -1;
}

void job_spec_init(struct job_spec *spec)
{
    job_spec_init_empty(spec);
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].type == JOB_FIELD_COUNT)
            *(uint32_t *)job_field_at(&job_fields[i], spec) = 1;
}

static void release_field(const struct job_field *field, struct job_spec *spec)
{
    if (job_field_kind(field) == KIND_TEXT)
        free_ptr(job_field_at(field, spec));
    else if (job_field_kind(field) == KIND_LIST)
        spec_strings_release(job_field_at(field, spec));
}

void job_spec_release(struct job_spec *spec)
{
    for (size_t i = 0; i < job_field_count; i++)
        release_field(&job_fields[i], spec);
    job_spec_init(spec);
}

static const size_t sizes[] = {[KIND_BOOL] = sizeof(bool),
                               [KIND_U32] = sizeof(uint32_t),
                               [KIND_I32] = sizeof(int32_t),
                               [KIND_I64] = sizeof(int64_t)};

size_t job_field_size(const struct job_field *field)
{
    return sizes[job_field_kind(field)];
}

void job_spec_overlay(struct job_spec *spec, const struct job_spec *over)
{
    for (size_t i = 0; i < job_field_count; i++) {
        const struct job_field *field = &job_fields[i];
        void *at = job_field_at(field, spec);
        const void *from = job_field_at(field, over);
        const struct spec_strings *list = from;

        if (!job_field_is_said(field, over))
            continue;
        release_field(field, spec);
        if (job_field_kind(field) == KIND_TEXT)
            *(char **)at = xstrdup(*(char *const *)from);
        else if (job_field_kind(field) != KIND_LIST)
            memcpy(at, from, sizes[job_field_kind(field)]);
        else
            for (size_t k = 0; k < list->count; k++)
                spec_strings_add(at, list->items[k]);
    }
}

struct job_spec job_spec_copy(const struct job_spec *spec)
{
    struct job_spec copy;

    job_spec_init_empty(&copy);
    job_spec_overlay(&copy, spec);
    memcpy(copy.recorded_bytes, spec->recorded_bytes, sizeof copy.recorded_bytes);
    return copy;
}

static bool field_equal(const struct job_field *field, const struct job_spec *a, const struct job_spec *b)
{
    const void *one = job_field_at(field, a), *other = job_field_at(field, b);

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        return same_text(*(char *const *)one, *(char *const *)other);
    case KIND_LIST:
        return spec_strings_equal(one, other);
    case KIND_BOOL:
        return *(const bool *)one == *(const bool *)other;
    case KIND_U32:
        return *(const uint32_t *)one == *(const uint32_t *)other;
    case KIND_I32:
        return *(const int32_t *)one == *(const int32_t *)other;
    default:
        return *(const int64_t *)one == *(const int64_t *)other;
    }
}

bool job_spec_equal(const struct job_spec *a, const struct job_spec *b)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (!field_equal(&job_fields[i], a, b))
            return false;
    return memcmp(a->recorded_bytes, b->recorded_bytes, sizeof a->recorded_bytes) == 0;
}

static uint64_t mix_text(uint64_t digest, const char *text)
{
    return text ? digest_add(digest, text, strlen(text) + 1) : digest_add(digest, &text, 1);
}

static uint64_t mix_field(uint64_t digest, const struct job_field *field, const struct job_spec *spec)
{
    const struct spec_strings *list = job_field_at(field, spec);

    if (job_field_kind(field) == KIND_TEXT)
        return mix_text(digest, *(char *const *)job_field_at(field, spec));
    if (job_field_kind(field) != KIND_LIST)
        return digest_add(digest, job_field_at(field, spec), sizes[job_field_kind(field)]);
    for (size_t i = 0; i < list->count; i++)
        digest = mix_text(digest, list->items[i]);
    return digest_add(digest, &list->count, sizeof list->count);
}

uint64_t job_spec_digest(const struct job_spec *spec)
{
    uint64_t digest = DIGEST_EMPTY;

    for (size_t i = 0; i < job_field_count; i++)
        digest = mix_field(digest, &job_fields[i], spec);
    return digest_add(digest, spec->recorded_bytes, sizeof spec->recorded_bytes);
}

size_t job_spec_bytes(const struct job_spec *spec)
{
    size_t bytes = sizeof *spec;

    for (size_t i = 0; i < job_field_count; i++) {
        const void *at = job_field_at(&job_fields[i], spec);
        const char *text = job_field_kind(&job_fields[i]) == KIND_TEXT ? *(char *const *)at : NULL;
        const struct spec_strings *list = job_field_kind(&job_fields[i]) == KIND_LIST ? at : NULL;

        bytes += text ? strlen(text) + 1 : 0;
        for (size_t k = 0; list && k < list->count; k++)
            bytes += sizeof *list->items + strlen(list->items[k]) + 1;
    }
    return bytes;
}

/* JSON is UTF-8, and jansson decides whether a text is, from its first letter on that is not ASCII. */
static bool is_utf8(const char *text)
{
    json_t *string;
    bool valid;

    while (*text && (unsigned char)*text < 0x80)
        text++;
    if (!*text)
        return true;
    string = json_string(text);
    valid = string != NULL;
    json_decref(string);
    return valid;
}

static int check_text(const struct job_field *field, const char *text, struct error *err)
{
    if (!text) {
        if (field->required)
            return error_set(err, EINVAL, "%s is missing: give one", field->name);
        return 0;
    }
    if (!*text)
        return error_set(err, EINVAL, "%s is empty: fill it in or leave it out", field->name);
    if (strlen(text) > (size_t)field->high)
        return error_set(err, EINVAL, "%s is too long: %zu bytes, at most %" PRId64, field->name, strlen(text),
                         field->high);
    if (!is_utf8(text))
        return error_set(err, EINVAL, "%s is not UTF-8 text: convert it", field->name);
    for (const char *c = text; field->type != JOB_FIELD_CONTENT && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return error_set(err, EINVAL, "%s holds the control character 0x%02x: remove it", field->name,
                             (unsigned char)*c);
    if (field->type == JOB_FIELD_PATH && *text != '/')
        return error_set(err, EINVAL, "%s '%.200s' is a relative path: write it from / on", field->name, text);
    return field->check ? field->check(text, err) : 0;
}

static int check_strings(const struct job_field *field, const struct spec_strings *strings, struct error *err)
{
    size_t total = 0;

    if (strings->count < (size_t)field->low)
        return error_set(err, EINVAL, "%s is missing: name a program", field->name);
    if (strings->count > (size_t)field->high)
        return error_set(err, EINVAL, "%s has too many entries: %zu, at most %" PRId64, field->name, strings->count,
                         field->high);
    for (size_t i = 0; i < strings->count; i++) {
        const char *text = strings->items[i];
        total += strlen(text) + 1;
        if (total > SPEC_MAX_TEXT)
            return error_set(err, EINVAL, "%s is too long: more than %d bytes in all", field->name, SPEC_MAX_TEXT);
        if (!is_utf8(text)) /* an environment entry's name may help to find it */
            return error_set(err, EINVAL, "%s entry %zu ('%.*s...') is not UTF-8 text: convert or unset it",
                             field->name, i + 1, (int)strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), text);
    }
    return 0;
}

int spec_check_number(const char *name, int64_t value, int64_t low, int64_t high, struct error *err)
{
    if (value < low || value > high)
        return error_set(err, EINVAL, "%s %" PRId64 " is out of range: %" PRId64 " to %" PRId64, name, value, low,
                         high);
    return 0;
}

static int check_field(const struct job_field *field, const struct job_spec *spec, struct error *err)
{
    const void *at = job_field_at(field, spec);

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        return check_text(field, *(char *const *)at, err);
    case KIND_LIST:
        return check_strings(field, at, err);
    case KIND_U32:
        return spec_check_number(field->name, *(const uint32_t *)at, field->low, field->high, err);
    case KIND_I32:
        return spec_check_number(field->name, *(const int32_t *)at, field->low, field->high, err);
    case KIND_I64:
        return *(const int64_t *)at == -1
                   ? 0
                   : spec_check_number(field->name, *(const int64_t *)at, field->low, field->high, err);
    case KIND_BOOL:
        break;
    }
    return 0;
}

/* One large text is accepted, several at once are not: the data of one job that other users must carry is bounded. */
static int check_packed(const struct job_spec *spec, struct error *err)
{
    size_t total = 0;

    for (size_t i = 0; i < job_field_count; i++) {
        const void *at = job_field_at(&job_fields[i], spec);
        const struct spec_strings *strings = at;
        if (job_field_kind(&job_fields[i]) == KIND_TEXT && *(char *const *)at)
            total += strlen(*(char *const *)at);
        for (size_t k = 0; job_field_kind(&job_fields[i]) == KIND_LIST && k < strings->count; k++)
            total += strlen(strings->items[k]);
    }
    if (total > SPEC_MAX_PACKED)
        return error_set(err, EINVAL, "the job's texts are too long: %zu bytes, at most %d in all: send a smaller %s",
                         total, SPEC_MAX_PACKED, spec->capture ? "capture" : "summary or environment");
    return 0;
}

static int check_share(const struct job_spec *spec, struct error *err)
{
    if (spec->exclusive && spec->share && share_mode_find(spec->share) == SHARE_MPS)
        return error_set(err, EINVAL, "an exclusive job shares no GPU: leave exclusive or share mps out");
    return 0;
}

/* Which GPUs, and how much of them, is nothing to ask for without one. */
static int check_without_gpu(const struct job_spec *spec, struct error *err)
{
    static const char *const of_gpus[] = {"gpu_memory_bytes",       "gpu_type",  "exclude_gpu", "mps_threads_percent",
                                          "mps_memory_limit_bytes", "exclusive", "share"};

    for (size_t i = 0; i < array_size(of_gpus) && spec->gpus == 0; i++) {
        const struct job_field *field = job_field_find(of_gpus[i]);
        if (job_field_is_said(field, spec))
            return error_set(err, EINVAL, "--%s is about GPUs, and the job is to have none (--gpus 0): leave one out",
                             field->option);
    }
    return 0;
}

static int check_time(const struct job_spec *spec, struct error *err)
{
    char before[UNITS_TEXT], limit[UNITS_TEXT], name[JOB_SIGNAL_TEXT];

    if ((spec->signal != 0) != (spec->signal_before_ns > 0))
        return error_set(err, EINVAL, "signal and signal_before_ns belong together: say both or neither");
    if (!spec->signal)
        return 0;
    if (!job_signal_can_be_caught(spec->signal))
        return error_set(err, EINVAL, "signal %s cannot be caught: choose one that can, such as USR1",
                         job_signal_name(spec->signal, name));
    if (spec->time_limit_ns < 0)
        return error_set(err, EINVAL, "a signal before the time limit needs one: say --time, or leave --signal out");
    if (spec->signal_before_ns >= spec->time_limit_ns)
        return error_set(err, EINVAL,
                         "a signal %s before a time limit of %s would come before the job begins: lengthen --time or "
                         "shorten --signal",
                         format_duration(spec->signal_before_ns, before), format_duration(spec->time_limit_ns, limit));
    return 0;
}

static int check_script(const struct job_spec *spec, struct error *err)
{
    CLEANUP(free_ptr) char *interpreter = NULL;
    CLEANUP(free_ptr) char *argument = NULL;
    int rc = spec->script ? script_interpreter(spec->script, &interpreter, &argument, err) : 0;

    if (rc)
        error_prefix(err, "script");
    return rc;
}

bool job_spec_asks_for_capture(const struct job_spec *spec)
{
    return spec->capture_name && !spec->capture && strcmp(spec->capture_name, SPEC_CAPTURE_AUTO) == 0;
}

int job_spec_check(const struct job_spec *spec, struct error *err)
{
    int rc;

    for (size_t i = 0; i < job_field_count; i++)
        if ((rc = check_field(&job_fields[i], spec, err)))
            return rc;
    if ((rc = check_packed(spec, err)) || (rc = check_share(spec, err)) || (rc = check_without_gpu(spec, err)) ||
        (rc = check_time(spec, err)) || (rc = check_script(spec, err)))
        return rc;
    if (spec->no_capture && job_spec_asks_for_capture(spec))
        return error_set(err, EINVAL, "--capture auto and --no-capture contradict each other: leave one out");
    if (!*spec->command.items[0])
        return error_set(err, EINVAL, "command is empty: name a program");
    for (size_t i = 0; i < spec->environment.count; i++) {
        const char *entry = spec->environment.items[i];
        if (!strchr(entry, '=') || *entry == '=')
            return error_set(err, EINVAL, "environment entry %zu is not of the form NAME=value: correct or remove it",
                             i + 1);
    }
    if (spec->container && (*spec->container == '-' || !*spec->container))
        return error_set(err, EINVAL,
                         "container '%.200s' is no image: name one as docker.io/library/python:3.12, or a .sif file",
                         spec->container);
    if (spec->conda_environment && *spec->conda_environment == '-')
        return error_set(err, EINVAL, "conda_environment '%.200s' is not an environment: it begins with -",
                         spec->conda_environment);
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        if (spec->recorded_bytes[i] != -1 &&
            (rc = spec_check_number(spec_recorded_names[i], spec->recorded_bytes[i], 1, SPEC_MAX_GPU_MEMORY, err))) {
            error_prefix(err, "recorded_bytes");
            return rc;
        }
    return 0;
}
