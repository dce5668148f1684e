/* A job of carma run while it waits: its place in the queue is shown, and Ctrl-C cancels it. */
#ifndef CARMA_CLI_ATTACH_PLACE_H
#define CARMA_CLI_ATTACH_PLACE_H

#include <jansson.h>
#include <stdint.h>

struct cli;

/* Until it can be attached to, runs without that, or has ended: 0 and *job, as the daemon describes it then. Else the
 * exit status with which the command ends; it has been said why. `signals`: signals.h. */
int place_wait(struct cli *cli, uint64_t id, int signals, json_t **job);

/* Cancels it, and says so or why not. */
void place_cancel(struct cli *cli, uint64_t id);

#endif
