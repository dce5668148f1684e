/* Lines that tell of a step of work: "Epoch 3/10", "loss 0.53", "45%|####", "12.5 it/s". Pure. */
#ifndef CARMA_LAUNCH_STEPS_H
#define CARMA_LAUNCH_STEPS_H

#include <stdint.h>

#include "launch/sizes.h"

/* So many different ones after a message show that its program went on: ranks that run beside the one that failed do a
 * step or two more. */
#define STEPS_ENOUGH 3

/* Differs between different steps; 0: it is none. */
uint64_t steps_identify(struct span line);

#endif
