/* Being attached to a job (launch/terminal.h). */
#ifndef CARMA_CLI_ATTACH_ATTACH_H
#define CARMA_CLI_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

struct cli;

/* From its place in the queue to its end: the exit status of the command. `returns`: it was attached before, and its
 * last lines are shown first. `is_shell`: how it ends is nothing to be told. `signals`: signals.h. */
int attach_to(struct cli *cli, uint64_t id, int signals, bool returns, bool is_shell);

#endif
