/* The processes of MPS: a control daemon, which is found by the socket that it listens on, and its servers, its
 * children.
 *
 * Not by its pid file, which drivers before 550 do not write and which may be of another boot. Nor by the socket, which
 * stays when the daemon has gone. */
#ifndef CARMA_GPU_MPS_PROCESS_H
#define CARMA_GPU_MPS_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct mps_process {
    pid_t pid; /* 0: none */
    uint64_t start_ticks;
};

/* The listener at the pipe directory's `control`; 0: none. `known` (at first zero) is the last result. While that
 * process lives it is the answer, as each connection is a line in the daemon's log. */
pid_t mps_process_find(const char *pipe_directory, struct mps_process *known);

/* Kills all processes of this user that were started for the pipe directory (the variable CUDA_MPS_PIPE_DIRECTORY),
 * also one that does not listen yet, and waits until none is found. */
void mps_process_end_all(const char *pipe_directory);

/* Signals the daemon's servers; returns how many there are. */
unsigned mps_process_signal_servers(pid_t daemon, int signal_number);

#endif
