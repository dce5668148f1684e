#include "config/share.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

/* The next word of *at, without the blanks around it; *at is then behind the comma that ends it, or NULL. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t"), *comma = strchr(word, ','), *end;

    if (comma)
        *comma = '\0';
    *at = comma ? comma + 1 : NULL;
    for (end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t'); end--)
        end[-1] = '\0';
    return word;
}

/* *domain: MPS_DOMAIN_COUNT, or how MPS was called before. */
static int parse_way(const char *text, enum share_mode *mode, uint32_t *domain)
{
    uint32_t named = *domain;

    *mode = share_name_find(text, &named);
    if (*mode == SHARE_ANY || *mode == SHARE_MODE_COUNT || (*domain != MPS_DOMAIN_COUNT && *domain != named))
        return -EINVAL;
    *domain = named;
    return 0;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static int parse_override(const char *word, struct share_override *override, uint32_t *domain)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;

    if (length == 0 || length >= sizeof override->which)
        return -EINVAL;
    memcpy(override->which, word, length);
    override->which[length] = '\0';
    if (!is_number(override->which) && strncmp(word, "GPU-", 4) != 0 && strncmp(word, "MIG-", 4) != 0)
        return -EINVAL;
    return parse_way(equals + 1, &override->mode, domain);
}

/* The last one names a GPU as one before does, for another mode. */
static bool contradicts(const struct share_setting *setting)
{
    const struct share_override *last = &setting->overrides[setting->count - 1];

    for (const struct share_override *one = setting->overrides; one < last; one++)
        if (strcmp(one->which, last->which) == 0 && one->mode != last->mode)
            return true;
    return false;
}

int share_setting_parse(const char *text, struct share_setting *setting, uint32_t *domain)
{
    CLEANUP(free_ptr) char *words = xstrdup(text);
    uint32_t named = MPS_DOMAIN_COUNT;
    struct share_setting parsed = {0};
    char *at = words;

    if (parse_way(next_word(&at), &parsed.mode, &named) != 0)
        return -EINVAL;
    while (at)
        if (parsed.count == array_size(parsed.overrides) ||
            parse_override(next_word(&at), &parsed.overrides[parsed.count++], &named) != 0 || contradicts(&parsed))
            return -EINVAL;
    *setting = parsed;
    if (named != MPS_DOMAIN_COUNT)
        *domain = named;
    return 0;
}

bool share_override_names(const struct share_override *override, uint32_t number, const char *uuid)
{
    int64_t named;

    return is_number(override->which)
               ? parse_integer(override->which, 0, UINT32_MAX, &named, NULL) == 0 && named == number
               : strncmp(uuid, override->which, strlen(override->which)) == 0;
}

enum share_mode share_setting_of(const struct share_setting *setting, uint32_t number, const char *uuid)
{
    enum share_mode mode = setting->mode;

    for (size_t i = 0; i < setting->count; i++)
        if (share_override_names(&setting->overrides[i], number, uuid))
            mode = setting->overrides[i].mode;
    return mode;
}

bool share_setting_names(const struct share_setting *setting, enum share_mode mode)
{
    for (size_t i = 0; i < setting->count; i++)
        if (setting->overrides[i].mode == mode)
            return true;
    return setting->mode == mode;
}
