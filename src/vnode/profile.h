/* A virtual node to be, from a node profile (trace/profile.h). */
#ifndef CARMA_VNODE_PROFILE_H
#define CARMA_VNODE_PROFILE_H

#include "base/error.h"
#include "vnode/layout.h"

/* Fills the part of *file that is fixed when the node is made, by the profile's name or path as node_profile_read has
 * it. The rest is zero. */
int profile_read(const char *name, struct node_file *file, struct error *err);

#endif
