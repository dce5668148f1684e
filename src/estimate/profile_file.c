/* The file form of a machine profile: `key = value` lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/units.h"
#include "estimate/profile.h"

enum kind { TEXT, SIZE, COUNT };

#define MEMBER(NAME) offsetof(struct machine_profile, NAME), sizeof(((struct machine_profile *)0)->NAME)

static const struct key {
    const char *name;
    enum kind kind;
    bool required;
    size_t offset, size;
    int64_t low, high;
} keys[] = {
    {"name", TEXT, false, MEMBER(name), 0, 0},
    {"gpu", TEXT, true, MEMBER(gpu), 0, 0},
    {"source", TEXT, false, MEMBER(source), 0, 0},
    {"context", SIZE, true, MEMBER(context_bytes), 0, 64 * GIB},
    {"cudnn", SIZE, true, MEMBER(cudnn_bytes), 0, 64 * GIB},
    {"cublas_workspace", SIZE, false, MEMBER(cublas_workspace_bytes), 0, 4 * GIB},
    {"memory", SIZE, true, MEMBER(memory_bytes), 256 * MIB, 16 * TIB},
    {"sm_count", COUNT, false, MEMBER(sm_count), 1, 10000},
    {"sm_clock_mhz", COUNT, false, MEMBER(sm_clock_mhz), 1, 100000},
    {"bandwidth_gbps", COUNT, false, MEMBER(bandwidth_gbps), 1, 1000000},
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

#define LINE_MAX_BYTES 300

struct reader {
    const char *file;
    unsigned line;
    bool seen[KEY_COUNT];
};

static char *trim(char *text)
{
    size_t length;

    while (*text == ' ' || *text == '\t')
        text++;
    length = strlen(text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t' || text[length - 1] == '\r'))
        text[--length] = '\0';
    return text;
}

static int bad_line(const struct reader *reader, struct error *err, const char *text)
{
    return error_set_at(err, reader->file, reader->line, "%s", text);
}

static int set_text(const struct key *key, const char *value, char *member, struct error *err)
{
    size_t length = strlen(value);

    if (length == 0 || length >= key->size)
        return error_set(err, EINVAL, "%s: %zu characters: give 1 to %zu", key->name, length, key->size - 1);
    memcpy(member, value, length + 1);
    return 0;
}

static int set_number(const struct key *key, const char *value, void *member, struct error *err)
{
    int64_t number;
    int rc;

    if (key->kind == COUNT) {
        if ((rc = parse_integer(value, key->low, key->high, &number, err))) {
            error_prefix(err, "%s", key->name);
            return rc;
        }
        *(int32_t *)member = (int32_t)number;
        return 0;
    }
    if ((rc = parse_size(value, &number, err))) {
        error_prefix(err, "%s", key->name);
        return rc;
    }
    if (number < key->low || number > key->high) {
        char low[UNITS_TEXT], high[UNITS_TEXT];
        return error_set(err, EINVAL, "%s: '%.40s' is out of range: %s to %s", key->name, value,
                         format_bytes(key->low, low), format_bytes(key->high, high));
    }
    *(int64_t *)member = number;
    return 0;
}

static int set_key(struct reader *reader, struct machine_profile *profile, const char *name, const char *value,
                   struct error *err)
{
    struct error inner;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        void *member = (char *)profile + keys[i].offset;
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (reader->seen[i])
            return error_set_at(err, reader->file, reader->line, "%s is set twice: remove one", name);
        reader->seen[i] = true;
        if (keys[i].kind == TEXT ? set_text(&keys[i], value, member, &inner)
                                 : set_number(&keys[i], value, member, &inner))
            return bad_line(reader, err, inner.text);
        return 0;
    }
    return error_set(err, EINVAL, "%s:%u: unknown key '%.40s': remove it or correct its name", reader->file,
                     reader->line, name);
}

static int read_line(struct reader *reader, struct machine_profile *profile, const char *begin, size_t count,
                     struct error *err)
{
    char line[LINE_MAX_BYTES + 1], *equals, *text;

    if (count > LINE_MAX_BYTES)
        return error_set(err, EINVAL, "%s:%u: the line is longer than %d bytes: shorten it", reader->file, reader->line,
                         LINE_MAX_BYTES);
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)begin[i];
        if ((c < 0x20 && c != '\t' && !(c == '\r' && i + 1 == count)) || c >= 0x7f)
            return bad_line(reader, err, "a character that is not plain text: this is not a machine profile");
    }
    memcpy(line, begin, count);
    line[count] = '\0';
    text = trim(line);
    if (!*text || *text == '#' || *text == ';')
        return 0;
    equals = strchr(text, '=');
    if (!equals)
        return bad_line(reader, err, "neither `key = value` nor a comment");
    *equals = '\0';
    return set_key(reader, profile, trim(text), trim(equals + 1), err);
}

/* "dir/box.profile" -> "box" */
static void name_by_file(struct machine_profile *profile, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    if (length >= sizeof profile->name)
        length = sizeof profile->name - 1;
    memcpy(profile->name, base, length);
    profile->name[length] = '\0';
}

static int complete(const struct reader *reader, struct machine_profile *profile, struct error *err)
{
    const struct machine_profile *known;

    for (size_t i = 0; i < KEY_COUNT; i++)
        if (keys[i].required && !reader->seen[i])
            return error_set(err, EINVAL, "%s:%u: the file ends without '%s': add it", reader->file, reader->line,
                             keys[i].name);
    if (profile->context_bytes + profile->cudnn_bytes >= profile->memory_bytes)
        return error_set(err, EINVAL, "%s:%u: context and cudnn leave nothing of memory: correct them", reader->file,
                         reader->line);
    if (!*profile->name)
        name_by_file(profile, reader->file);
    known = machine_profile_find(profile->gpu);
    for (size_t i = 0; known && i < KEY_COUNT; i++)
        if (!reader->seen[i] && keys[i].kind != TEXT)
            memcpy((char *)profile + keys[i].offset, (const char *)known + keys[i].offset, keys[i].size);
    return 0;
}

int machine_profile_read(struct machine_profile *profile, const char *name, const char *text, size_t length,
                         struct error *err)
{
    struct reader reader = {.file = name};
    const char *at = text, *end = text + length;
    int rc;

    *profile = (struct machine_profile){.cublas_workspace_bytes = 8320 * KIB};
    if (length > MACHINE_PROFILE_MAX_BYTES)
        return error_set(err, EINVAL, "%s: more than %zu bytes: this is not a machine profile", name,
                         MACHINE_PROFILE_MAX_BYTES);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        reader.line++;
        if ((rc = read_line(&reader, profile, at, (size_t)(stop - at), err)))
            return rc;
        at = newline ? newline + 1 : end;
    }
    return complete(&reader, profile, err);
}
