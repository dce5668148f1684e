/* Submissions that were accepted under an id of their client's. One that is repeated, since its answer was lost, is
 * answered as before and not done again. They are stored in the transaction of their jobs and loaded at the start. */
#ifndef CARMA_DAEMON_ENGINE_REPEATS_H
#define CARMA_DAEMON_ENGINE_REPEATS_H

#include <stdbool.h>

#include "store/store.h"

#define REPEATS_ID_MAX   64    /* bytes of an id */
#define REPEATS_PER_USER 20000 /* in the hour for which they are kept: the oldest of that user go */

struct repeats;

struct repeats *repeats_new(void);
void repeats_free(struct repeats *repeats);

bool repeats_is_id(const char *text); /* 1 to REPEATS_ID_MAX letters, digits, '-', '_', '.' */

void repeats_add(struct repeats *repeats, const struct store_request *request);
void repeats_drop(struct repeats *repeats, uint32_t uid,
                  const char *id); /* that it was accepted is not true any more */

/* NULL: none was accepted under that id. Valid until the next call of the others. */
const struct store_request *repeats_find(struct repeats *repeats, uint32_t uid, const char *id);

#endif
