#include "api/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_signal.h"
#include "base/memory.h"
#include "base/script.h"
#include "base/share.h"
#include "base/units.h"
#include "core/record.h"
#include "estimate/program/lower.h"

const char *const spec_recorded_names[SPEC_RECORDED_COUNT] = {"measured", "horus", "faketensor", "gpumemnet"};

#define MAX_SHORT_TEXT 1024
#define MAX_BATCH_SIZE (INT64_C(1) << 40)

enum member_kind { TEXT, STRINGS, BOOL, U32, I64 };

enum member_flag {
    REQUIRED = 1,
    ABSOLUTE = 2, /* a path from the root */
    LINE = 4      /* no control characters: it is shown in tables and messages */
};

/* Every member, once: the codec, the checks and the destructor all go by this table. */
static const struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
    int flags;
    int64_t low;  /* I64, U32: least value, -1 (I64: not said) apart; STRINGS: fewest items */
    int64_t high; /* I64, U32: greatest value; TEXT: most bytes; STRINGS: most items */
} members[] = {
    {"name", TEXT, offsetof(struct job_spec, name), REQUIRED | LINE, 0, SPEC_MAX_NAME},
    {"command", STRINGS, offsetof(struct job_spec, command), REQUIRED, 1, SPEC_MAX_ARGUMENTS},
    {"script", TEXT, offsetof(struct job_spec, script), 0, 0, SPEC_MAX_SCRIPT},
    {"environment", STRINGS, offsetof(struct job_spec, environment), 0, 0, SPEC_MAX_ENVIRONMENT},
    {"directory", TEXT, offsetof(struct job_spec, directory), REQUIRED | ABSOLUTE | LINE, 0, PATH_MAX - 1},
    {"output", TEXT, offsetof(struct job_spec, output), REQUIRED | ABSOLUTE | LINE, 0, PATH_MAX - 1},
    {"error", TEXT, offsetof(struct job_spec, error), ABSOLUTE | LINE, 0, PATH_MAX - 1},
    {"conda_environment", TEXT, offsetof(struct job_spec, conda_environment), LINE, 0, MAX_SHORT_TEXT},
    {"gpus", U32, offsetof(struct job_spec, gpus), 0, 1, RECORD_MAX_GPUS},
    {"gpu_memory_bytes", I64, offsetof(struct job_spec, gpu_memory_bytes), 0, 1, SPEC_MAX_GPU_MEMORY},
    {"max_slowdown_permille", I64, offsetof(struct job_spec, max_slowdown_permille), 0, 1000, SPEC_MAX_SLOWDOWN},
    {"mps_threads_percent", I64, offsetof(struct job_spec, mps_threads_percent), 0, 1, 100},
    {"mps_memory_limit_bytes", I64, offsetof(struct job_spec, mps_memory_limit_bytes), 0, 1, SPEC_MAX_GPU_MEMORY},
    {"cpus", I64, offsetof(struct job_spec, cpus), 0, 1, SPEC_MAX_CPUS},
    {"host_memory_bytes", I64, offsetof(struct job_spec, host_memory_bytes), 0, HOST_MEMORY_LEAST, SPEC_MAX_GPU_MEMORY},
    {"share", TEXT, offsetof(struct job_spec, share), LINE, 0, MAX_SHORT_TEXT},
    {"exclusive", BOOL, offsetof(struct job_spec, exclusive), 0, 0, 0},
    {"held", BOOL, offsetof(struct job_spec, held), 0, 0, 0},
    {"time_limit_ns", I64, offsetof(struct job_spec, time_limit_ns), 0, 1, SPEC_MAX_TIME_NS},
    {"signal", U32, offsetof(struct job_spec, signal), 0, 0, JOB_SIGNAL_MAX},
    {"signal_before_ns", I64, offsetof(struct job_spec, signal_before_ns), 0, 1, SPEC_MAX_TIME_NS},
    {"requeue", BOOL, offsetof(struct job_spec, requeue), 0, 0, 0},
    {"policy_word", TEXT, offsetof(struct job_spec, policy_word), LINE, 0, MAX_SHORT_TEXT},
    {"summary_name", TEXT, offsetof(struct job_spec, summary_name), LINE, 0, PATH_MAX - 1},
    {"summary", TEXT, offsetof(struct job_spec, summary), 0, 0, SPEC_MAX_SUMMARY},
    {"capture_name", TEXT, offsetof(struct job_spec, capture_name), LINE, 0, PATH_MAX - 1},
    {"capture", TEXT, offsetof(struct job_spec, capture), 0, 0, SPEC_MAX_CAPTURE},
    {"dataset", TEXT, offsetof(struct job_spec, dataset), LINE, 0, MAX_SHORT_TEXT},
    {"batch_size", I64, offsetof(struct job_spec, batch_size), 0, 1, MAX_BATCH_SIZE},
    {"optimizer", TEXT, offsetof(struct job_spec, optimizer), LINE, 0, MAX_SHORT_TEXT},
    {"precision", TEXT, offsetof(struct job_spec, precision), LINE, 0, MAX_SHORT_TEXT},
};

static void *member_at(const struct job_spec *spec, const struct member *member)
{
    return (char *)spec + member->offset;
}

void spec_strings_add(struct spec_strings *strings, const char *text)
{
    if ((strings->count & (strings->count - 1)) == 0) /* room doubles at powers of two */
        strings->items = xrealloc(strings->items, strings->count ? 2 * strings->count : 1, sizeof *strings->items);
    strings->items[strings->count++] = xstrdup(text);
}

bool spec_strings_equal(const struct spec_strings *a, const struct spec_strings *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

void spec_strings_release(struct spec_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct spec_strings){0};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

void job_spec_init(struct job_spec *spec)
{
    *spec = (struct job_spec){.gpus = 1, .gpu_memory_bytes = -1, .max_slowdown_permille = -1, .mps_threads_percent = -1,
                               .mps_memory_limit_bytes = -1, .cpus = -1, .host_memory_bytes = -1,
                               .time_limit_ns = -1, .signal_before_ns = -1, .batch_size = -1};
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        spec->recorded_bytes[i] = -1;
}

void job_spec_release(struct job_spec *spec)
{
    for (size_t i = 0; i < array_size(members); i++) {
        if (members[i].kind == TEXT)
            free_ptr(member_at(spec, &members[i]));
        else if (members[i].kind == STRINGS)
            spec_strings_release(member_at(spec, &members[i]));
    }
    job_spec_init(spec);
}

static bool member_equal(const struct member *member, const struct job_spec *a, const struct job_spec *b)
{
    const void *one = member_at(a, member), *other = member_at(b, member);

    switch (member->kind) {
    case TEXT:
        return same_text(*(char *const *)one, *(char *const *)other);
    case STRINGS:
        return spec_strings_equal(one, other);
    case BOOL:
        return *(const bool *)one == *(const bool *)other;
    case U32:
        return *(const uint32_t *)one == *(const uint32_t *)other;
    default:
        return *(const int64_t *)one == *(const int64_t *)other;
    }
}

bool job_spec_equal(const struct job_spec *a, const struct job_spec *b)
{
    for (size_t i = 0; i < array_size(members); i++)
        if (!member_equal(&members[i], a, b))
            return false;
    return memcmp(a->recorded_bytes, b->recorded_bytes, sizeof a->recorded_bytes) == 0;
}

static uint64_t mix(uint64_t digest, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size; size--)
        digest = (digest ^ *at++) * UINT64_C(1099511628211); /* FNV-1a */
    return digest;
}

static uint64_t mix_text(uint64_t digest, const char *text)
{
    return text ? mix(digest, text, strlen(text) + 1) : mix(digest, &text, 1);
}

static uint64_t mix_member(uint64_t digest, const struct member *member, const struct job_spec *spec)
{
    static const size_t sizes[] = {[BOOL] = sizeof(bool), [U32] = sizeof(uint32_t), [I64] = sizeof(int64_t)};
    const struct spec_strings *list = member_at(spec, member);

    if (member->kind == TEXT)
        return mix_text(digest, *(char *const *)member_at(spec, member));
    if (member->kind != STRINGS)
        return mix(digest, member_at(spec, member), sizes[member->kind]);
    for (size_t i = 0; i < list->count; i++)
        digest = mix_text(digest, list->items[i]);
    return mix(digest, &list->count, sizeof list->count);
}

uint64_t job_spec_digest(const struct job_spec *spec)
{
    uint64_t digest = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < array_size(members); i++)
        digest = mix_member(digest, &members[i], spec);
    return mix(digest, spec->recorded_bytes, sizeof spec->recorded_bytes);
}

/* JSON is UTF-8, and jansson is the judge of what that is. */
static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    bool valid = string != NULL;

    json_decref(string);
    return valid;
}

static int check_text(const struct member *member, const char *text, struct error *err)
{
    if (!text) {
        if (member->flags & REQUIRED)
            return error_set(err, EINVAL, "%s is missing: say what it is", member->name);
        return 0;
    }
    if (!*text)
        return error_set(err, EINVAL, "%s is empty: fill it in or leave it out", member->name);
    if (strlen(text) > (size_t)member->high)
        return error_set(err, EINVAL, "%s is too long: %zu bytes, at most %" PRId64, member->name, strlen(text),
                         member->high);
    if (!is_utf8(text))
        return error_set(err, EINVAL, "%s is not UTF-8 text: convert it", member->name);
    for (const char *c = text; member->flags & LINE && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return error_set(err, EINVAL, "%s holds the control character 0x%02x: remove it", member->name,
                             (unsigned char)*c);
    if (member->flags & ABSOLUTE && *text != '/')
        return error_set(err, EINVAL, "%s '%.200s' is a relative path: write it from / on", member->name, text);
    return 0;
}

static int check_strings(const struct member *member, const struct spec_strings *strings, struct error *err)
{
    size_t total = 0;

    if (strings->count < (size_t)member->low)
        return error_set(err, EINVAL, "%s is missing: say what to run", member->name);
    if (strings->count > (size_t)member->high)
        return error_set(err, EINVAL, "%s has too many entries: %zu, at most %" PRId64, member->name, strings->count,
                         member->high);
    for (size_t i = 0; i < strings->count; i++) {
        const char *text = strings->items[i];
        total += strlen(text) + 1;
        if (total > SPEC_MAX_TEXT)
            return error_set(err, EINVAL, "%s is too long: more than %d bytes in all", member->name, SPEC_MAX_TEXT);
        if (!is_utf8(text)) /* an environment entry's name may help to find it */
            return error_set(err, EINVAL, "%s entry %zu ('%.*s...') is not UTF-8 text: convert or unset it",
                             member->name, i + 1, (int)strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), text);
    }
    return 0;
}

static int check_number(const char *name, int64_t value, int64_t low, int64_t high, struct error *err)
{
    if (value < low || value > high)
        return error_set(err, EINVAL, "%s %" PRId64 " is out of range: %" PRId64 " to %" PRId64, name, value, low,
                         high);
    return 0;
}

static int check_member(const struct member *member, const struct job_spec *spec, struct error *err)
{
    const void *at = member_at(spec, member);

    switch (member->kind) {
    case TEXT:
        return check_text(member, *(char *const *)at, err);
    case STRINGS:
        return check_strings(member, at, err);
    case U32:
        return check_number(member->name, *(const uint32_t *)at, member->low, member->high, err);
    case I64:
        return *(const int64_t *)at == -1
                   ? 0
                   : check_number(member->name, *(const int64_t *)at, member->low, member->high, err);
    case BOOL:
        break;
    }
    return 0;
}

/* One large text is all right, several at once would not be: what one job may make others carry is bounded. */
static int check_packed(const struct job_spec *spec, struct error *err)
{
    size_t total = 0;

    for (size_t i = 0; i < array_size(members); i++) {
        const void *at = member_at(spec, &members[i]);
        const struct spec_strings *strings = at;
        if (members[i].kind == TEXT && *(char *const *)at)
            total += strlen(*(char *const *)at);
        for (size_t k = 0; members[i].kind == STRINGS && k < strings->count; k++)
            total += strlen(strings->items[k]);
    }
    if (total > SPEC_MAX_PACKED)
        return error_set(err, EINVAL, "the job's texts are too long: %zu bytes, at most %d in all: send a smaller %s",
                         total, SPEC_MAX_PACKED, spec->capture ? "capture" : "summary or environment");
    return 0;
}

/* What a person wrote; the estimators know no other words. */
static int check_training(const struct job_spec *spec, struct error *err)
{
    enum optimizer optimizer;
    enum precision precision;
    int rc = spec->optimizer ? optimizer_parse(spec->optimizer, &optimizer, err) : 0;

    return rc == 0 && spec->precision ? precision_parse(spec->precision, &precision, err) : rc;
}

static int check_share(const struct job_spec *spec, struct error *err)
{
    enum share_mode way = spec->share ? share_mode_find(spec->share) : SHARE_ANY;

    if (spec->share && way != SHARE_STREAMS && way != SHARE_MPS)
        return error_set(err, EINVAL, "share '%.40s' is not known: streams or mps, or leave it out", spec->share);
    if (spec->exclusive && way == SHARE_MPS)
        return error_set(err, EINVAL, "an exclusive job shares no GPU: leave exclusive or share mps out");
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
        return error_set(err, EINVAL, "a signal %s before a time limit of %s would come before the job begins: lengthen --time or "
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

int job_spec_check(const struct job_spec *spec, struct error *err)
{
    int rc;

    for (size_t i = 0; i < array_size(members); i++)
        if ((rc = check_member(&members[i], spec, err)))
            return rc;
    if ((rc = check_packed(spec, err)) || (rc = check_training(spec, err)) || (rc = check_share(spec, err)) ||
        (rc = check_time(spec, err)) || (rc = check_script(spec, err)))
        return rc;
    if (!*spec->command.items[0])
        return error_set(err, EINVAL, "command is empty: say what to run");
    for (size_t i = 0; i < spec->environment.count; i++) {
        const char *entry = spec->environment.items[i];
        if (!strchr(entry, '=') || *entry == '=')
            return error_set(err, EINVAL, "environment entry %zu is not of the form NAME=value: correct or remove it",
                             i + 1);
    }
    if (spec->conda_environment && *spec->conda_environment == '-')
        return error_set(err, EINVAL, "conda_environment '%.200s' is not an environment: it begins with -",
                         spec->conda_environment);
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        if (spec->recorded_bytes[i] != -1 &&
            (rc = check_number(spec_recorded_names[i], spec->recorded_bytes[i], 1, SPEC_MAX_GPU_MEMORY, err))) {
            error_prefix(err, "recorded_bytes");
            return rc;
        }
    return 0;
}

static json_t *from_known(int64_t value)
{
    return value == -1 ? json_null() : json_integer(value);
}

static json_t *member_to_json(const struct member *member, const struct job_spec *spec)
{
    const void *at = member_at(spec, member);
    json_t *json = NULL;

    switch (member->kind) {
    case TEXT:
        json = *(char *const *)at ? json_string(*(char *const *)at) : json_null();
        break;
    case STRINGS:
        json = json_array();
        for (size_t i = 0; i < ((const struct spec_strings *)at)->count; i++)
            json_array_append_new(json, json_string(((const struct spec_strings *)at)->items[i]));
        break;
    case BOOL:
        json = json_boolean(*(const bool *)at);
        break;
    case U32:
        json = json_integer(*(const uint32_t *)at);
        break;
    case I64:
        json = from_known(*(const int64_t *)at);
        break;
    }
    return json;
}

json_t *job_spec_to_json(const struct job_spec *spec)
{
    json_t *json = json_object(), *recorded = json_object();

    for (size_t i = 0; i < array_size(members); i++)
        json_object_set_new(json, members[i].name, member_to_json(&members[i], spec));
    for (size_t i = 0; i < SPEC_RECORDED_COUNT; i++)
        json_object_set_new(recorded, spec_recorded_names[i], from_known(spec->recorded_bytes[i]));
    json_object_set_new(json, "recorded_bytes", recorded);
    return json;
}

/* The text of a JSON string; NULL with an error when it is none, or hides a NUL. */
static const char *string_value(const char *name, const json_t *json, struct error *err)
{
    if (!json_is_string(json)) {
        error_set(err, EINVAL, "%s is not a string", name);
        return NULL;
    }
    if (strlen(json_string_value(json)) != json_string_length(json)) {
        error_set(err, EINVAL, "%s holds a NUL character: remove it", name);
        return NULL;
    }
    return json_string_value(json);
}

static int read_integer(const char *name, const json_t *json, int64_t *value, struct error *err)
{
    if (!json_is_integer(json))
        return error_set(err, EINVAL, "%s is not a whole number", name);
    /* -1 stands for "not said" inside; on the wire that is null */
    if (json_integer_value(json) < 0)
        return error_set(err, EINVAL, "%s %" JSON_INTEGER_FORMAT " is negative: leave it out if it is not known", name,
                         json_integer_value(json));
    *value = json_integer_value(json);
    return 0;
}

static int strings_from_json(const struct member *member, const json_t *json, struct spec_strings *strings,
                             struct error *err)
{
    size_t index;
    const json_t *item;

    if (!json_is_array(json))
        return error_set(err, EINVAL, "%s is not an array of strings", member->name);
    if (json_array_size(json) > (size_t)member->high)
        return error_set(err, EINVAL, "%s has too many entries: %zu, at most %" PRId64, member->name,
                         json_array_size(json), member->high);
    json_array_foreach(json, index, item)
    {
        const char *text = string_value(member->name, item, err);
        if (!text)
            return -EINVAL;
        spec_strings_add(strings, text);
    }
    return 0;
}

static int member_from_json(const struct member *member, const json_t *json, struct job_spec *spec, struct error *err)
{
    void *at = member_at(spec, member);
    const char *text;
    int64_t number = 0;
    int rc;

    switch (member->kind) {
    case TEXT:
        text = string_value(member->name, json, err);
        if (!text)
            return -EINVAL;
        *(char **)at = xstrdup(text);
        break;
    case STRINGS:
        return strings_from_json(member, json, at, err);
    case BOOL:
        if (!json_is_boolean(json))
            return error_set(err, EINVAL, "%s is neither true nor false", member->name);
        *(bool *)at = json_is_true(json);
        break;
    case U32: /* the range is checked before it is narrowed */
        if ((rc = read_integer(member->name, json, &number, err)) ||
            (rc = check_number(member->name, number, member->low, member->high, err)))
            return rc;
        *(uint32_t *)at = (uint32_t)number;
        break;
    case I64:
        return read_integer(member->name, json, at, err);
    }
    return 0;
}

/* A name from outside, fit for a message. */
static const char *shown(const char *name, char text[static 41])
{
    size_t i;

    for (i = 0; i < 40 && name[i]; i++)
        text[i] = (unsigned char)name[i] < 0x20 || (unsigned char)name[i] >= 0x7f ? '?' : name[i];
    text[i] = '\0';
    return text;
}

static int unknown_member(const char *where, const char *name, struct error *err)
{
    char text[41];

    return error_set(err, EINVAL, "unknown member '%s' of %s: remove it or correct its name", shown(name, text), where);
}

static int recorded_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(json))
        return error_set(err, EINVAL, "recorded_bytes is not an object");
    json_object_foreach((json_t *)json, name, value)
    {
        size_t i = 0;
        int rc;
        while (i < SPEC_RECORDED_COUNT && strcmp(spec_recorded_names[i], name) != 0)
            i++;
        if (i == SPEC_RECORDED_COUNT)
            return unknown_member("recorded_bytes", name, err);
        if (!json_is_null(value) && (rc = read_integer(spec_recorded_names[i], value, &spec->recorded_bytes[i], err)))
            return rc;
    }
    return 0;
}

static int object_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(json))
        return error_set(err, EINVAL, "the job is not a JSON object");
    json_object_foreach((json_t *)json, name, value)
    {
        size_t i = 0;
        bool recorded = strcmp(name, "recorded_bytes") == 0;
        int rc;
        while (i < array_size(members) && strcmp(members[i].name, name) != 0)
            i++;
        if (i == array_size(members) && !recorded)
            return unknown_member("the job", name, err);
        if (json_is_null(value))
            continue;
        rc = recorded ? recorded_from_json(value, spec, err) : member_from_json(&members[i], value, spec, err);
        if (rc)
            return rc;
    }
    return job_spec_check(spec, err);
}

int job_spec_from_json(const json_t *json, struct job_spec *spec, struct error *err)
{
    int rc;

    job_spec_init(spec);
    rc = object_from_json(json, spec, err);
    if (rc)
        job_spec_release(spec);
    return rc;
}
