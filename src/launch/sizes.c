#include "launch/sizes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

#define BYTES_MAX (INT64_C(1) << 62)

static const char *const sizes_words[] = {"Tried to allocate ", "trying to allocate ",
                                          "Failed to allocate request for ", "Out of memory allocating "};

static const char *find(struct span in, const char *what)
{
    return memmem(in.text, in.length, what, strlen(what));
}

static struct span after(struct span in, const char *what)
{
    const char *at = find(in, what);

    if (!at)
        return (struct span){0};
    at += strlen(what);
    return (struct span){at, (size_t)(in.text + in.length - at)};
}

/* "20.00 MiB", "2.55GiB", "33554432 bytes", "184549376B", "32.00M"; -1 for anything else. *used: characters read. */
static int64_t read_size(struct span in, size_t *used)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"bytes", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", GIB}, {"TiB", TIB},
                 {"B", 1},     {"K", KIB},   {"M", MIB},   {"G", GIB},   {"T", TIB}};
    char number[40];
    size_t digits = 0, at;
    double value;

    while (digits < in.length && digits < sizeof number - 1 &&
           (isdigit((unsigned char)in.text[digits]) || in.text[digits] == '.')) {
        number[digits] = in.text[digits];
        digits++;
    }
    number[digits] = '\0';
    if (digits == 0 || !isdigit((unsigned char)number[0]))
        return -1;
    at = digits;
    if (at < in.length && in.text[at] == ' ')
        at++;
    value = strtod(number, NULL);
    for (size_t i = 0; i < array_size(units); i++) {
        size_t size = strlen(units[i].name);
        if (in.length - at < size || memcmp(in.text + at, units[i].name, size) != 0)
            continue;
        if (at + size < in.length && isalnum((unsigned char)in.text[at + size]))
            continue;
        *used = at + size;
        if (units[i].bytes == 1 && !strchr(number, '.'))
            return strtoll(number, NULL, 10) < BYTES_MAX ? strtoll(number, NULL, 10) : -1;
        value *= (double)units[i].bytes;
        return value < (double)BYTES_MAX ? (int64_t)value : -1;
    }
    return -1;
}

/* The size after `words`; where an exact "(N bytes)" or "(NB)" follows it, that. */
static int64_t size_after(struct span line, const char *words)
{
    struct span rest = after(line, words);
    size_t used = 0, ignored;
    int64_t rough, exact = -1;

    if (!rest.text)
        return -1;
    rough = read_size(rest, &used);
    if (rough >= 0 && rest.length > used + 2 && memcmp(rest.text + used, " (", 2) == 0)
        exact = read_size((struct span){rest.text + used + 2, rest.length - used - 2}, &ignored);
    return exact >= 0 ? exact : rough;
}

/* "shape[32,1024,64,64] and type float" */
static int64_t tensor_size(struct span line)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {{"float", 4}, {"half", 2},  {"bfloat16", 2}, {"double", 8}, {"int64", 8},    {"int32", 4},
                 {"int16", 2}, {"uint8", 1}, {"int8", 1},     {"bool", 1},   {"complex64", 8}};
    struct span rest = after(line, "OOM when allocating tensor with shape[");
    int64_t size = 1, dimension = 0;
    bool digits = false;
    size_t at = 0;

    if (!rest.text)
        return -1;
    for (; at < rest.length; at++) {
        if (isdigit((unsigned char)rest.text[at])) {
            digits = true;
            if (__builtin_mul_overflow(dimension, 10, &dimension) ||
                __builtin_add_overflow(dimension, rest.text[at] - '0', &dimension))
                return -1;
        } else if (digits && (rest.text[at] == ',' || rest.text[at] == ']')) {
            if (__builtin_mul_overflow(size, dimension, &size))
                return -1;
            dimension = 0;
            digits = false;
            if (rest.text[at] == ']')
                break;
        } else {
            return -1;
        }
    }
    rest = after((struct span){rest.text + at, rest.length - at}, "] and type ");
    for (size_t i = 0; rest.text && i < array_size(types); i++) {
        size_t length = strlen(types[i].name);
        if (rest.length > length && memcmp(rest.text, types[i].name, length) == 0 && rest.text[length] == ' ')
            return __builtin_mul_overflow(size, types[i].bytes, &size) || size >= BYTES_MAX ? -1 : size;
    }
    return -1;
}

int64_t sizes_requested(struct span line)
{
    for (size_t i = 0; i < array_size(sizes_words); i++) {
        int64_t size = size_after(line, sizes_words[i]);
        if (size >= 0)
            return size;
    }
    return tensor_size(line);
}

/* "... of which 1.03 GiB is free", older "...; 5.06 MiB free; ..." */
int64_t sizes_free(struct span line)
{
    int64_t size = size_after(line, " of which ");
    struct span rest = line;
    size_t used = 0;

    if (size >= 0)
        return size;
    while ((rest = after(rest, "; ")).text) {
        size = read_size(rest, &used);
        if (size >= 0 && rest.length >= used + 6 && memcmp(rest.text + used, " free;", 6) == 0)
            return size;
    }
    return -1;
}

/* "Process 4711 has 21.07 GiB memory in use.", as often as there are others. */
uint32_t sizes_tenants(struct span line, struct classify_tenant tenants[static CLASSIFY_MAX_TENANTS])
{
    uint32_t count = 0;

    while ((line = after(line, "Process ")).text && count < CLASSIFY_MAX_TENANTS) {
        struct classify_tenant tenant = {0};
        struct span rest = line;
        size_t used = 0;
        while (rest.length && isdigit((unsigned char)*rest.text) && tenant.pid <= (INT32_MAX - 9) / 10) {
            tenant.pid = tenant.pid * 10 + (*rest.text - '0');
            rest = (struct span){rest.text + 1, rest.length - 1};
        }
        if (!tenant.pid || rest.length < 5 || memcmp(rest.text, " has ", 5) != 0)
            continue;
        rest = (struct span){rest.text + 5, rest.length - 5};
        tenant.used_bytes = read_size(rest, &used);
        if (tenant.used_bytes >= 0 && rest.length - used >= 14 && memcmp(rest.text + used, " memory in use", 14) == 0)
            tenants[count++] = tenant;
    }
    return count;
}
