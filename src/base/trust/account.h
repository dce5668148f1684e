/* Accounts as the user database has them. A directory service may take seconds to answer: not for carmad's loop. */
#ifndef CARMA_BASE_TRUST_ACCOUNT_H
#define CARMA_BASE_TRUST_ACCOUNT_H

#include <sys/types.h>

struct account {
    uid_t uid;
    gid_t gid;
    char *name; /* owned, as all */
    char *home; /* NULL: it has none */
    gid_t *groups;
    int group_count;
};

#define ACCOUNT_NOBODYS_GROUP 65534 /* stands for the group of a user without an account */

/* The account, without its groups. 0; -ENOENT: there is none; another negative errno: the database cannot tell. */
int account_look_up(uid_t uid, struct account *account);

/* The groups of the user, this one included; their number, 0 where they cannot be told. */
int account_groups(const char *name, gid_t gid, gid_t **groups);

void account_release(struct account *account);

#endif
