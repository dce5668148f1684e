/* Slurm's header, whose functions are in Slurm's programs, and whose names of callbacks they look up. */
#ifndef CARMA_SLURM_PLUGIN_SPANK_H
#define CARMA_SLURM_PLUGIN_SPANK_H

#pragma GCC visibility push(default)
#include <slurm/spank.h>
#pragma GCC visibility pop

#endif
