#include "daemon/common_texts.h"

#include <string.h>

#include "base/hash.h"

struct common_text {
    uint64_t digest;
    struct spec_strings list; /* owned */
    size_t users;
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

struct common_text *common_texts_join(struct common_texts *texts, struct spec_strings *list)
{
    uint64_t digest = digest_of(list);
    struct common_text *text;

    if (!list->count)
        return NULL;
    HASH_FIND(hh, texts->all, &digest, sizeof digest, text);
    if (!text) {
        text = xcalloc(1, sizeof *text);
        *text = (struct common_text){.digest = digest, .list = *list};
        HASH_ADD(hh, texts->all, digest, sizeof text->digest, text);
    } else if (spec_strings_equal(&text->list, list)) {
        spec_strings_release(list);
    } else {
        return NULL;
    }
    *list = text->list;
    text->users++;
    return text;
}

void common_texts_leave(struct common_texts *texts, struct common_text *text, struct spec_strings *list)
{
    if (!text) {
        spec_strings_release(list);
        return;
    }
    *list = (struct spec_strings){0};
    if (--text->users > 0)
        return;
    HASH_DEL(texts->all, text);
    spec_strings_release(&text->list);
    free(text);
}
