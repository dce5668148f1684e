/* /dev inside: the harmless nodes, terminals and shared memory of its own. No GPU. */
#ifndef CARMA_SANDBOX_DEVICES_H
#define CARMA_SANDBOX_DEVICES_H

#include "base/error.h"

enum { DEVICES_COUNT = 5 };

struct devices {
    int nodes[DEVICES_COUNT]; /* copies of the old tree's nodes; owned; -1: there is none */
};

struct devices devices_take(void);
int devices_place(const struct devices *devices, const char *scratch, const char *target, struct error *err);
void devices_release(struct devices *devices);

#endif
