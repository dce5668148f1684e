/* Keras' "Connected to": layers by name, "conv1[0][0], add[0][0]". */
#include <string.h>

#include "base/memory.h"
#include "estimate/summary/read_keras.h"

#define NEAR 64 /* how far back a name that is not whole is looked for */

struct named {
    const char *name; /* borrowed: of a layer */
    uint32_t index;
};

struct names {
    struct named *items; /* owned; by name, then by index */
    size_t count;
};

struct search {
    const struct keras_table *table;
    struct names names;
    uint32_t *last; /* owned: of each container, the last layer in it */
};

static int compare(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);

    if (order != 0)
        return order;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The last layer of that name before `before`; -1: none. */
static int64_t find_whole(const struct names *names, const char *name, uint32_t before)
{
    struct named wanted = {name, before};
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(&names->items[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || strcmp(names->items[low - 1].name, name) != 0)
        return -1;
    return names->items[low - 1].index;
}

/* The one near layer with a name that begins like the given one, as far as both are known; -1: none or several. */
static int64_t find_beginning(const struct search *search, const char *name, bool cut, uint32_t before)
{
    const struct layer_list *list = search->table->reader->list;
    int64_t found = -1;

    for (uint32_t back = 1; back <= before && back <= NEAR; back++) {
        uint32_t index = before - back;
        const char *other = list->items[index].name;
        bool other_cut = search->table->links[index].name_cut;
        size_t length = strlen(name), other_length = strlen(other);
        if ((!cut && length < other_length) || (!other_cut && other_length < length) || (!cut && !other_cut))
            continue;
        if (memcmp(name, other, length < other_length ? length : other_length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = index;
    }
    return found;
}

/* Takes the next name off the text: up to its "[node]"; cut: it was too long to be shown. */
static struct slice take_name(struct slice *text, bool *cut)
{
    struct slice name;
    size_t end = 0, after;

    while (text->length > 0 && strchr("[]()'\",", *text->text))
        *text = slice_from(*text, 1);
    while (end < text->length && !strchr("[',", text->text[end]) && !slice_starts(slice_from(*text, end), KERAS_CUT))
        end++;
    name = slice_to(*text, end);
    *cut = slice_starts(slice_from(*text, end), KERAS_CUT);
    /* the rest of "[0][0]", which may itself be cut */
    for (after = end; after < text->length && text->text[after] != ','; after++)
        if (slice_starts(slice_from(*text, after), KERAS_CUT)) {
            after += strlen(KERAS_CUT);
            break;
        }
    *text = slice_from(*text, after);
    return name;
}

/* False: one of its inputs is not found. */
static bool connect_layer(const struct search *search, uint32_t index)
{
    const struct keras_table *table = search->table;
    struct layer *layer = &table->reader->list->items[index];
    const struct keras_link *link = &table->links[index];
    struct slice text = {"", 0};
    char name[LAYER_NAME_SIZE];

    if (link->end > link->begin)
        text = (struct slice){table->connections.text + link->begin, link->end - link->begin};

    while (text.length > 0) {
        bool cut;
        struct slice taken = take_name(&text, &cut);
        int64_t from;
        if (taken.length == 0 || slice_is(taken, "-"))
            continue;
        if (taken.length >= sizeof name)
            taken = slice_from(taken, taken.length - (sizeof name - 1)); /* as a layer's name is */
        copy_printable(name, sizeof name, taken);
        from = cut ? -1 : find_whole(&search->names, name, index);
        if (from < 0)
            from = find_beginning(search, name, cut, index);
        if (from >= 0 && search->table->reader->list->items[from].container)
            from = search->last[from];
        if (from < 0 || from >= index)
            return false;
        layer_add_input(layer, (int32_t)from);
    }
    return true;
}

/* An input layer in a nested model stands for that model's input. */
static void connect_input(struct layer_list *list, uint32_t index, const uint32_t *parents, uint32_t *taken)
{
    struct layer *layer = &list->items[index];
    const struct layer *parent;
    uint32_t which;

    if (layer->depth == 0) {
        layer_add_input(layer, -1);
        return;
    }
    parent = &list->items[parents[layer->depth - 1]];
    if (parent->input_count == 0)
        return;
    which = taken[layer->depth - 1]++;
    layer_add_input(layer, parent->inputs[which < parent->input_count ? which : 0]);
}

static void connect_all(const struct search *search)
{
    struct layer_list *list = search->table->reader->list;
    uint32_t parents[KERAS_MAX_DEPTH + 1] = {0}, taken[KERAS_MAX_DEPTH + 1] = {0};

    for (uint32_t i = 0; i < list->count; i++) {
        struct layer *layer = &list->items[i];
        if (layer->kind == LAYER_INPUT) {
            connect_input(list, i, parents, taken);
        } else if (!connect_layer(search, i)) {
            free(layer->inputs);
            layer->inputs = NULL;
            layer->input_count = 0;
        }
        parents[layer->depth] = i;
        taken[layer->depth] = 0;
    }
}

static void find_last(struct search *search)
{
    const struct layer_list *list = search->table->reader->list;
    uint32_t open[KERAS_MAX_DEPTH + 1], count = 0;

    search->last = xcalloc(list->count, sizeof *search->last);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct layer *layer = &list->items[i];
        while (count > 0 && list->items[open[count - 1]].depth >= layer->depth)
            count--;
        if (layer->container)
            open[count++] = i;
        else
            for (uint32_t j = 0; j < count; j++)
                search->last[open[j]] = i;
    }
}

void keras_connect(struct keras_table *table)
{
    const struct layer_list *list = table->reader->list;
    struct search search = {.table = table};

    search.names.items = xcalloc(list->count, sizeof *search.names.items);
    for (uint32_t i = 0; i < list->count; i++)
        if (!table->links[i].name_cut)
            search.names.items[search.names.count++] = (struct named){list->items[i].name, i};
    qsort(search.names.items, search.names.count, sizeof *search.names.items, compare);
    find_last(&search);
    connect_all(&search);
    free(search.last);
    free(search.names.items);
}
