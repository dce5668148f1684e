#include "api/rad.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/job_field.h"
#include "api/lines.h"
#include "api/spec.h"
#include "api/words.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/units.h"

/* A line that says something: shrunk, and no comment. */
struct rad_line {
    char *text; /* owned */
    unsigned number;
};

enum line_kind { LINE_OTHER, LINE_KEY, LINE_UNKNOWN };

struct rad {
    struct lines lines; /* names file and line in messages */
    struct rad_line *items;
    size_t count;
    struct job_spec *spec;
    struct error *err;
};

/* The two keys of the thesis's job files that are not options of `carma submit`. */
static const struct {
    const char *key;
    const char *field;
} keys[] = {{"model", "summary_name"}, {"policy", "exclusive"}};

static const struct job_field *field_of(const char *key, size_t length)
{
    for (size_t i = 0; i < array_size(keys); i++)
        if (strlen(keys[i].key) == length && memcmp(keys[i].key, key, length) == 0)
            return job_field_find(keys[i].field);
    return job_field_of_key(key, length);
}

/* Which field the line gives a value, the length of its key, and where the value begins in it. A word that carma does
 * not know counts as a key where it is written like one ("word: ..."). Otherwise a misspelt key would be taken for a
 * command. */
static enum line_kind find_key(const char *line, const struct job_field **field, size_t *length, const char **value)
{
    size_t after;

    *length = 0;
    while (isalnum((unsigned char)line[*length]) || line[*length] == '_')
        ++*length;
    after = *length + strspn(line + *length, " \t");
    if (*length == 0 || line[after] != ':')
        return LINE_OTHER;
    *value = line + after + 1 + strspn(line + after + 1, " \t");
    *field = field_of(line, *length);
    if (*field)
        return LINE_KEY;
    return after == *length && (!line[after + 1] || strchr(" \t", line[after + 1])) ? LINE_UNKNOWN : LINE_OTHER;
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

static int set(struct rad *rad, const struct job_field *field, const char *key, const char *value)
{
    CLEANUP(free_ptr) char *bare = without_comment(value);
    const char *text = bare;
    struct error inner;

    if (!*text)
        return lines_error(&rad->lines, rad->err, "%s: nothing stands behind it: fill it in or leave it out", key);
    if (strcmp(key, "policy") == 0) {
        if (strcmp(text, "exclusive") != 0 && strcmp(text, "collocation") != 0)
            return lines_error(&rad->lines, rad->err, "policy '%.40s': write exclusive or collocation", text);
        text = strcmp(text, "exclusive") == 0 ? "yes" : "no";
    }
    return job_field_parse(field, key, text, rad->spec, &inner) ? lines_error(&rad->lines, rad->err, "%s", inner.text)
                                                                : 0;
}

/* 1: the line was `conda activate ENV`; 0: it was not. */
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
    spec_strings_add(&rad->spec->command, line); /* the shell knows where its comments are */
}

static int take_key(struct rad *rad, const struct job_field *field, const char *key, const char *value, unsigned *seen)
{
    if (*seen)
        return lines_error(&rad->lines, rad->err, "%s is already given on line %u: remove one", key, *seen);
    *seen = rad->lines.line;
    return set(rad, field, key, value);
}

static int unknown_key(struct rad *rad, const char *key)
{
    CLEANUP(free_ptr) char *question = NULL, *dashed = xstrdup(key);
    struct nearest nearest;

    for (char *c = dashed; (c = strchr(c, '_'));)
        *c = '-';
    nearest_begin(&nearest, dashed);
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option)
            nearest_try(&nearest, job_fields[i].option);
    question = nearest_question(&nearest, "");
    for (char *c = question; (c = strchr(c, '-'));)
        *c = '_';
    return lines_error(&rad->lines, rad->err, "unknown key '%s'%s", key,
                       *question ? question
                                 : ": write model, policy, or an option of carma submit with _ for - (gpu_memory)");
}

static int parse_keyed(struct rad *rad)
{
    CLEANUP(free_ptr) unsigned *seen = xcalloc(job_field_count, sizeof *seen); /* the line of each field; 0: none */

    for (size_t i = 0; i < rad->count; i++) {
        const char *line = rad->items[i].text, *value;
        const struct job_field *field;
        size_t length;
        enum line_kind kind = find_key(line, &field, &length, &value);
        CLEANUP(free_ptr) char *key = xstrndup(line, length < 40 ? length : 40);
        int rc;

        rad->lines.line = rad->items[i].number;
        if (kind == LINE_UNKNOWN)
            return unknown_key(rad, key);
        rc = kind == LINE_KEY ? take_key(rad, field, key, value, &seen[field - job_fields]) : take_conda(rad, line);
        if (rc < 0)
            return rc;
        if (kind == LINE_KEY || rc > 0)
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
        const char *field; /* NULL: handled by hand */
    } places[] = {
        {"`conda activate ENVIRONMENT`", NULL},
        {"the command line", NULL},
        {"the model summary file", "summary_name"},
        {"the dataset", "dataset"},
        {"the batch size", "batch_size"},
        {"the policy word", "policy_word"},
        {"the number of GPUs", "gpus"},
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
            rc = set(rad, job_field_find(places[i].field), places[i].name, line);
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
    const struct job_field *field;
    const char *value;
    size_t length;

    for (size_t i = 0; i < rad->count; i++)
        if (find_key(rad->items[i].text, &field, &length, &value) != LINE_OTHER)
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
    else if (!spec->name)
        spec->name = job_name(file);
    return rc;
}
