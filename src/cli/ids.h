/* Lists of job ids as people write them: "7", "1,3-5", "@" (the last job submitted by the caller), "7_3" and "7_[0-9]"
 * (jobs of array 7 by their indices; "7" alone is all of it). */
#ifndef CARMA_CLI_IDS_H
#define CARMA_CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* From here on an item stands for a word that has to be looked up (cli_resolve_ids): words[item - ID_WORD]. */
#define ID_WORD     (UINT64_C(1) << 63)
#define ID_LIST_MAX 10000 /* ids in one list: more is a slip of the keyboard */

struct id_list {
    uint64_t *items; /* owned; in the order written, each once */
    size_t count;
    size_t capacity;
    char **words; /* owned, as the array */
    size_t word_count;
    size_t word_capacity;
};

/* Appends the ids that text names. -EINVAL with one line that names the part that is wrong. */
int id_list_parse(struct id_list *list, const char *text, struct error *err);
void id_list_add(struct id_list *list, uint64_t id);    /* where it is not in it yet */
void id_list_append(struct id_list *list, uint64_t id); /* one that is not in it */
void id_list_release(struct id_list *list);

#endif
