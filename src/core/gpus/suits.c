/* How this file works: a type is looked through from its beginning each time, alternative by alternative, term by term
 * (next_term); term_holds() has a line for each kind of term. Nothing is kept between two questions: a type is at most
 * GPU_TYPE_SIZE bytes, and most jobs have none. */
#include "core/gpus/suits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"

enum comparison { CONTAINS, EQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW };

struct term {
    enum comparison comparison;
    uint32_t compute; /* 0: it is not about this */
    int64_t bytes;    /* 0: the same */
    const char *part; /* of the name, `length` bytes; CONTAINS */
    size_t length;
};

/* Slurm writes the blanks of a name as '_'. */
static char lower(char c)
{
    if (c == '_')
        return ' ';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool begins_with(const char *text, size_t room, const char *part, size_t length)
{
    size_t i = 0;

    while (i < length && i < room && lower(text[i]) == lower(part[i]))
        i++;
    return i == length;
}

static bool is_of_word(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
}

/* Words of it: an A10 is no A100. */
static bool contains(const char *text, const char *part, size_t length)
{
    size_t room = strlen(text);

    for (size_t i = 0; i + length <= room; i++)
        if ((i == 0 || !is_of_word(text[i - 1])) && !is_of_word(text[i + length]) &&
            begins_with(text + i, room - i, part, length))
            return true;
    return false;
}

static enum comparison take_comparison(const char **text, size_t *length)
{
    static const struct {
        const char *sign;
        enum comparison comparison;
    } signs[] = {{">=", AT_LEAST}, {"<=", AT_MOST}, {">", ABOVE}, {"<", BELOW}};

    for (size_t i = 0; i < array_size(signs); i++) {
        size_t of_sign = strlen(signs[i].sign);
        if (!begins_with(*text, *length, signs[i].sign, of_sign))
            continue;
        *text += of_sign;
        *length -= of_sign;
        return signs[i].comparison;
    }
    return CONTAINS;
}

/* "80", "90a": 0 where it is none. */
static uint32_t compute_of(const char *text, size_t length)
{
    uint32_t compute = 0;

    for (size_t i = 0; i < length; i++) {
        bool suffix = i + 1 == length && i >= 2 && (lower(text[i]) == 'a' || lower(text[i]) == 'f');
        if (!suffix && (text[i] < '0' || text[i] > '9' || i >= 3))
            return 0;
        compute = suffix ? compute : 10 * compute + (uint32_t)(text[i] - '0');
    }
    return length >= 2 ? compute : 0;
}

static int read_term(const char *text, size_t length, struct term *term, struct error *err)
{
    const char *whole = text;
    size_t of_whole = length;
    char size[32] = "";

    *term = (struct term){.comparison = take_comparison(&text, &length), .part = text, .length = length};
    if (length == 0)
        return error_set(err, EINVAL, "a term is empty: write it like a100, sm_80, '>=40G' or 'a100&>=80G|h100'");
    if (begins_with(text, length, "sm_", 3)) {
        term->compute = compute_of(text + 3, length - 3);
        if (term->comparison == CONTAINS)
            term->comparison = EQUAL;
        return term->compute ? 0
                             : error_set(err, EINVAL, "'%.*s' is not a compute capability: write it like sm_80",
                                         (int)of_whole, whole);
    }
    if (term->comparison == CONTAINS)
        return 0;
    if (length < sizeof size)
        memcpy(size, text, length);
    if (parse_size(size, &term->bytes, NULL) || term->bytes <= 0)
        return error_set(err, EINVAL, "'%.*s' compares with no size: write it like >=40G or >=sm_80", (int)of_whole,
                         whole);
    return 0;
}

/* The term at *text, up to a sign behind it, or the end; *text is behind that sign then. 0: it was the last one. */
static char next_term(const char **text, const char **begin, size_t *length)
{
    char sign;

    *begin = *text;
    *length = strcspn(*text, "&|");
    sign = (*text)[*length];
    *text += *length + (sign != '\0');
    return sign;
}

int gpu_type_check(const char *type, struct error *err)
{
    const char *begin, *text = type;
    size_t length;
    struct term term;
    char sign;

    if (strlen(type) >= GPU_TYPE_SIZE)
        return error_set(err, EINVAL, "gpu_type has %zu bytes, at most %d are possible: shorten it", strlen(type),
                         GPU_TYPE_SIZE - 1);
    do {
        sign = next_term(&text, &begin, &length);
        int rc = read_term(begin, length, &term, err);
        if (rc) {
            error_prefix(err, "gpu_type '%s'", type);
            return rc;
        }
    } while (sign);
    return 0;
}

/* `roughly`: nine tenths of it are enough. */
static bool compares(enum comparison comparison, int64_t has, int64_t asked, int64_t roughly)
{
    switch (comparison) {
    case AT_LEAST:
        return has >= roughly;
    case BELOW:
        return has < roughly;
    case AT_MOST:
        return has <= asked;
    case ABOVE:
        return has > asked;
    default:
        return has == asked;
    }
}

static bool term_holds(const struct term *term, const struct gpu *gpu)
{
    if (term->compute)
        return gpu->compute && compares(term->comparison, gpu->compute, term->compute, term->compute);
    if (term->bytes)
        return gpu->total_bytes && compares(term->comparison, gpu->total_bytes, term->bytes, term->bytes / 10 * 9);
    return contains(gpu->name, term->part, term->length);
}

static bool is_of_type(const char *type, const struct gpu *gpu)
{
    bool all = true;
    char sign;

    do {
        const char *begin;
        size_t length;
        struct term term;
        sign = next_term(&type, &begin, &length);
        all = all && read_term(begin, length, &term, NULL) == 0 && term_holds(&term, gpu);
        if (sign != '&' && all)
            return true;
        all = all || sign != '&';
    } while (sign);
    return false;
}

static bool is_excluded(const struct record_submitted *wants, const struct gpu *gpu)
{
    return gpu->number < GPU_EXCLUDED_MOST && wants->excluded_gpus >> gpu->number & 1;
}

bool gpu_suits(const struct record_submitted *wants, const struct gpu *gpu)
{
    return !is_excluded(wants, gpu) && (!*wants->gpu_type || is_of_type(wants->gpu_type, gpu));
}

bool gpu_may_suit(const struct record_submitted *wants, const struct gpu *gpu)
{
    return !is_excluded(wants, gpu) && !*gpu->name;
}

bool gpu_choosy(const struct record_submitted *wants)
{
    return *wants->gpu_type || wants->excluded_gpus;
}

void gpu_choice(const struct record_submitted *wants, struct strbuf *out)
{
    const char *before = *wants->gpu_type ? ", --exclude-gpu " : "--exclude-gpu ";

    if (*wants->gpu_type)
        strbuf_printf(out, "--gpu-type %s", wants->gpu_type);
    for (uint32_t i = 0; i < GPU_EXCLUDED_MOST; i++)
        if (wants->excluded_gpus >> i & 1) {
            strbuf_printf(out, "%s%" PRIu32, before, i);
            before = ",";
        }
}

static bool are_alike(const struct gpu *a, const struct gpu *b)
{
    return strcmp(a->name, b->name) == 0 && a->compute == b->compute && a->total_bytes == b->total_bytes;
}

void gpu_kinds(struct gpu *const *gpus, uint32_t count, struct strbuf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t alike = 0, before = 0;
        char memory[UNITS_TEXT];
        for (uint32_t k = 0; k < count; k++) {
            before += k < i && are_alike(gpus[k], gpus[i]);
            alike += are_alike(gpus[k], gpus[i]);
        }
        if (before)
            continue;
        strbuf_printf(out, "%s%" PRIu32 " x %s (%s", i ? ", " : "", alike, *gpus[i]->name ? gpus[i]->name : "unknown",
                      format_bytes(gpus[i]->total_bytes, memory));
        if (gpus[i]->compute)
            strbuf_printf(out, ", sm_%" PRIu32, gpus[i]->compute);
        strbuf_puts(out, ")");
    }
}
