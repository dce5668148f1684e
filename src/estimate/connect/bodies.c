/* Which rows of a summary belong to which of its containers. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/connect/connect.h"

#define MAX_LEVEL   8   /* containers in containers that are told apart */
#define MAX_TYPES   64  /* types of containers that are compared with one another */
#define MAX_BODY    512 /* rows of a first block that are compared with another of its type */
#define MAX_COMPARE 8   /* blocks of its type that it is compared with */

/* Whether one of the words stands in the type, without regard to case. */
static bool has_word(const char *type, const char *const *words, size_t count)
{
    char lower[LAYER_NAME_SIZE];
    size_t length = 0;

    for (; type[length] && length + 1 < sizeof lower; length++)
        lower[length] = (char)(type[length] >= 'A' && type[length] <= 'Z' ? type[length] - 'A' + 'a' : type[length]);
    lower[length] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

bool type_is_attention(const char *type)
{
    static const char *const words[] = {"attention", "attn"};

    return has_word(type, words, array_size(words));
}

bool type_is_squeeze(const char *type)
{
    static const char *const words[] = {"squeeze", "semodule", "selayer", "seblock", "effectivese", "channelattention"};

    return has_word(type, words, array_size(words));
}

bool type_is_residual(const char *type)
{
    static const char *const words[] = {"residual", "block", "bottleneck", "mbconv", "layer", "separableconv"};
    static const char *const no_words[] = {"convblock",  "mlp",     "feedforward", "ffn",        "layernorm",
                                           "layerscale", "seblock", "denselayer",  "denseblock", "basiclayer"};

    /* Keras and timm call a convolution's two halves a separable convolution; the residual one says that it is
     * depthwise */
    if (strcmp(type, "SeparableConv2d") == 0)
        return false;
    return has_word(type, words, array_size(words)) && !has_word(type, no_words, array_size(no_words)) &&
           !type_is_attention(type) && !type_is_squeeze(type);
}

static void find_in_tree(struct bodies *bodies, const struct layer_list *list)
{
    size_t open[UINT8_MAX + 1], count = 0; /* rows still without an end, of rising depth */

    for (size_t i = 0; i <= list->count; i++) {
        while (count && (i == list->count || list->items[open[count - 1]].depth >= list->items[i].depth))
            bodies->end[open[--count]] = i;
        if (i == list->count)
            break;
        bodies->start[i] = bodies->end[i] = i + 1;
        open[count++] = i;
    }
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].container)
            bodies->end[i] = bodies->start[i];
}

/* Containers of a list without a tree: those of a higher level hold those of a lower one. */
struct levels {
    const struct layer_list *list;
    uint32_t *type; /* of each row: a number, 0 for rows that are not containers */
    uint8_t *level; /* of each type */
    uint32_t types; /* with 0 */
};

static int compare_types(const void *left, const void *right)
{
    const struct layer *a = *(const struct layer *const *)left, *b = *(const struct layer *const *)right;

    return strcmp(a->type, b->type);
}

static void number_types(struct levels *levels)
{
    const struct layer_list *list = levels->list;
    CLEANUP(free_ptr) const struct layer **sorted = xcalloc(list->count, sizeof *sorted);
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].container)
            sorted[count++] = &list->items[i];
    qsort(sorted, count, sizeof *sorted, compare_types);
    levels->types = 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = (uint32_t)(sorted[i] - list->items);
        if (i == 0 || strcmp(sorted[i - 1]->type, sorted[i]->type) != 0) {
            levels->level[levels->types++] = type_is_residual(sorted[i]->type);
        }
        levels->type[row] = levels->types - 1;
    }
}

/* A container right behind another holds it. */
static bool raise_by_neighbours(struct levels *levels)
{
    bool raised = false;

    for (size_t i = 1; i < levels->list->count; i++) {
        uint32_t inner = levels->type[i - 1], outer = levels->type[i];
        if (inner && outer && inner != outer && levels->level[outer] <= levels->level[inner] &&
            levels->level[inner] < MAX_LEVEL) {
            levels->level[outer] = (uint8_t)(levels->level[inner] + 1);
            raised = true;
        }
    }
    return raised;
}

/* One that has another before every one of its own, and none after its last, holds it. */
static bool raise_by_gaps(struct levels *levels, uint32_t outer)
{
    const struct layer_list *list = levels->list;
    uint32_t gaps = 0, covered[MAX_TYPES + 1] = {0}, seen[MAX_TYPES + 1] = {0};
    bool raised = false;

    for (size_t i = 0; i < list->count; i++) {
        uint32_t inner = levels->type[i];
        gaps += inner == outer;
        if (inner && inner != outer && seen[inner] != gaps + 1) {
            seen[inner] = gaps + 1;
            covered[inner]++;
        }
    }
    for (uint32_t inner = 1; inner < levels->types && gaps > 1; inner++) {
        if (inner != outer && covered[inner] == gaps && seen[inner] == gaps &&
            levels->level[outer] <= levels->level[inner] && levels->level[inner] < MAX_LEVEL) {
            levels->level[outer] = (uint8_t)(levels->level[inner] + 1);
            raised = true;
        }
    }
    return raised;
}

static void find_levels(struct levels *levels)
{
    bool raised = true;

    number_types(levels);
    for (int round = 0; raised && round < MAX_LEVEL; round++) {
        raised = raise_by_neighbours(levels);
        for (uint32_t type = 1; type < levels->types && levels->types <= MAX_TYPES; type++)
            raised |= raise_by_gaps(levels, type);
    }
}

/* How many rows from a and from b on are alike, of at most `most`. */
static size_t alike(const struct layer_list *list, size_t a, size_t b, size_t most)
{
    size_t count = 0;

    while (count < most && list->items[a + count].kind == list->items[b + count].kind &&
           list->items[a + count].container == list->items[b + count].container)
        count++;
    return count;
}

/* Where the first block of its type begins: nothing before it says so, but the others of its type look like it. */
static size_t align_first(const struct levels *levels, const struct bodies *bodies, size_t first, size_t from)
{
    size_t best = from, most = 0, compared = 0;

    for (size_t other = first + 1; other < levels->list->count && compared < MAX_COMPARE; other++) {
        size_t length, lowest = first > from + MAX_BODY ? first - MAX_BODY : from;
        if (levels->type[other] != levels->type[first] || bodies->start[other] >= other)
            continue;
        compared++;
        length = other - bodies->start[other];
        for (size_t start = lowest; start < first; start++) {
            size_t here = first - start, same;
            same = alike(levels->list, start, bodies->start[other], here < length ? here : length);
            same = same == here && here == length ? SIZE_MAX : same;
            if (same > most || (same == most && same != SIZE_MAX && start > best)) {
                most = same;
                best = start;
            }
        }
    }
    return most ? best : from;
}

/* A layer between two blocks of a type (a pooling, a change of resolution) belongs to neither. A body that ends like
 * the shortest of its type begins where that one would. */
static void shorten(const struct levels *levels, struct bodies *bodies)
{
    const struct layer_list *list = levels->list;
    CLEANUP(free_ptr) size_t *shortest = xcalloc(levels->types, sizeof *shortest); /* row + 1 */

    for (size_t i = 0; i < list->count; i++) {
        size_t *row = &shortest[levels->type[i]];
        if (levels->type[i] && (*row == 0 || i - bodies->start[i] < *row - 1 - bodies->start[*row - 1]))
            *row = i + 1;
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t row = shortest[levels->type[i]], length;
        if (!levels->type[i] || row - 1 == i)
            continue;
        length = row - 1 - bodies->start[row - 1];
        if (length > 2 && length <= MAX_BODY && length < i - bodies->start[i] &&
            alike(list, i - length, bodies->start[row - 1], length) == length)
            bodies->start[i] = i - length;
    }
}

static void find_without_tree(struct bodies *bodies, const struct layer_list *list)
{
    struct levels levels = {
        .list = list, .type = xcalloc(list->count, sizeof *levels.type), .level = xcalloc(list->count + 1, 1)};
    CLEANUP(free_ptr) size_t *first = NULL;
    size_t next[MAX_LEVEL + 2] = {0}; /* by level: behind the last row of that level or a higher one */

    find_levels(&levels);
    first = xcalloc(levels.types, sizeof *first);
    for (size_t i = 0; i < list->count; i++) {
        uint32_t type = levels.type[i];
        bodies->start[i] = bodies->end[i] = i;
        if (!type)
            continue;
        bodies->start[i] = next[levels.level[type]];
        if (!first[type])
            first[type] = i + 1;
        for (int level = levels.level[type]; level >= 0; level--)
            next[level] = i + 1;
    }
    for (uint32_t type = 1; type < levels.types && levels.types <= MAX_TYPES; type++)
        bodies->start[first[type] - 1] = align_first(&levels, bodies, first[type] - 1, bodies->start[first[type] - 1]);
    shorten(&levels, bodies);
    free(levels.type);
    free(levels.level);
}

void bodies_find(struct bodies *bodies, const struct layer_list *list)
{
    *bodies = (struct bodies){.start = xcalloc(list->count + 1, sizeof *bodies->start),
                              .end = xcalloc(list->count + 1, sizeof *bodies->end)};
    for (size_t i = 0; i < list->count && !bodies->tree; i++)
        bodies->tree = list->items[i].depth > 0;
    if (bodies->tree)
        find_in_tree(bodies, list);
    else
        find_without_tree(bodies, list);
}

void bodies_release(struct bodies *bodies)
{
    free(bodies->start);
    free(bodies->end);
    *bodies = (struct bodies){0};
}
