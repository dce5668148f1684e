/* Overlays: a directory of the machine as the command sees it. Files are the same, but sockets and FIFOs are new ones,
 * without a listener outside. What is written goes to a throw-away layer, or nothing can be written.
 *
 * No overlay gives a right that its original refuses. A read-only one has the attributes of the original (in a user
 * namespace the owner is the user, with the rights that he has), and the kernel reaches the original with the user's
 * rights. A writable one covers the original with a layer that belongs to
 * the user, so it is only for a directory that he may list, change and enter outside. If that changes meanwhile, the
 * command keeps what it has looked up, as any process keeps what it has open, until its end. */
#ifndef CARMA_SANDBOX_LAYER_H
#define CARMA_SANDBOX_LAYER_H

#include <stdbool.h>

#include "base/error.h"

#define LAYERS_PLACE "/dev" /* a file system of the sandbox's own */
#define LAYERS_EMPTY LAYERS_PLACE "/empty"

struct layers {
    bool own_users; /* in a user namespace */
    unsigned count; /* directories of LAYERS_PLACE that are in use */
};

/* Whether the user may list, change and enter the opened directory outside. */
bool layer_may_be_written(int original);

/* Mounts an overlay of the opened directory at `target`. 0 or a negative errno; err is set if rights are missing. */
int layer_place(struct layers *layers, int original, const char *target, bool writable, struct error *err);

#endif
