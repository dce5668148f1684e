/* The clients of an MPS server on the virtual node, as the node has them. */
#ifndef CARMA_TESTS_DOMAIN_CLIENTS_H
#define CARMA_TESTS_DOMAIN_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "vnode/node.h"

struct domain_client {
    int32_t pid;
    uint32_t uid;
    int32_t server_pid; /* 0: not yet served */
    uint32_t gpus;      /* bit g: GPU g of the node */
    uint32_t fault;     /* enum cuda_fault with which it has to end; 0: none */
};

static inline bool in_domain(const struct node_slot *slot, uint64_t domain)
{
    return slot->phase != NODE_SLOT_FREE && slot->mps && slot->mps_domain == domain;
}

/* The domain's clients in *clients (room for NODE_MAX_SLOTS), *count of them; 0 or a negative errno. A client with a
 * fault has not ended yet: the server is in FAULT while there is one. */
static inline int domain_clients(struct node *node, uint64_t domain, struct domain_client *clients, uint32_t *count)
{
    struct node_bank *bank;
    int rc = node_begin(node, &bank);

    if (rc < 0)
        return rc;
    *count = 0;
    for (uint32_t i = 0; i < bank->slot_high; i++) {
        const struct node_slot *slot = &bank->slots[i];
        struct domain_client *client = &clients[*count];

        if (!in_domain(slot, domain))
            continue;
        *client = (struct domain_client){
            .pid = slot->pid, .uid = slot->uid, .server_pid = slot->mps_server_pid, .fault = slot->fault};
        for (uint32_t k = 0; k < slot->use_count && k < NODE_MAX_GPUS; k++)
            client->gpus |= 1u << slot->uses[k].gpu % 32;
        (*count)++;
    }
    node_commit(node);
    return 0;
}

/* Makes `server_pid` the server of the domain's clients that have none. 0 or a negative errno. */
static inline int domain_serve(struct node *node, uint64_t domain, int32_t server_pid)
{
    struct node_bank *bank;
    int rc = node_begin(node, &bank);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < bank->slot_high; i++)
        if (in_domain(&bank->slots[i], domain) && bank->slots[i].mps_server_pid == 0)
            bank->slots[i].mps_server_pid = server_pid;
    node_commit(node);
    return 0;
}

#endif
