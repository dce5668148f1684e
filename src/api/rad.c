#include "api/rad.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_signal.h"
#include "api/lines.h"
#include "api/words.h"
#include "base/memory.h"
#include "base/units.h"
#include "core/record.h"
#include "estimate/program/lower.h"

#define MAX_BATCH_SIZE (INT64_C(1) << 40)

/* A line that says something: trimmed, and no comment. */
struct rad_line {
    char *text; /* owned */
    unsigned number;
};

struct rad {
    struct lines lines; /* names file and line in messages */
    struct rad_line *items;
    size_t count;
    struct job_spec *spec;
    struct error *err;
};

typedef int set_value(struct rad *rad, const char *value);

static int set_model(struct rad *rad, const char *value)
{
    if (!*value)
        return lines_error(&rad->lines, rad->err, "model: name the model summary file");
    rad->spec->summary_name = xstrdup(value);
    return 0;
}

static int set_capture(struct rad *rad, const char *value)
{
    if (!*value)
        return lines_error(&rad->lines, rad->err, "capture: name the file that carma.capture wrote");
    rad->spec->capture_name = xstrdup(value);
    return 0;
}

static int set_optimizer(struct rad *rad, const char *value)
{
    enum optimizer ignored;
    struct error inner;

    if (optimizer_parse(value, &ignored, &inner))
        return lines_error(&rad->lines, rad->err, "%s", inner.text);
    rad->spec->optimizer = xstrdup(value);
    return 0;
}

static int set_precision(struct rad *rad, const char *value)
{
    enum precision ignored;
    struct error inner;

    if (precision_parse(value, &ignored, &inner))
        return lines_error(&rad->lines, rad->err, "%s", inner.text);
    rad->spec->precision = xstrdup(value);
    return 0;
}

static int set_dataset(struct rad *rad, const char *value)
{
    rad->spec->dataset = xstrdup(value);
    return 0;
}

static int set_policy_word(struct rad *rad, const char *value)
{
    rad->spec->policy_word = xstrdup(value);
    return 0;
}

static int set_integer(struct rad *rad, const char *name, const char *value, int64_t high, int64_t *to)
{
    struct error inner;

    if (parse_integer(value, 1, high, to, &inner))
        return lines_error(&rad->lines, rad->err, "%s: %s", name, inner.text);
    return 0;
}

static int set_batch_size(struct rad *rad, const char *value)
{
    return set_integer(rad, "batch size", value, MAX_BATCH_SIZE, &rad->spec->batch_size);
}

static int set_gpus(struct rad *rad, const char *value)
{
    int64_t gpus;
    int rc = set_integer(rad, "number of GPUs", value, RECORD_MAX_GPUS, &gpus);

    if (!rc)
        rad->spec->gpus = (uint32_t)gpus;
    return rc;
}

static int set_gpu_memory(struct rad *rad, const char *value)
{
    struct error inner;

    if (parse_size(value, &rad->spec->gpu_memory_bytes, &inner))
        return lines_error(&rad->lines, rad->err, "gpu_memory: %s", inner.text);
    if (rad->spec->gpu_memory_bytes < 1 || rad->spec->gpu_memory_bytes > SPEC_MAX_GPU_MEMORY)
        return lines_error(&rad->lines, rad->err,
                           "gpu_memory '%.40s' is out of range: more than 0, at most %" PRId64 "T", value,
                           SPEC_MAX_GPU_MEMORY / TIB);
    return 0;
}

static int set_cpus(struct rad *rad, const char *value)
{
    return set_integer(rad, "cpus", value, SPEC_MAX_CPUS, &rad->spec->cpus);
}

/* The host's; a GPU's is gpu_memory. */
static int set_memory(struct rad *rad, const char *value)
{
    struct error inner;

    if (parse_size(value, &rad->spec->host_memory_bytes, &inner))
        return lines_error(&rad->lines, rad->err, "memory: %s", inner.text);
    if (rad->spec->host_memory_bytes < HOST_MEMORY_LEAST || rad->spec->host_memory_bytes > SPEC_MAX_GPU_MEMORY)
        return lines_error(&rad->lines, rad->err, "memory '%.40s' (of the host) is out of range: 16M to 1024T", value);
    return 0;
}

static int set_share(struct rad *rad, const char *value)
{
    if (strcmp(value, "streams") != 0 && strcmp(value, "mps") != 0)
        return lines_error(&rad->lines, rad->err, "share '%.40s': write streams or mps", value);
    rad->spec->share = xstrdup(value);
    return 0;
}

static int set_time(struct rad *rad, const char *value)
{
    struct error inner;

    if (job_time_parse(value, &rad->spec->time_limit_ns, &inner))
        return lines_error(&rad->lines, rad->err, "time: %s", inner.text);
    return 0;
}

static int set_signal(struct rad *rad, const char *value)
{
    struct error inner;

    if (job_signal_parse(value, &rad->spec->signal, &rad->spec->signal_before_ns, &inner))
        return lines_error(&rad->lines, rad->err, "signal: %s", inner.text);
    return 0;
}

static int set_requeue(struct rad *rad, const char *value)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return lines_error(&rad->lines, rad->err, "requeue '%.40s': write yes or no", value);
    rad->spec->requeue = strcmp(value, "yes") == 0;
    return 0;
}

static int set_policy(struct rad *rad, const char *value)
{
    if (strcmp(value, "exclusive") != 0 && strcmp(value, "collocation") != 0)
        return lines_error(&rad->lines, rad->err, "policy '%.40s': write exclusive or collocation", value);
    rad->spec->exclusive = strcmp(value, "exclusive") == 0;
    return 0;
}

static const struct {
    const char *name;
    set_value *set;
} keys[] = {
    {"model", set_model},           {"capture", set_capture}, {"batch_size", set_batch_size},
    {"optimizer", set_optimizer},   {"precision", set_precision}, {"policy", set_policy},
    {"gpus", set_gpus},             {"gpu_memory", set_gpu_memory}, {"share", set_share},
    {"cpus", set_cpus},             {"memory", set_memory},
    {"time", set_time},             {"signal", set_signal},   {"requeue", set_requeue},
};

enum { KEY_NONE = -1, KEY_UNKNOWN = -2 };

/* Which key the line gives a value, and where the value begins. A word that carma does not know counts as a key where
 * it is written like one ("word: ..."), so that a misspelt key is not taken for a command. */
static int find_key(const char *line, const char **value)
{
    size_t length = 0, after;

    while (isalnum((unsigned char)line[length]) || line[length] == '_')
        length++;
    after = length + strspn(line + length, " \t");
    if (length == 0 || line[after] != ':')
        return KEY_NONE;
    *value = line + after + 1 + strspn(line + after + 1, " \t");
    for (size_t i = 0; i < array_size(keys); i++)
        if (strlen(keys[i].name) == length && memcmp(keys[i].name, line, length) == 0)
            return (int)i;
    return after == length && (!line[after + 1] || strchr(" \t", line[after + 1])) ? KEY_UNKNOWN : KEY_NONE;
}

/* A value up to its comment, which begins at a # after a blank. */
static char *without_comment(const char *value)
{
    size_t length = strlen(value);

    for (size_t i = 0; i < length; i++)
        if (value[i] == '#' && (i == 0 || value[i - 1] == ' ' || value[i - 1] == '\t'))
            length = i;
    while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    return xstrndup(value, length);
}

static int apply(struct rad *rad, set_value *set, const char *value)
{
    CLEANUP(free_ptr) char *bare = without_comment(value);

    return set(rad, bare);
}

/* 1: the line was `conda activate ENV`; 0: it is none. */
static int take_conda(struct rad *rad, const char *line)
{
    CLEANUP(spec_strings_release) struct spec_strings words = {0};
    struct error inner;

    if (words_split(line, &words, &inner) || words.count < 2 || strcmp(words.items[0], "conda") != 0 ||
        strcmp(words.items[1], "activate") != 0)
        return 0;
    if (words.count != 3 || !*words.items[2] || *words.items[2] == '-')
        return lines_error(&rad->lines, rad->err, "write `conda activate ENVIRONMENT`, the environment's name alone");
    if (rad->spec->conda_environment)
        return lines_error(&rad->lines, rad->err, "a second `conda activate`: keep one");
    rad->spec->conda_environment = xstrdup(words.items[2]);
    return 1;
}

static void set_command(struct rad *rad, const char *line)
{
    spec_strings_add(&rad->spec->command, "/bin/sh");
    spec_strings_add(&rad->spec->command, "-c");
    spec_strings_add(&rad->spec->command, line); /* the shell knows what in it is a comment */
}

static int parse_keyed(struct rad *rad)
{
    unsigned seen[array_size(keys)] = {0};

    for (size_t i = 0; i < rad->count; i++) {
        const char *line = rad->items[i].text, *value;
        int key = find_key(line, &value), rc;

        rad->lines.line = rad->items[i].number;
        if (key == KEY_UNKNOWN)
            return lines_error(&rad->lines, rad->err,
                               "unknown key '%.*s': write model, capture, batch_size, optimizer, precision, policy, "
                               "share, time, signal, requeue, gpus, gpu_memory, cpus or memory (of the host)",
                               (int)strcspn(line, ":") < 40 ? (int)strcspn(line, ":") : 40, line);
        if (key >= 0) {
            if (seen[key])
                return lines_error(&rad->lines, rad->err, "%s is already given on line %u: remove one", keys[key].name,
                                   seen[key]);
            seen[key] = rad->items[i].number;
            rc = apply(rad, keys[key].set, value);
            if (rc)
                return rc;
            continue;
        }
        rc = take_conda(rad, line);
        if (rc < 0)
            return rc;
        if (rc > 0)
            continue;
        if (rad->spec->command.count)
            return lines_error(&rad->lines, rad->err, "a second command line: join them with && or remove one");
        set_command(rad, line);
    }
    if (!rad->spec->command.count)
        return error_set(rad->err, EINVAL, "%s: no command line: add the command that trains the model",
                         rad->lines.file);
    return 0;
}

static int set_recorded(struct rad *rad, const char *value, enum spec_recorded which)
{
    char *end;
    double mib = strspn(value, "0123456789.") == strlen(value) && *value ? strtod(value, &end) : -1;

    if (mib < 0 || *end)
        return lines_error(&rad->lines, rad->err, "%s memory '%.40s' is not a number of MiB",
                           spec_recorded_names[which], value);
    if (!(mib * (double)MIB >= 1 && mib * (double)MIB <= (double)SPEC_MAX_GPU_MEMORY))
        return lines_error(&rad->lines, rad->err, "%s memory %.40s MiB is out of range: more than 0, at most %" PRId64,
                           spec_recorded_names[which], value, SPEC_MAX_GPU_MEMORY / MIB);
    rad->spec->recorded_bytes[which] = (int64_t)(mib * (double)MIB + 0.5);
    return 0;
}

static int parse_positional(struct rad *rad)
{
    static const struct {
        const char *name;
        set_value *set; /* NULL: handled by hand */
    } places[] = {
        {"`conda activate ENVIRONMENT`", NULL}, {"the command line", NULL},
        {"the model summary file", set_model},  {"the dataset", set_dataset},
        {"the batch size", set_batch_size},     {"the policy word", set_policy_word},
        {"the number of GPUs", set_gpus},
    };
    const size_t fixed = array_size(places), most = fixed + SPEC_RECORDED_COUNT;

    for (size_t i = 0; i < rad->count; i++) {
        const char *line = rad->items[i].text;
        int rc = 0;

        rad->lines.line = rad->items[i].number;
        if (i == 0) {
            rc = take_conda(rad, line);
            if (rc == 0)
                return lines_error(&rad->lines, rad->err, "'%.40s': the first line of a job file without keys is %s",
                                   line, places[0].name);
            rc = rc > 0 ? 0 : rc;
        } else if (i == 1) {
            set_command(rad, line);
        } else if (i < fixed) {
            rc = apply(rad, places[i].set, line);
        } else if (i < most) {
            CLEANUP(free_ptr) char *bare = without_comment(line);
            rc = set_recorded(rad, bare, (enum spec_recorded)(i - fixed));
        } else {
            rc = lines_error(&rad->lines, rad->err, "'%.40s': nothing is expected after the GPUMemNet estimate", line);
        }
        if (rc)
            return rc;
    }
    if (rad->count < fixed)
        return error_set(rad->err, EINVAL, "%s:%u: the job file ends before %s: add it", rad->lines.file,
                         rad->count ? rad->lines.line : 1, places[rad->count].name);
    return 0;
}

/* Collects the lines that say something. */
static int read_lines(struct rad *rad)
{
    const char *begin;
    size_t count, capacity = 0;

    while (lines_next(&rad->lines, &begin, &count)) {
        CLEANUP(free_ptr) char *copy = NULL;

        if (lines_copy(&rad->lines, begin, count, &copy, rad->err))
            return -EINVAL;
        begin = copy + strspn(copy, " \t");
        if (!*begin || *begin == '#')
            continue;
        count = strlen(begin);
        while (begin[count - 1] == ' ' || begin[count - 1] == '\t')
            count--;
        array_reserve(rad->items, capacity, rad->count + 1);
        rad->items[rad->count++] = (struct rad_line){xstrndup(begin, count), rad->lines.line};
    }
    return 0;
}

static bool is_keyed(const struct rad *rad)
{
    const char *value;

    for (size_t i = 0; i < rad->count; i++)
        if (find_key(rad->items[i].text, &value) != KEY_NONE)
            return true;
    return false;
}

static char *job_name(const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    size_t length = strlen(name);

    if (length > 4 && strcmp(name + length - 4, ".rad") == 0)
        length -= 4;
    return xstrndup(name, length);
}

int rad_parse(const char *file, const char *text, size_t length, struct job_spec *spec, struct error *err)
{
    struct rad rad = {.lines = lines_of(file, text, length), .spec = spec, .err = err};
    int rc;

    job_spec_init(spec);
    if (length > RAD_MAX_BYTES)
        return error_set(err, EFBIG, "%s: too large for a job file: %zu bytes, at most %zu", file, length,
                         RAD_MAX_BYTES);
    rc = read_lines(&rad);
    if (!rc)
        rc = is_keyed(&rad) ? parse_keyed(&rad) : parse_positional(&rad);
    for (size_t i = 0; i < rad.count; i++)
        free(rad.items[i].text);
    free(rad.items);
    if (rc)
        job_spec_release(spec);
    else
        spec->name = job_name(file);
    return rc;
}
