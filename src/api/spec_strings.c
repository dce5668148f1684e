#include "api/spec_strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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
