#include "config/user_shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define BLANKS " \t"

struct entry {
    const char *name;
    size_t length;
    int64_t share;
};

/* Takes the next entry from the text; false: it is none. */
static bool next_entry(const char **text, struct entry *entry)
{
    size_t length = strcspn(*text, ",");
    const char *end = *text + length, *equals = memchr(*text, '=', length);
    char number[8];

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
    if ((size_t)(end - equals) >= sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(end - equals), equals);
    return parse_integer(number, 1, USER_SHARES_MOST, &entry->share, NULL) == 0;
}

bool user_shares_are_allowed(const char *text)
{
    struct entry entry;

    while (*text)
        if (!next_entry(&text, &entry))
            return false;
    return true;
}

uint32_t user_shares_find(const char *text, uint32_t uid, const char *user)
{
    uint32_t share = 0;
    struct entry entry;
    char number[16];

    snprintf(number, sizeof number, "%" PRIu32, uid);
    while (text && *text && next_entry(&text, &entry))
        if ((user && strlen(user) == entry.length && strncmp(user, entry.name, entry.length) == 0) ||
            (strlen(number) == entry.length && strncmp(number, entry.name, entry.length) == 0))
            share = (uint32_t)entry.share;
    return share;
}
