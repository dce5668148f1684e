/* A sum of bytes for each user. */
#ifndef CARMA_DAEMON_VIEW_USER_BYTES_H
#define CARMA_DAEMON_VIEW_USER_BYTES_H

#include <stdint.h>

struct user_bytes {
    struct bytes_of *users; /* uthash by uid; a user with none is not there */
};

void user_bytes_add(struct user_bytes *sums, uint32_t uid, int64_t bytes);
int64_t user_bytes_of(const struct user_bytes *sums, uint32_t uid);

/* What is kept once for many jobs, perhaps of several users, is charged to the first of them until it goes. */
struct charge {
    uint32_t uid, bytes; /* 0: to nobody yet */
};
void user_bytes_charge(struct user_bytes *sums, struct charge *charge, uint32_t uid, uint64_t bytes);
void user_bytes_discharge(struct user_bytes *sums, const struct charge *charge);

#endif
