#include "daemon/view/common_texts.h"

#include <string.h>

#include "base/digest.h"
#include "base/memory.h"

#define LEAST_CHAINS 64

struct common_text {
    struct common_text *next; /* of its chain */
    uint64_t digest;
    uint32_t users;
    struct charge charge;
    uint32_t count; /* of the texts, which lie behind the struct, after the pointers to them */
};

/* The texts' ends included. */
static uint64_t digest_of(const struct spec_strings *list)
{
    uint64_t digest = DIGEST_EMPTY;

    for (size_t i = 0; i < list->count; i++)
        digest = digest_add(digest, list->items[i], strlen(list->items[i]) + 1);
    return digest;
}

static size_t bytes_of(const struct spec_strings *list)
{
    size_t size = sizeof(struct common_text) + list->count * sizeof *list->items;

    for (size_t i = 0; i < list->count; i++)
        size += strlen(list->items[i]) + 1;
    return size;
}

/* In one piece of memory: jobs with a command of their own are many. */
static struct common_text *copy_of(const struct spec_strings *list)
{
    struct common_text *text = xcalloc(1, bytes_of(list));
    char **items, *at;

    text->count = (uint32_t)list->count;
    items = common_text_list(text).items;
    at = (char *)(items + list->count);
    for (size_t i = 0; i < list->count; i++) {
        items[i] = at;
        at = stpcpy(at, list->items[i]) + 1;
    }
    return text;
}

static struct common_text **chain_of(const struct common_texts *texts, uint64_t digest)
{
    return &texts->chains[digest % texts->chain_count];
}

static void add_to_chain(const struct common_texts *texts, struct common_text *text)
{
    struct common_text **chain = chain_of(texts, text->digest);

    text->next = *chain;
    *chain = text;
}

static void grow(struct common_texts *texts)
{
    struct common_texts larger = *texts;

    larger.chain_count = texts->chain_count ? 2 * texts->chain_count : LEAST_CHAINS;
    larger.chains = xcalloc(larger.chain_count, sizeof(struct common_text *));
    for (size_t i = 0; i < texts->chain_count; i++)
        for (struct common_text *text = texts->chains[i], *next; text; text = next) {
            next = text->next;
            add_to_chain(&larger, text);
        }
    free(texts->chains);
    *texts = larger;
}

struct common_text *common_texts_join(struct common_texts *texts, const struct spec_strings *list)
{
    uint64_t digest = digest_of(list);
    struct common_text *text;

    if (!list->count)
        return NULL;
    if (texts->count >= texts->chain_count)
        grow(texts);
    for (text = *chain_of(texts, digest); text; text = text->next) {
        const struct spec_strings kept = common_text_list(text);
        if (text->digest == digest && spec_strings_equal(&kept, list)) {
            text->users++;
            return text;
        }
    }
    text = copy_of(list);
    text->digest = digest;
    text->users = 1;
    add_to_chain(texts, text);
    texts->count++;
    return text;
}

struct common_text *common_texts_join_one(struct common_texts *texts, const char *text)
{
    char *items[] = {(char *)text};

    return common_texts_join(texts, &(struct spec_strings){.items = items, .count = text != NULL});
}

struct common_text *common_texts_share(struct common_text *text)
{
    if (text)
        text->users++;
    return text;
}

void common_texts_charge(struct common_texts *texts, struct common_text *text, uint32_t uid)
{
    const struct spec_strings list = common_text_list(text);

    if (text)
        user_bytes_charge(&texts->held, &text->charge, uid, bytes_of(&list));
}

void common_texts_leave(struct common_texts *texts, struct common_text *text)
{
    struct common_text **at;

    if (!text || --text->users > 0)
        return;
    for (at = chain_of(texts, text->digest); *at != text; at = &(*at)->next)
        ;
    *at = text->next;
    user_bytes_discharge(&texts->held, &text->charge);
    free(text);
    if (--texts->count == 0) {
        free_ptr(&texts->chains);
        texts->chain_count = 0;
    }
}

struct spec_strings common_text_list(const struct common_text *text)
{
    return text ? (struct spec_strings){.items = (char **)(text + 1), .count = text->count} : (struct spec_strings){0};
}

char *common_text_first(const struct common_text *text)
{
    return text ? common_text_list(text).items[0] : NULL;
}
