/* Node profiles: data/nodes/NAME.ini, installed as share/carma/nodes/NAME.ini (docs/vnode.md). */
#ifndef CARMA_VNODE_PROFILE_H
#define CARMA_VNODE_PROFILE_H

#include "base/error.h"
#include "vnode/layout.h"

/* Reads a profile by its name or, where there is a slash or a .ini in it, its path. Errors name file and line. */
int profile_read(const char *name, struct node_file *file, struct error *err);

#endif
