#include "slurm/agent/counts.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "slurm/shared/size.h"

bool counts_property(const char *line, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);

    for (const char *at = strstr(line, name); at; at = strstr(at + 1, name)) {
        size_t wide;

        if ((at > line && at[-1] != ' ') || at[length] != '=')
            continue;
        wide = strcspn(at + length + 1, " \n");
        if (wide >= size)
            return false;
        snprintf(value, size, "%.*s", (int)wide, at + length + 1);
        return true;
    }
    return false;
}

bool counts_read_node(const char *list, int64_t gpus, struct counts_node *node)
{
    int64_t memory, big, sm = 0;

    if (gpus < 1 || !size_of_gres(list, "gpumem", &memory))
        return false;
    size_of_gres(list, "gpusm", &sm);
    *node = (struct counts_node){
        .gpus = gpus, .whole_bytes = memory / gpus, .has_big = size_of_gres(list, "gpubig", &big), .sm = sm / gpus};
    return true;
}

/* The next entry of a list, without its prefix; its length in *wide. NULL at the end. */
static const char *next_entry(const char **at, size_t *wide)
{
    const char *entry = *at;

    if (!entry || !*entry)
        return NULL;
    *wide = strcspn(entry, ",");
    *at = entry[*wide] ? entry + *wide + 1 : NULL;
    size_t prefix = size_gres_prefix(entry);
    *wide -= prefix;
    return entry + prefix;
}

static bool is_named(const char *entry, size_t wide, const char *name)
{
    size_t length = strlen(name);

    return wide >= length && strncmp(entry, name, length) == 0 && (wide == length || entry[length] == ':');
}

void counts_request(const char *old, const struct counts_node *node, int64_t gpus, int64_t bytes, struct strbuf *list)
{
    bool whole = bytes >= node->whole_bytes;
    const char *entry;
    size_t wide = 0;

    if (whole)
        bytes = node->whole_bytes;
    strbuf_printf(list, "gpumem:%lldM", (long long)((bytes + MIB - 1) / MIB * gpus));
    if (node->has_big && bytes > node->whole_bytes / 2)
        strbuf_printf(list, ",gpubig:%lld", (long long)gpus);
    if (whole && node->sm > 0)
        strbuf_printf(list, ",gpusm:%lld", (long long)(node->sm * gpus));
    while ((entry = next_entry(&old, &wide)))
        if (!is_named(entry, wide, "gpumem") && !is_named(entry, wide, "gpubig") &&
            !(whole && node->sm > 0 && is_named(entry, wide, "gpusm")))
            strbuf_printf(list, ",%.*s", (int)wide, entry);
}

void counts_lower(const char *list, int64_t gpus, int64_t usable, struct strbuf *lowered)
{
    const char *entry;
    size_t wide = 0;

    while ((entry = next_entry(&list, &wide))) {
        int64_t count;
        const char *name = is_named(entry, wide, "gpumem")   ? "gpumem"
                           : is_named(entry, wide, "gpubig") ? "gpubig"
                           : is_named(entry, wide, "gpusm")  ? "gpusm"
                                                             : NULL;

        strbuf_printf(lowered, "%s", lowered->length > 0 ? "," : "");
        if (!name || !size_of_gres(entry, name, &count))
            strbuf_append(lowered, entry, wide);
        else if (strcmp(name, "gpumem") == 0)
            strbuf_printf(lowered, "gpumem:%lldM", (long long)(count / gpus * usable / MIB));
        else
            strbuf_printf(lowered, "%s:%lld", name, (long long)(count / gpus * usable));
    }
}

bool counts_beyond_free(const char *old, const char *node, const char *used, int64_t refusals, struct strbuf *list)
{
    int64_t all, taken = 0, own, wanted;
    const char *entry;
    size_t wide = 0;

    if (!size_of_gres(node, "gpusm", &all) || !size_of_gres(old, "gpusm", &own))
        return false;
    size_of_gres(used, "gpusm", &taken);
    wanted = all - taken + 1 + (refusals - 1) * (all / 8);
    if (wanted > all)
        wanted = all;
    if (wanted <= own)
        return false;
    while ((entry = next_entry(&old, &wide)))
        if (is_named(entry, wide, "gpusm"))
            strbuf_printf(list, "%sgpusm:%lld", list->length > 0 ? "," : "", (long long)wanted);
        else
            strbuf_printf(list, "%s%.*s", list->length > 0 ? "," : "", (int)wide, entry);
    return true;
}
