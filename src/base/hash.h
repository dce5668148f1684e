/* uthash on our allocation: running out of memory aborts, as everywhere in our own programs. */
#ifndef CARMA_BASE_HASH_H
#define CARMA_BASE_HASH_H

#include "base/memory.h"

#define uthash_malloc(size)   xmalloc(size)
#define uthash_fatal(message) abort()
#include <uthash.h>

#endif
