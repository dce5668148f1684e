#include "estimate/learned/model.h"

#include <stdbool.h>
#include <string.h>

#define MAGIC        "carma-model 1\n\0"
#define HEADER_BYTES 24
#define ENTRY_BYTES  80

struct entry {
    char name[48];
    uint32_t type, rank, dims[4];
    uint64_t offset;
};
_Static_assert(sizeof(struct entry) == ENTRY_BYTES, "the layout is that of the file");

/* models.S */
#define EMBEDDED(NAME) extern const unsigned char carma_model_##NAME[], carma_model_##NAME##_end[];
EMBEDDED(gpumemnet)
EMBEDDED(replay)
EMBEDDED(utilisation)

struct model model_find(const char *name)
{
    const struct {
        const char *name;
        const unsigned char *begin, *end;
    } all[] = {
        {"gpumemnet", carma_model_gpumemnet, carma_model_gpumemnet_end},
        {"replay", carma_model_replay, carma_model_replay_end},
        {"utilisation", carma_model_utilisation, carma_model_utilisation_end},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0 && all[i].end > all[i].begin)
            return (struct model){all[i].begin, (size_t)(all[i].end - all[i].begin)};
    return (struct model){0};
}

static bool read_entry(struct model model, const struct entry *entry, struct model_array *array)
{
    static const size_t widths[] = {[MODEL_F32] = 4, [MODEL_I32] = 4, [MODEL_U64] = 8, [MODEL_U16] = 2};
    size_t count = 1;

    if (entry->rank > 4 || entry->offset % 8 || entry->offset > model.length)
        return false;
    for (uint32_t i = 0; i < entry->rank; i++) {
        if (entry->dims[i] && count > model.length / entry->dims[i])
            return false;
        count *= entry->dims[i];
    }
    if (count > (model.length - entry->offset) / widths[entry->type])
        return false;
    array->data = model.data + entry->offset;
    array->rank = entry->rank;
    memcpy(array->dims, entry->dims, sizeof array->dims);
    array->count = count;
    return true;
}

struct model_array model_array(struct model model, const char *name, enum model_type type)
{
    struct model_array array = {0};
    uint32_t count;

    if (model.length < HEADER_BYTES || memcmp(model.data, MAGIC, 16) != 0)
        return array;
    memcpy(&count, model.data + 16, sizeof count);
    if (count > (model.length - HEADER_BYTES) / ENTRY_BYTES)
        return array;
    for (uint32_t i = 0; i < count; i++) {
        struct entry entry;
        memcpy(&entry, model.data + HEADER_BYTES + i * ENTRY_BYTES, sizeof entry);
        if (entry.type == type && strncmp(entry.name, name, sizeof entry.name) == 0)
            return read_entry(model, &entry, &array) ? array : (struct model_array){0};
    }
    return array;
}
