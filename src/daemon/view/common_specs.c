#include "daemon/view/common_specs.h"

#include "api/spec.h"
#include "base/memory.h"

struct common_spec *common_specs_join(struct common_specs *specs, struct job_spec *spec, struct job_estimate *estimate)
{
    uint64_t digest = job_spec_digest(spec) ^ (uint64_t)estimate->bytes;
    struct common_spec *found, *added;

    HASH_FIND(hh, specs->all, &digest, sizeof digest, found);
    if (found && job_spec_equal(found->spec, spec) && job_estimate_equal(&found->estimate, estimate)) {
        job_spec_release(spec);
        job_estimate_release(estimate);
        found->users++;
        return found;
    }
    added = xcalloc(1, sizeof *added);
    *added = (struct common_spec){.digest = digest, .estimate = *estimate, .users = 1, .apart = found};
    added->spec = xcalloc(1, sizeof *added->spec);
    *added->spec = *spec;
    job_spec_init(spec);
    job_estimate_init(estimate);
    if (!added->apart)
        HASH_ADD(hh, specs->all, digest, sizeof added->digest, added);
    return added;
}

void common_specs_charge(struct common_specs *specs, struct common_spec *spec, uint32_t uid)
{
    user_bytes_charge(&specs->held, &spec->charge, uid, sizeof *spec + job_spec_bytes(spec->spec));
}

void common_specs_leave(struct common_specs *specs, struct common_spec *spec)
{
    if (--spec->users > 0)
        return;
    if (!spec->apart)
        HASH_DEL(specs->all, spec);
    user_bytes_discharge(&specs->held, &spec->charge);
    job_spec_release(spec->spec);
    free(spec->spec);
    job_estimate_release(&spec->estimate);
    free(spec);
}
