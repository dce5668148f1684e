/* Facts of the driver beyond readings, for `carma doctor`. Each line of text is written as soon as it is known, so that
 * its reader sees how far a driver came before it hung. Used within carma-monitor only. */
#ifndef CARMA_GPU_NVML_INSPECT_H
#define CARMA_GPU_NVML_INSPECT_H

#include <stdio.h>

/* Writes `KEY VALUE` lines to `out`, flushing each:
 *
 *     library PATH           the library that was loaded; or
 *     no-library TEXT        why none was
 *     init CODE TEXT         NVML's return code of starting, in its words
 *     driver VERSION         of the driver
 *     nvml VERSION           of the library
 *     gpus N
 *     gpu I asked            before GPU I is touched
 *     gpu I KEY VALUE        uuid, name, persistence (0, 1), compute-mode (enum nvml_compute_mode),
 *                            ecc (uncorrected errors since the driver was loaded), failed CODE TEXT
 *
 * A value that the driver does not tell is left out.
 *
 * `library` as for gpu_backend_options. 0 where NVML could be started, else a negative errno. */
int nvml_inspect(const char *library, FILE *out);

#endif
