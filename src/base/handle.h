/* For uv_close: the handle's memory goes with it. */
#ifndef CARMA_BASE_HANDLE_H
#define CARMA_BASE_HANDLE_H

#include <stdlib.h>
#include <uv.h>

static inline void free_handle(uv_handle_t *handle)
{
    free(handle);
}

#endif
