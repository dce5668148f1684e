/* Inside `carma calibrate`: where a machine profile's figures come from. */
#ifndef CARMA_CLI_ESTIMATE_CALIBRATE_H
#define CARMA_CLI_ESTIMATE_CALIBRATE_H

#include "base/error.h"
#include "base/strbuf.h"
#include "estimate/profile.h"

/* Measures CUDA's first GPU, which nobody may be using: an empty context and one tiny step of PyTorch's (python3:
 * carma.tiny_step). `name` is left to the caller. Appends further observations to *notes, as comment lines. -ENOENT,
 * -ENODEV: no GPU here; other negative errno: one line names the failure. */
int calibrate_by_gpu(struct machine_profile *profile, struct strbuf *notes, struct error *err);

/* Takes context and cuDNN from measured runs: the medians of their need beyond the reserve in their models' replay.
 * `files` are mlp:FILE or transformer:FILE (context) and cnn:FILE (context and cuDNN; needs one of the others too). The
 * rest is the profile's that the runs were measured with. */
int calibrate_by_data(struct machine_profile *profile, const char *const *files, size_t count, struct strbuf *notes,
                      struct error *err);

#endif
