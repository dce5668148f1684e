/* The directory of an MPS domain: pipe/ and log/, which are the control daemon's, and `gpus`, which names the domain's
 * GPUs. */
#ifndef CARMA_GPU_MPS_DIRECTORY_H
#define CARMA_GPU_MPS_DIRECTORY_H

#include "base/error.h"

struct mps_directory {
    char *path, *pipe, *log, *gpus; /* owned */
};

/* Made where it is not there. `gpus` NULL: as the directory says. It is released later, for every result. */
int mps_directory_open(struct mps_directory *directory, const char *path, const char *gpus, struct error *err);
void mps_directory_release(struct mps_directory *directory);

#endif
