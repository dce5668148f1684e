/* Signals as bytes of a pipe, so that one poll() waits for them and for all else. */
#ifndef CARMA_CLI_ATTACH_SIGNALS_H
#define CARMA_CLI_ATTACH_SIGNALS_H

/* From now on SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP and SIGWINCH come there, where the caller did not
 * ignore them; SIGPIPE and those of a job in the background are ignored. A negative errno. */
int signals_open(void);

int signals_next(int signals); /* the next one that has come; 0: none */

#endif
