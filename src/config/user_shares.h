/* The settings `shares`: "alice=3, 12002=2, @vision=4", users by name or number, and groups, with their shares of the
 * GPUs; and `share_groups`: "vision=alice+bob, nlp=12003", groups with their users. */
#ifndef CARMA_CONFIG_USER_SHARES_H
#define CARMA_CONFIG_USER_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#define USER_SHARES_MOST 1000 /* as the core has it (USER_MOST_SHARE) */

/* Whether the text is such a list; an empty one is. */
bool user_shares_are_allowed(const char *text);

/* The share that the list (NULL: empty) gives the user; the last one counts. 0: it does not name him. */
uint32_t user_shares_find(const char *text, uint32_t uid, const char *user);

#define USER_GROUP_SIZE 32 /* of a name, NUL included: as the core has it (RECORD_GROUP_SIZE) */

/* Whether the text is a list of groups; an empty one is. */
bool user_groups_are_allowed(const char *text);

/* The first group of the list (NULL: empty) that has the user; "": none has. And its share by the other list: 1, unless
 * that names it. */
void user_groups_find(const char *text, uint32_t uid, const char *user, char group[static USER_GROUP_SIZE]);
uint32_t user_groups_share(const char *shares, const char *group);

#endif
