/* Signals of this process. */
#ifndef CARMA_BASE_SIGNALS_H
#define CARMA_BASE_SIGNALS_H

/* Defaults for all, none blocked. For a child that will execute a program: the program would inherit the daemon's. */
void signals_reset(void);

#endif
