/* The common part of the descriptions of a sweep's jobs, and of the estimate made from it, is kept once. */
#ifndef CARMA_DAEMON_VIEW_COMMON_SPECS_H
#define CARMA_DAEMON_VIEW_COMMON_SPECS_H

#include "api/spec_estimate.h"
#include "base/hash.h"
#include "daemon/view/user_bytes.h"

struct job_spec;

struct common_spec {
    uint64_t digest;
    struct job_spec *spec; /* owned; without the members that each view has of its own: name, command, environment,
                              script */
    struct job_estimate estimate; /* owned */
    uint32_t users;
    struct charge charge;
    bool apart; /* another one has its digest: nobody finds it */
    UT_hash_handle hh;
};

struct common_specs {
    struct common_spec *all; /* uthash by digest */
    struct user_bytes held;  /* of the users that brought them */
};

/* Takes over both. */
struct common_spec *common_specs_join(struct common_specs *specs, struct job_spec *spec, struct job_estimate *estimate);

/* It is this user's, unless it is another's already. */
void common_specs_charge(struct common_specs *specs, struct common_spec *spec, uint32_t uid);

void common_specs_leave(struct common_specs *specs, struct common_spec *spec); /* it goes with its last user */

#endif
