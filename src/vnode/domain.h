/* Processes that came through MPS, as their control daemon sees them, and processes that the driver ends. A domain is
 * the answer of attach_mps_domain() for the daemon's pipe directory. */
#ifndef CARMA_VNODE_DOMAIN_H
#define CARMA_VNODE_DOMAIN_H

#include <signal.h>

#include "vnode/node.h"

/* CUDA's errors with which a process may have to end (struct node_slot: fault). */
enum cuda_fault {
    CUDA_FAULT_ECC = 214, /* an uncorrectable memory error */
    CUDA_FAULT_ILLEGAL_ADDRESS = 700,
    CUDA_FAULT_LAUNCH_FAILED = 719,
    CUDA_FAULT_MPS_RPC_FAILURE = 806,      /* the error of the victims of another client's fault */
    CUDA_FAULT_MPS_SERVER_NOT_READY = 807, /* the error of newcomers during the FAULT state */
    CUDA_FAULT_MPS_CLIENT_TERMINATED = 810,
    CUDA_FAULT_UNKNOWN = 999, /* the driver went away */
};

/* Has the driver end the process with `fault`, at its next look. Where it came through MPS and the fault is its own,
 * its victims are all its domain's clients on the same GPU or MIG instance. -ESRCH: it is not on the node.
 */
int domain_fail(struct node *node, int32_t pid, uint32_t fault);

/* What an MPS server hears of a client: a signal, whose value is the client's pid. Nothing where there is no server. */
#define DOMAIN_FAULTED SIGUSR1
#define DOMAIN_REFUSED SIGRTMIN /* memory */
void domain_tell_server(int32_t server, int signal_number, int32_t client);

#endif
