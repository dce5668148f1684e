/* The process between a job and whoever is attached to it (launch/terminal.h). It has the rights of the job's user:
 * what the client and the job send is read with no others. */
#ifndef CARMA_LAUNCH_SHEPHERD_RELAY_H
#define CARMA_LAUNCH_SHEPHERD_RELAY_H

#include <stdint.h>
#include <sys/types.h>

struct relay_start {
    int control;                 /* lines for the terminal; closed by the shepherd at the job's end */
    int channel;                 /* by which the job's process has handed its descriptors (attach.h) */
    int listener;                /* where clients come */
    pid_t process;               /* the job's main one, and its group */
    int64_t output_at, error_at; /* sizes of its outputs before it */
};

/* Until the job's end, or the shepherd's. */
void relay_run(const struct relay_start *start) __attribute__((noreturn));

#endif
