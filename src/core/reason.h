/* Why a job waits: a code with its numbers, and the one sentence that `carma explain`, the queue and the log show. */
#ifndef CARMA_CORE_REASON_H
#define CARMA_CORE_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reason_code {
    REASON_NONE,         /* does not wait */
    REASON_HELD,         /* a person holds it */
    REASON_BEHIND,       /* FIFO: `ahead` jobs go first, `other` is the head */
    REASON_RETRY_FIRST,  /* `other`, a retried job, goes first */
    REASON_MEMORY,       /* needs needed_bytes on each of `wanted` GPUs; of those that lack it, `gpu` has the most free,
                            best_bytes */
    REASON_SM_ACTIVITY,  /* enough memory, but every such GPU is busier than cap_permille; `gpu`, the least, has
                            best_permille */
    REASON_SLOWDOWN,     /* sharing would slow a job down by best_permille at least, cap_permille is allowed */
    REASON_NO_IDLE_GPU,  /* wants idle GPUs: `qualified` of `wanted` are */
    REASON_RESERVED,     /* the GPUs left are reserved for `other`, which has waited over waited_ns */
    REASON_EXCLUSIVE,    /* the GPUs left are held by exclusive jobs, e.g. `other` */
    REASON_FULL,         /* the GPUs left run max_jobs_per_gpu jobs, e.g. `gpu` its `qualified` */
    REASON_SETTLING,     /* the remaining GPUs were given a job whose memory is not settled yet; until_ns where
                            known */
    REASON_NOT_MEASURED, /* no sample of the GPUs left yet */
    REASON_GPUS_LOST,    /* `qualified` of `wanted` GPUs are there at all */
    REASON_CLOSED,       /* programs do not start on GPU `gpu` (closing.h); closed until_ns */
    REASON_PERIOD,       /* the next decision is due at until_ns */
    REASON_OTHER_MODE,   /* job `other` uses the GPU by `share`, this one would by another way */
    REASON_OTHER_USER,   /* the GPU's MPS server is that of user `other` */
    REASON_OWN_SERVER,   /* of several GPUs, it begins an MPS server of its own: this one's has a client, `other` */
    REASON_CLIENTS,      /* the GPU's MPS server has `qualified` clients, as many as allowed */
    REASON_SHARE_FAULT,  /* the GPU's MPS server does not serve */
    REASON_NO_MPS,   /* asks for MPS, which `qualified` of the node's GPUs are configured for, `wanted` are needed */
    REASON_INSTANCE, /* wants several GPUs, but the `qualified` ones are MIG instances, of which a process can use
                        only one */
    REASON_TURNS,    /* it would take turns with `other`, which gains too little (slowdown.h) */
    REASON_PAIR,     /* it has run beside `other`'s workload: at worst slowed by best_permille, of cap_permille allowed;
                        or, cap_permille 0, done were best_ppm of least_ppm, in rates alone */
    REASON_SLOWED,   /* `other`, or 0: the job itself, is seen to be slowed by best_permille on the GPU, of cap_permille
                        that it bears */
    REASON_USER_JOBS,     /* its user runs `qualified` jobs, `allowed` at most */
    REASON_USER_GPUS,     /* its user has `qualified` GPUs and it wants `wanted` more, `allowed` at most */
    REASON_USER_MEMORY,   /* its user's jobs request held_bytes and it needed_bytes more, best_bytes at most */
    REASON_DEPENDS,       /* waits for `ahead` jobs, the first of them `other`, as `depends` says */
    REASON_ARRAY,         /* `qualified` jobs of its array are before it, `allowed` at a time */
    REASON_BEGIN,         /* it does not begin before until_ns */
    REASON_NEVER_MET,     /* never: it depended on job `other`, which ended otherwise */
    REASON_TOO_MANY_GPUS, /* never: wants `wanted` GPUs, the node has `qualified` */
    REASON_NEVER_FITS,    /* never: needs needed_bytes on a GPU, the largest has best_bytes */
    REASON_CODE_COUNT
};

struct reason {
    uint32_t code;   /* enum reason_code */
    uint32_t wanted; /* GPUs; 0: the reason is about one GPU */
    uint32_t qualified;
    uint32_t allowed;
    uint32_t gpu;     /* the GPU that best_* speaks of */
    uint32_t share;   /* enum share_mode */
    uint32_t depends; /* enum depends_kind */
    uint64_t ahead;
    uint64_t other;
    int64_t needed_bytes;
    int64_t best_bytes;
    int64_t held_bytes;
    int64_t until_ns;
    int32_t best_permille;
    int32_t cap_permille;
    int64_t best_ppm, least_ppm;
    int64_t waited_ns;    /* `other` has waited at least so long */
    uint64_t resident;    /* a job of the user in the way; 0: there is none */
    const char *owner;    /* borrowed: the name of that user, which the core does not know; NULL: nor does anybody */
    bool request_unknown; /* it counts with whole GPUs, since its need is unknown */
};

#define REASON_TEXT 256

const char *reason_name(uint32_t code); /* "memory", "sm-activity", ... */
char *reason_format(const struct reason *reason, int64_t now_ns, char text[static REASON_TEXT]);

#endif
