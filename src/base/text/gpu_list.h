/* A list of GPUs as people write it: "0-1,3" are three, by their numbers in `carma gpus`; an item may also be a UUID.
 */
#ifndef CARMA_BASE_TEXT_GPU_LIST_H
#define CARMA_BASE_TEXT_GPU_LIST_H

#include <stdint.h>

#include "base/error.h"

struct gpu_list_item {
    const char *uuid;     /* of a GPU or a MIG instance; borrowed from the list. NULL: it is of numbers */
    uint32_t first, last; /* not rising backwards */
};

/* Cuts the next item off *rest, as strsep does: 1. 0: there is none any more. -EINVAL: it is no item, which an empty
 * one is not either; one line names it. */
int gpu_list_next(char **rest, struct gpu_list_item *item, struct error *err);

#endif
