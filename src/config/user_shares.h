/* The setting `shares`: "alice=3, 12002=2", users by name or number with their shares of the GPUs. */
#ifndef CARMA_CONFIG_USER_SHARES_H
#define CARMA_CONFIG_USER_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#define USER_SHARES_MOST 1000 /* as the core has it (USER_MOST_SHARE) */

/* Whether the text is such a list; an empty one is. */
bool user_shares_are_allowed(const char *text);

/* The share that the list (NULL: empty) gives the user; the last one counts. 0: it does not name him. */
uint32_t user_shares_find(const char *text, uint32_t uid, const char *user);

#endif
