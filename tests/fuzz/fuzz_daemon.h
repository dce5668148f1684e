/* The daemon's modules in this process, as main.c puts them together, except those that start processes. No
 * carma-monitor is watched, and no job is looked for. Its state is in a directory of its own that is emptied for each
 * input. */
#ifndef CARMA_TESTS_FUZZ_DAEMON_H
#define CARMA_TESTS_FUZZ_DAEMON_H

#include "daemon/daemon.h"
#include "fuzz.h"

/* The emptied state directory; valid for ever. */
const char *fuzz_daemon_directory(void);

/* With the content of the store in that directory, served on a socket. fuzz_daemon_stop follows in each case. */
int fuzz_daemon_start(struct daemon *daemon, struct error *err);
void fuzz_daemon_stop(struct daemon *daemon);

#endif
