#include "slurm/shared/size.h"

#include <stdlib.h>
#include <string.h>

bool size_parse(const char *text, bool bare, int64_t *bytes, const char **end)
{
    static const char units[] = "KMGT";
    if (*text < '0' || *text > '9')
        return false;
    char *after;
    double value = strtod(text, &after);
    if (memchr(text, 'x', (size_t)(after - text)) != NULL || memchr(text, 'e', (size_t)(after - text)) != NULL)
        return false;
    const char *unit = *after != '\0' ? strchr(units, *after & ~0x20) : NULL;
    if (unit != NULL) {
        after++;
        for (const char *at = units; at <= unit; at++)
            value *= 1024;
    } else if (!bare) {
        return false;
    }
    if ((end == NULL && *after != '\0') || value > 0x1p62)
        return false;
    *bytes = (int64_t)value;
    if (end != NULL)
        *end = after;
    return true;
}

size_t size_gres_prefix(const char *entry)
{
    return strncmp(entry, "gres", 4) == 0 && (entry[4] == ':' || entry[4] == '/') ? 5 : 0;
}

bool size_of_gres(const char *list, const char *name, int64_t *count)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        const char *entry = at + size_gres_prefix(at);
        if (strncmp(entry, name, length) != 0)
            continue;
        const char *end = entry + length;
        bool given = strncmp(end, "(CNT:", 5) == 0; /* to a job on one node */
        if (*end == ':' || given)
            return size_parse(end + (given ? 5 : 1), true, count, &end) &&
                   (given ? *end == ')' : *end == '\0' || *end == ',');
        if (*end == '\0' || *end == ',') {
            *count = 1;
            return true;
        }
    }
    return false;
}

struct counts counts_of_gres(const char *list)
{
    int64_t memory = 0, slots = 0;

    if (!size_of_gres(list, "gpumem", &memory) || !size_of_gres(list, "gpuslot", &slots) || memory < 1 || slots < 2)
        return (struct counts){0};
    return (struct counts){.memory_bytes = memory, .gpus = slots / 2, .guess = slots % 2 != 0};
}
