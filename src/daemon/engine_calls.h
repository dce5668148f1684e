/* The effects of the engine's records and decisions on the daemon's other folders. */
#ifndef CARMA_DAEMON_ENGINE_CALLS_H
#define CARMA_DAEMON_ENGINE_CALLS_H

#include "daemon/engine/engine.h"

extern const struct engine_calls engine_calls;

#endif
