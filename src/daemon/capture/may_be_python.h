/* A cheap look at a job's command: whether a capture could find a training script in it. */
#ifndef CARMA_DAEMON_CAPTURE_MAY_BE_PYTHON_H
#define CARMA_DAEMON_CAPTURE_MAY_BE_PYTHON_H

#include <stdbool.h>

struct job_spec;

/* Whether some word of the command, or of its script, starts Python, or a file that may: `.../python3.11`, `torchrun`,
 * `uv`, `train.sh`. It may be wrong either way: its real program shows when it is tried. */
bool may_be_python(const struct job_spec *spec);

/* Whether the command or its script gives PYTHONPATH a value without what it was: `PYTHONPATH=. python train.py`. Such
 * a Python does not find what would record it. */
bool sets_python_path_anew(const struct job_spec *spec);

#endif
