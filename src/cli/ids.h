/* Lists of job ids as people write them: "7", "1,3-5", "@" (the last job submitted by the caller). */
#ifndef CARMA_CLI_IDS_H
#define CARMA_CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ID_LAST     UINT64_MAX /* stands for "@" until it is looked up */
#define ID_LIST_MAX 10000      /* ids in one list: more is a slip of the keyboard */

struct id_list {
    uint64_t *items; /* owned; in the order written, each once */
    size_t count;
    size_t capacity;
};

/* Appends the ids that text names. -EINVAL with one line that names the part that is wrong. */
int id_list_parse(struct id_list *list, const char *text, struct error *err);
void id_list_add(struct id_list *list, uint64_t id); /* where it is not in it yet */
void id_list_release(struct id_list *list);

#endif
