/* Faults by name, as carma-vnode injects them: some last, some strike once, some do both. */
#ifndef CARMA_VNODE_INJECT_H
#define CARMA_VNODE_INJECT_H

#include "vnode/fault.h"

struct strike {
    uint32_t gpus;    /* bit g: GPU g */
    int64_t until_ns; /* node time at which it ends; INT64_MAX: when it is cleared */
    uint32_t xid;     /* 0: the fault's own, if it has one */
    int32_t pid;      /* 0: not said */
    const char *call; /* NULL: not said */
    int32_t code;     /* 0: not said */
};

/* Injects the fault of that name. */
int inject(struct node *node, const char *name, const struct strike *strike, struct error *err);

/* Ends all that last. Order of the indices and past events of processes stay. */
void inject_clear(struct node *node);

/* "  name description", a line per fault; for --help. The caller frees it. */
char *inject_help(void);

/* The name of a lasting fault. */
const char *inject_name(enum node_fault_kind kind);

#endif
