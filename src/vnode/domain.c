#include "vnode/domain.h"

#include <errno.h>
#include <stdbool.h>

static bool in_domain(const struct node_slot *slot, uint64_t domain)
{
    return slot->phase != NODE_SLOT_FREE && slot->mps && slot->mps_domain == domain;
}

static bool share_a_place(const struct node_slot *a, const struct node_slot *b)
{
    for (uint32_t i = 0; i < a->use_count && i < NODE_MAX_GPUS; i++)
        for (uint32_t k = 0; k < b->use_count && k < NODE_MAX_GPUS; k++)
            if (a->uses[i].gpu == b->uses[k].gpu && a->uses[i].instance == b->uses[k].instance)
                return true;
    return false;
}

void domain_tell_server(int32_t server, int signal_number, int32_t client)
{
    if (server > 0)
        sigqueue(server, signal_number, (union sigval){.sival_int = client});
}

int domain_fail(struct node *node, int32_t pid, uint32_t fault)
{
    struct node_slot *first_faulted_client = NULL;
    struct node_bank *bank;
    int rc = node_begin(node, &bank);
    int32_t server = 0;

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < bank->slot_high; i++)
        if (bank->slots[i].phase != NODE_SLOT_FREE && bank->slots[i].pid == pid)
            first_faulted_client = &bank->slots[i];
    if (!first_faulted_client) {
        node_abandon(node);
        return -ESRCH;
    }
    first_faulted_client->fault = fault;
    if (first_faulted_client->mps && fault != CUDA_FAULT_MPS_CLIENT_TERMINATED)
        server = first_faulted_client->mps_server_pid;
    for (uint32_t i = 0; first_faulted_client->mps && fault != CUDA_FAULT_MPS_CLIENT_TERMINATED && i < bank->slot_high;
         i++) {
        struct node_slot *slot = &bank->slots[i];

        if (slot != first_faulted_client && in_domain(slot, first_faulted_client->mps_domain) && slot->fault == 0 &&
            slot->mps_server_pid == server && share_a_place(slot, first_faulted_client))
            slot->fault = CUDA_FAULT_MPS_RPC_FAILURE;
    }
    node_commit(node);
    domain_tell_server(server, DOMAIN_FAULTED, pid); /* which may not look before all of them have gone */
    node_wake(node);                                 /* processes that wait for their work look at once */
    return 0;
}
