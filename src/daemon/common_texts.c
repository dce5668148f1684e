#include "daemon/common_texts.h"

#include <string.h>

#include "base/hash.h"

struct common_text {
    uint64_t digest;
    struct spec_strings list; /* within the same piece of memory */
    uint32_t users;
    bool apart; /* another text has its digest: nobody finds it */
    UT_hash_handle hh;
};

/* FNV-1a, the texts' ends included. */
static uint64_t digest_of(const struct spec_strings *list)
{
    uint64_t digest = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < list->count; i++) {
        const char *at = list->items[i];
        do
            digest = (digest ^ (unsigned char)*at) * UINT64_C(1099511628211);
        while (*at++);
    }
    return digest;
}

/* The list's items and their texts lie behind the struct: jobs with a command of their own are many. */
static struct common_text *copy_of(const struct spec_strings *list)
{
    size_t size = sizeof(struct common_text) + list->count * sizeof *list->items;
    struct common_text *text;
    char *at;

    for (size_t i = 0; i < list->count; i++)
        size += strlen(list->items[i]) + 1;
    text = xcalloc(1, size);
    text->list = (struct spec_strings){.items = (char **)(text + 1), .count = list->count};
    at = (char *)(text->list.items + list->count);
    for (size_t i = 0; i < list->count; i++) {
        text->list.items[i] = at;
        at = stpcpy(at, list->items[i]) + 1;
    }
    return text;
}

struct common_text *common_texts_join(struct common_texts *texts, const struct spec_strings *list)
{
    uint64_t digest = digest_of(list);
    struct common_text *text;

    if (!list->count)
        return NULL;
    HASH_FIND(hh, texts->all, &digest, sizeof digest, text);
    if (text && spec_strings_equal(&text->list, list)) {
        text->users++;
        return text;
    }
    struct common_text *added = copy_of(list);
    added->digest = digest;
    added->users = 1;
    added->apart = text;
    if (!added->apart)
        HASH_ADD(hh, texts->all, digest, sizeof added->digest, added);
    return added;
}

struct common_text *common_texts_join_one(struct common_texts *texts, const char *text)
{
    char *items[] = {(char *)text};

    return common_texts_join(texts, &(struct spec_strings){.items = items, .count = text != NULL});
}

void common_texts_leave(struct common_texts *texts, struct common_text *text)
{
    if (!text || --text->users > 0)
        return;
    if (!text->apart)
        HASH_DEL(texts->all, text);
    free(text);
}

struct spec_strings common_text_list(const struct common_text *text)
{
    return text ? text->list : (struct spec_strings){0};
}

char *common_text_first(const struct common_text *text)
{
    return text ? text->list.items[0] : NULL;
}
