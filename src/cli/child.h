/* A program that is asked once and for so long only, as carma-monitor, which calls a vendor's driver: that may hang or
 * crash. */
#ifndef CARMA_CLI_CHILD_H
#define CARMA_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

struct cli_child {
    struct strbuf out;    /* its output; owned */
    struct strbuf errors; /* its text on stderr; owned; at most 64 KiB, as of out 16 MiB */
    bool hung;            /* it did not end in time, and was killed */
    int status;           /* as wait(2) has it, unless hung */
};

/* Runs argv[0], with `input` as its standard input (-1: none), and takes in its standard output and error. It goes on
 * until the program ends, until `taken` (may be NULL) calls the output enough, or until time_ms of wall time have
 * passed. A child that the driver holds in the kernel, so that it does not even die, is left behind. -errno where it
 * cannot be started. */
int cli_child_run(const char *const *argv, int input, int64_t time_ms,
                  bool (*taken)(void *user, const struct strbuf *out), void *user, struct cli_child *answer,
                  struct error *err);

void cli_child_release(struct cli_child *answer);

#endif
