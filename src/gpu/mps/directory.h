/* The directory of an MPS domain: pipe/ and log/, which are the control daemon's, and `gpus`, which names the domain's
 * GPUs.
 *
 * A control daemon makes its pipes for everybody to write, and some drivers' take settings from anybody. So the
 * directory is closed until these pipes are one user's. It stays carmad's user's all the while: in a directory of his
 * own the user could put links where root's control daemon opens files. */
#ifndef CARMA_GPU_MPS_DIRECTORY_H
#define CARMA_GPU_MPS_DIRECTORY_H

#include <sys/types.h>

#include "base/error.h"

#define MPS_EVERYBODY ((uid_t)-1)

struct mps_directory {
    char *path, *pipe, *log, *gpus; /* owned */
};

/* The UUIDs that the directory of a domain names, with commas between them: *gpus is the caller's. */
int mps_directory_gpus(const char *path, char **gpus, struct error *err);

/* Made where it is not there. `gpus` NULL: as the directory says. It is released later, for every result. */
int mps_directory_open(struct mps_directory *directory, const char *path, const char *gpus, struct error *err);

/* Nobody else can go there any more: a control daemon is about to come up. What others have removed is made again. */
int mps_directory_close(const struct mps_directory *directory, struct error *err);

/* The pipes that everybody could write, or another user was given, become the user's alone, or everybody's; then the
 * directory is open. Only root can give them to another user. */
int mps_directory_admit(const struct mps_directory *directory, uid_t uid, struct error *err);
void mps_directory_release(struct mps_directory *directory);

#endif
