/* The job's side of what somebody is attached to (launch/terminal.h), in its own process before the command is
 * executed.
 *
 * Two messages go to the relay, of one byte each, with descriptors: 'o', the outputs, one or two; then 'p', the
 * terminal's master and its slave, or 'i', the pipe's end to write to. */
#ifndef CARMA_LAUNCH_SHEPHERD_ATTACH_H
#define CARMA_LAUNCH_SHEPHERD_ATTACH_H

#include "base/error.h"
#include "launch/request.h"

#define ATTACH_OUTPUTS  'o'
#define ATTACH_TERMINAL 'p'
#define ATTACH_PIPE     'i'

/* Its outputs are open at 1 and 2. Its input, and of a terminal also 1 and 2, are the relay's afterwards. The end of
 * the channel that the relay gets, or a negative errno. */
int attach_open(const struct shepherd_request *request, struct error *err);

#endif
