/* A word to other daemons of carma on the machine. Two that manage one GPU book its memory twice, so each says which
 * GPUs are its own by an abstract socket of the GPU's UUID: the kernel lets only one process have it, takes it back at
 * its end, and knows whose it is. Any user may have it, so it is a word and no lock. It does not reach beyond the
 * network namespace. */
#ifndef CARMA_DAEMON_NODE_CLAIM_H
#define CARMA_DAEMON_NODE_CLAIM_H

#include <sys/types.h>

struct claim_holder {
    pid_t pid; /* 0: not visible from here, or it has just ended */
    uid_t uid;
};

/* Returns a descriptor that is to be kept open as long as the GPU is this process's own; -EADDRINUSE: it is another's;
 * another -errno: nothing can be said. */
int claim_gpu(const char *uuid);

/* Whose a GPU is. To be asked once for each that is another's: who asks stays in the holder's row of connections. */
struct claim_holder claim_holder_of(const char *uuid);

#endif
