/* Why a sandbox cannot be had on this machine. */
#ifndef CARMA_SANDBOX_MISSING_H
#define CARMA_SANDBOX_MISSING_H

/* The setting that forbids it, with the remedy, to put behind an error; "" where none is known. Static. */
const char *missing_hint(void);

#endif
