#include "launch/cause.h"

#include <signal.h>

#include "base/xid.h"

/* A shell says the same of its last command in its own exit status. */
static bool was_killed(const struct cause_evidence *evidence)
{
    return evidence->signal == SIGKILL || evidence->exit_status == 128 + SIGKILL;
}

/* A fault of one client reaches all, and the text does not say which client caused it (NVIDIA, "Multi-Process Service",
 * error containment). The first that ends with it is taken for the cause. */
static bool is_victim(const struct cause_evidence *evidence)
{
    if (!evidence->mps)
        return false;
    return evidence->output == OUTPUT_MPS || (evidence->mps_fault && !evidence->first_fault);
}

enum exit_cause cause_decide(const struct cause_evidence *evidence)
{
    if (evidence->expired)
        return EXIT_EXPIRED;
    if (evidence->orphan)
        return EXIT_ORPHAN;
    if (evidence->timed_out)
        return evidence->idle ? EXIT_IDLE : EXIT_TIMEOUT; /* also where it ended in order when it was asked to */
    if (evidence->exit_status == 0)
        return EXIT_COMPLETED;
    if (evidence->stopped)
        return EXIT_FAILED;
    /* In a group that others are in, too, the one that was killed may be theirs. */
    if (evidence->host_oom_kill && (evidence->host_oom_own || was_killed(evidence)))
        return EXIT_HOST_OOM;
    if (evidence->gpu_lost)
        return EXIT_GPU_ERROR;
    if (evidence->warned && evidence->requeue)
        return EXIT_TIMEOUT; /* it saved its state and left before it was made to: it has not done */
    /* its message about memory is its own last word, regardless of its GPU and its neighbours meanwhile */
    if (evidence->output == OUTPUT_GPU_OOM)
        return EXIT_GPU_OOM;
    if (evidence->output == OUTPUT_GPU_HANDLE)
        return EXIT_GPU_HANDLE;
    if (evidence->output == OUTPUT_HOST_OOM)
        return EXIT_HOST_OOM;
    if (evidence->output == OUTPUT_GPU_ERROR || xid_is_hardware(evidence->xid))
        return EXIT_GPU_ERROR;
    if (is_victim(evidence))
        return EXIT_MPS_FAULT;
    if (evidence->output == OUTPUT_GPU_HANDLE_MAYBE && evidence->free_bytes >= 0 &&
        evidence->free_bytes < (evidence->short_bytes ? evidence->short_bytes : CAUSE_SHORT_BYTES))
        return EXIT_GPU_HANDLE;
    return evidence->signal ? EXIT_SIGNALLED : EXIT_FAILED;
}
