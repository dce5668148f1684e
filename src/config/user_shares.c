#include "config/user_shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define BLANKS " \t"

/* "name = value", up to a comma. */
struct entry {
    const char *name, *value;
    size_t length, value_length;
};

/* Takes the next entry from the text; false: it is none. */
static bool next_entry(const char **text, struct entry *entry)
{
    size_t length = strcspn(*text, ",");
    const char *end = *text + length, *equals = memchr(*text, '=', length);

    entry->name = *text + strspn(*text, BLANKS);
    *text = *end ? end + 1 : end;
    if (!equals || equals < entry->name)
        return false;
    entry->length = strcspn(entry->name, BLANKS "=");
    if (entry->length == 0 || entry->name + entry->length + strspn(entry->name + entry->length, BLANKS) != equals)
        return false;
    for (equals++; equals < end && strchr(BLANKS, *equals); equals++)
        ;
    while (end > equals && strchr(BLANKS, end[-1]))
        end--;
    entry->value = equals;
    entry->value_length = (size_t)(end - equals);
    return true;
}

static bool share_of(const struct entry *entry, int64_t *share)
{
    char number[8];

    if (entry->value_length >= sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)entry->value_length, entry->value);
    return parse_integer(number, 1, USER_SHARES_MOST, share, NULL) == 0;
}

bool user_shares_are_allowed(const char *text)
{
    struct entry entry;
    int64_t share;

    while (*text)
        if (!next_entry(&text, &entry) || !share_of(&entry, &share))
            return false;
    return true;
}

static bool is_text(const char *text, const char *start, size_t length)
{
    return text && strlen(text) == length && strncmp(text, start, length) == 0;
}

/* By name or number. */
static bool is_user(uint32_t uid, const char *user, const char *start, size_t length)
{
    char number[16];

    snprintf(number, sizeof number, "%" PRIu32, uid);
    return is_text(user, start, length) || is_text(number, start, length);
}

uint32_t user_shares_find(const char *text, uint32_t uid, const char *user)
{
    int64_t share = 0;
    struct entry entry;

    while (text && *text && next_entry(&text, &entry))
        if (is_user(uid, user, entry.name, entry.length) && !share_of(&entry, &share))
            return 0;
    return (uint32_t)share;
}

/* Of a group's users, which stand from `*at` on; false: there is none left. */
static bool next_user(const struct entry *entry, size_t *at, const char **user, size_t *length)
{
    if (*at > entry->value_length)
        return false;
    *user = entry->value + *at;
    for (*length = 0; *at + *length < entry->value_length && (*user)[*length] != '+'; ++*length)
        ;
    *at += *length + 1;
    return true;
}

bool user_groups_are_allowed(const char *text)
{
    struct entry entry;
    const char *user;
    size_t length;

    while (*text) {
        if (!next_entry(&text, &entry) || entry.length >= USER_GROUP_SIZE)
            return false;
        for (size_t at = 0; next_user(&entry, &at, &user, &length);)
            if (length == 0 || strcspn(user, BLANKS) < length)
                return false;
    }
    return true;
}

void user_groups_find(const char *text, uint32_t uid, const char *user, char group[static USER_GROUP_SIZE])
{
    const char *start;
    struct entry entry;
    size_t length;

    group[0] = '\0';
    while (text && *text && next_entry(&text, &entry))
        for (size_t at = 0; next_user(&entry, &at, &start, &length);)
            if (!*group && is_user(uid, user, start, length))
                snprintf(group, USER_GROUP_SIZE, "%.*s", (int)entry.length, entry.name);
}

uint32_t user_groups_share(const char *shares, const char *group)
{
    uint32_t share = 1;
    struct entry entry;
    int64_t given;

    while (shares && *shares && next_entry(&shares, &entry))
        if (entry.length > 1 && *entry.name == '@' && is_text(group, entry.name + 1, entry.length - 1) &&
            share_of(&entry, &given))
            share = (uint32_t)given;
    return share;
}
