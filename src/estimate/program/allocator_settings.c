#include "estimate/program/allocator_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SPLIT_MIB 20 /* PyTorch's large segments: it refuses less */
#define MOST_SPLIT_MIB  (INT64_C(1) << 20)
#define MOST_WHOLE      (INT64_C(1) << 40)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_of_a_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Of a decimal number that begins the text, in thousandths; -1: none does. Larger ones than MOST_WHOLE are that. */
static int64_t thousandths(const char *text)
{
    int64_t whole = 0, part = 0, unit = 1000;

    if (!is_digit(*text) && *text != '.')
        return -1;
    for (; is_digit(*text); text++)
        whole = whole < MOST_WHOLE ? whole * 10 + (*text - '0') : MOST_WHOLE;
    if (*text == '.')
        for (text++; is_digit(*text) && unit > 1; text++)
            part += (*text - '0') * (unit /= 10);
    return whole * 1000 + part + (unit == 1 && *text >= '5' && is_digit(*text));
}

/* Behind the last "NAME:", or NULL: what stands later in a script counts. */
static const char *value_of(const char *text, const char *name)
{
    const char *found = NULL;

    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const char *value = at + strlen(name);
        value += strspn(value, " ");
        if (*value == ':' && (at == text || !(is_of_a_word(at[-1]) || at[-1] == '_')))
            found = value + 1 + strspn(value + 1, " ");
    }
    return found;
}

static bool is_word(const char *value, const char *word)
{
    size_t length = strlen(word);

    return strncmp(value, word, length) == 0 && !is_of_a_word(value[length]);
}

/* "0.8" is 800. */
static void read_share(const char *text, const char *name, int32_t *permille)
{
    const char *value = value_of(text, name);
    int64_t share = value ? thousandths(value) : -1;

    if (share > 0 && share <= 1000)
        *permille = (int32_t)share;
}

void allocator_settings_read(struct allocator_settings *settings, const char *text)
{
    const char *value = value_of(text, "expandable_segments");
    int64_t mib;

    if (value)
        settings->expandable = is_word(value, "True");
    if ((value = value_of(text, "backend")) && is_word(value, "cudaMallocAsync")) /* a script has other backends, too */
        settings->driver = true;
    if ((value = value_of(text, "max_split_size_mb"))) {
        mib = thousandths(value) / 1000;
        if (mib > LEAST_SPLIT_MIB && mib <= MOST_SPLIT_MIB)
            settings->unsplit_bytes = mib << 20;
    }
    read_share(text, "per_process_memory_fraction", &settings->most_permille);
    read_share(text, "garbage_collection_threshold", &settings->collects_permille);
}

bool allocator_settings_usual(const struct allocator_settings *settings)
{
    return !settings->driver && !settings->unsplit_bytes && !settings->most_permille;
}

const char *allocator_settings_text(const struct allocator_settings *settings, char text[ALLOCATOR_SETTINGS_TEXT])
{
    int length = 0;

    text[0] = '\0';
    if (settings->expandable)
        length += snprintf(text + length, ALLOCATOR_SETTINGS_TEXT - (size_t)length, ",expandable_segments:True");
    if (settings->driver)
        length += snprintf(text + length, ALLOCATOR_SETTINGS_TEXT - (size_t)length, ",backend:cudaMallocAsync");
    if (settings->unsplit_bytes)
        length += snprintf(text + length, ALLOCATOR_SETTINGS_TEXT - (size_t)length, ",max_split_size_mb:%" PRId64,
                           settings->unsplit_bytes >> 20);
    if (settings->most_permille)
        length += snprintf(text + length, ALLOCATOR_SETTINGS_TEXT - (size_t)length, ",per_process_memory_fraction:%.3f",
                           settings->most_permille / 1000.0);
    if (settings->collects_permille)
        snprintf(text + length, ALLOCATOR_SETTINGS_TEXT - (size_t)length, ",garbage_collection_threshold:%.3f",
                 settings->collects_permille / 1000.0);
    memmove(text, text + (text[0] != '\0'), strlen(text) + (text[0] == '\0')); /* without the first comma */
    return text;
}
