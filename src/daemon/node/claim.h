/* A word to other daemons of carma on the machine. Two that manage one GPU book its memory twice, so each says which
 * GPUs are its own by an abstract socket of the GPU's UUID: the kernel lets only one process have it, takes it back at
 * its end, and knows whose it is. Any user may have it, so it is a word and no lock, and is believed only of users that
 * could use the GPU, by its device node. It does not reach beyond the network namespace. */
#ifndef CARMA_DAEMON_NODE_CLAIM_H
#define CARMA_DAEMON_NODE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct claim_holder {
    pid_t pid; /* 0: not visible from here, or it has just ended */
    uid_t uid;
};

/* Returns a descriptor that is to be kept open as long as the GPU is this process's own; -EADDRINUSE: it is another's;
 * another -errno: nothing can be said. */
int claim_gpu(const char *uuid);

/* Whether a user with these groups may open the node. */
bool claim_may_use(const struct stat *node, uid_t uid, const gid_t *groups, size_t count);

/* Whose a GPU is that is another's, with the device node /dev/nvidiaMINOR. False: the kernel does not tell (too many
 * have asked: who asks stays in the holder's row of connections), or it is neither root nor the caller's user, and may
 * not use the GPU. */
bool claim_holder_of(const char *uuid, int32_t minor, struct claim_holder *holder);

#endif
