/* Why a job failed, from all that is known: one row per case. */
#include "unit.h"

#include "base/xid.h"
#include "launch/cause.h"

#define FREE(bytes, ...)                                                                                               \
    (struct cause_evidence)                                                                                            \
    {                                                                                                                  \
        .free_bytes = bytes, __VA_ARGS__                                                                               \
    }
#define E(...) FREE(-1, __VA_ARGS__)

TEST(test_causes)
{
    const struct {
        const char *what;
        struct cause_evidence evidence;
        enum exit_cause cause;
    } rows[] = {
        /* an end that is not a failure, or not the job's */
        {"status 0", E(.exit_status = 0), EXIT_COMPLETED},
        {"status 0, with any output", E(.output = OUTPUT_GPU_OOM, .xid = 79, .mps = true, .mps_fault = true),
         EXIT_COMPLETED},
        {"cancelled", E(.exit_status = -1, .signal = 15, .stopped = true), EXIT_FAILED},
        {"cancelled, with its output then", E(.exit_status = 1, .stopped = true, .output = OUTPUT_GPU_OOM),
         EXIT_FAILED},
        {"cancelled, ended in order", E(.stopped = true), EXIT_COMPLETED},
        {"time up", E(.exit_status = -1, .signal = 15, .stopped = true, .timed_out = true), EXIT_TIMEOUT},
        {"idle", E(.exit_status = -1, .signal = 15, .stopped = true, .timed_out = true, .idle = true), EXIT_IDLE},
        {"time up, ended in order", E(.stopped = true, .timed_out = true), EXIT_TIMEOUT},
        {"warned of its time, and left", E(.exit_status = 1, .warned = true, .requeue = true), EXIT_TIMEOUT},
        {"ended by the warning", E(.exit_status = -1, .signal = 10, .warned = true, .requeue = true), EXIT_TIMEOUT},
        {"warned, after an out-of-memory error that it caught",
         E(.exit_status = 1, .warned = true, .requeue = true, .output = OUTPUT_GPU_OOM), EXIT_TIMEOUT},
        {"warned, and done", E(.warned = true, .requeue = true), EXIT_COMPLETED},
        {"warned, and not to come back", E(.exit_status = 1, .warned = true), EXIT_FAILED},
        {"to come back, and not warned", E(.exit_status = 1, .requeue = true), EXIT_FAILED},
        {"warned, and cancelled", E(.exit_status = 1, .warned = true, .requeue = true, .stopped = true), EXIT_FAILED},
        {"warned, and its GPU lost", E(.exit_status = 1, .warned = true, .requeue = true, .gpu_lost = true),
         EXIT_GPU_ERROR},
        /* its own */
        {"a bug", E(.exit_status = 1), EXIT_FAILED},
        {"a signal", E(.exit_status = -1, .signal = 11), EXIT_SIGNALLED},
        {"a fault of its own", E(.exit_status = 1, .output = OUTPUT_GPU_FAULT), EXIT_FAILED},
        {"a fault of its own, with Xid", E(.exit_status = 1, .output = OUTPUT_GPU_FAULT, .xid = 31), EXIT_FAILED},
        {"an application's Xid, maybe a neighbour's", E(.exit_status = 1, .xid = 13), EXIT_FAILED},
        {"clean-up after somebody's end", E(.exit_status = 1, .xid = 45), EXIT_FAILED},
        {"words of MPS without MPS", E(.exit_status = 1, .output = OUTPUT_MPS), EXIT_FAILED},
        {"a domain that is not its own faulted", E(.exit_status = 1, .mps_fault = true), EXIT_FAILED},
        /* GPU memory */
        {"out of memory", E(.exit_status = 1, .output = OUTPUT_GPU_OOM), EXIT_GPU_OOM},
        {"out of memory, then aborted", E(.exit_status = -1, .signal = 6, .output = OUTPUT_GPU_OOM), EXIT_GPU_OOM},
        {"out of memory while the domain faulted",
         E(.exit_status = 1, .output = OUTPUT_GPU_OOM, .mps = true, .mps_fault = true), EXIT_GPU_OOM},
        {"out of memory after a row was remapped", E(.exit_status = 1, .output = OUTPUT_GPU_OOM, .xid = 63),
         EXIT_GPU_OOM},
        {"a handle", E(.exit_status = 1, .output = OUTPUT_GPU_HANDLE), EXIT_GPU_HANDLE},
        {"maybe a handle, memory short", FREE(100 * MIB, .exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE),
         EXIT_GPU_HANDLE},
        {"maybe a handle, none free", FREE(0, .exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE), EXIT_GPU_HANDLE},
        {"maybe a handle, memory not short",
         FREE(CAUSE_SHORT_BYTES, .exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE), EXIT_FAILED},
        {"maybe a handle, and little left below its fence",
         FREE(2 * GIB, .exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE, .short_bytes = 3 * GIB), EXIT_GPU_HANDLE},
        {"maybe a handle, nobody looked", E(.exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE), EXIT_FAILED},
        {"memory short, and it said nothing", FREE(0, .exit_status = 1), EXIT_FAILED},
        /* the host's memory */
        {"killed by the kernel", E(.exit_status = -1, .signal = 9, .host_oom_kill = true), EXIT_HOST_OOM},
        {"killed by the kernel, as its shell says", E(.exit_status = 137, .host_oom_kill = true), EXIT_HOST_OOM},
        {"killed by the kernel after a caught out-of-memory error",
         E(.exit_status = -1, .signal = 9, .host_oom_kill = true, .output = OUTPUT_GPU_OOM), EXIT_HOST_OOM},
        {"killed by somebody", E(.exit_status = -1, .signal = 9), EXIT_SIGNALLED},
        {"the kernel killed a process of its own group",
         E(.exit_status = 1, .host_oom_kill = true, .host_oom_own = true, .output = OUTPUT_GPU_OOM), EXIT_HOST_OOM},
        {"the kernel killed a neighbour", E(.exit_status = 1, .host_oom_kill = true), EXIT_FAILED},
        {"it says so", E(.exit_status = 1, .output = OUTPUT_HOST_OOM), EXIT_HOST_OOM},
        /* the GPU */
        {"double-bit error", E(.exit_status = 1, .xid = 48), EXIT_GPU_ERROR},
        {"an Xid that nobody knows", E(.exit_status = 1, .xid = 999), EXIT_GPU_ERROR},
        {"the GPU has to be reset", E(.exit_status = 1, .xid = 154), EXIT_GPU_ERROR},
        {"fallen off the bus", E(.exit_status = -1, .signal = 6, .xid = 79), EXIT_GPU_ERROR},
        {"lost, with any output", E(.exit_status = 1, .output = OUTPUT_GPU_OOM, .gpu_lost = true), EXIT_GPU_ERROR},
        {"it says so itself", E(.exit_status = 1, .output = OUTPUT_GPU_ERROR), EXIT_GPU_ERROR},
        {"the GPU's failure under MPS is not the fault of a job",
         E(.exit_status = 1, .output = OUTPUT_GPU_FAULT, .xid = 95, .mps = true, .mps_fault = true,
           .first_fault = true),
         EXIT_GPU_ERROR},
        /* MPS */
        {"MPS itself", E(.exit_status = 1, .output = OUTPUT_MPS, .mps = true), EXIT_MPS_FAULT},
        {"MPS itself, first of all", E(.exit_status = 1, .output = OUTPUT_MPS, .mps = true, .mps_fault = true),
         EXIT_MPS_FAULT},
        {"the one",
         E(.exit_status = 1, .output = OUTPUT_GPU_FAULT, .mps = true, .mps_fault = true, .first_fault = true),
         EXIT_FAILED},
        {"the one, aborted",
         E(.exit_status = -1, .signal = 6, .output = OUTPUT_GPU_FAULT, .mps = true, .mps_fault = true,
           .first_fault = true),
         EXIT_SIGNALLED},
        {"a victim that says the same", E(.exit_status = 1, .output = OUTPUT_GPU_FAULT, .mps = true, .mps_fault = true),
         EXIT_MPS_FAULT},
        {"a victim that says nothing", E(.exit_status = -1, .signal = 6, .mps = true, .mps_fault = true),
         EXIT_MPS_FAULT},
        {"a victim with a message that may mean memory",
         FREE(0, .exit_status = 1, .output = OUTPUT_GPU_HANDLE_MAYBE, .mps = true, .mps_fault = true), EXIT_MPS_FAULT},
        {"a fault of its own, and the domain stood", E(.exit_status = 1, .output = OUTPUT_GPU_FAULT, .mps = true),
         EXIT_FAILED},
    };

    for (size_t i = 0; i < array_size(rows); i++) {
        enum exit_cause cause = cause_decide(&rows[i].evidence);
        if (cause != rows[i].cause)
            fail_msg("%s: %s", rows[i].what, exit_cause_name(cause));
    }
}

/* The first: all that NVIDIA's catalogue resets a GPU for, and some that its Kubernetes plugin calls unhealthy. */
TEST(test_xids)
{
    static const uint32_t hardware[] = {46,  48,  62,  63,  64,  74,  79,  92,  94,  95,
                                        119, 120, 140, 143, 145, 149, 154, 155, 156, 158};
    static const uint32_t application[] = {13, 31, 43, 45, 68, 109};

    for (size_t i = 0; i < array_size(hardware); i++)
        if (!xid_is_hardware(hardware[i]) || !*xid_text(hardware[i]))
            fail_msg("Xid %u", hardware[i]);
    for (size_t i = 0; i < array_size(application); i++)
        if (xid_is_hardware(application[i]) || !*xid_text(application[i]))
            fail_msg("Xid %u", application[i]);
    assert_true(xid_is_hardware(8) && xid_is_hardware(1000)); /* all codes that the driver causes and no application
                                                                 does */
    assert_false(xid_is_hardware(0));
    assert_string_equal(xid_text(0), "");
}

TEST(test_what_an_xid_brings_with_it)
{
    assert_true(xid_follows(45, 2 * NS_PER_SEC, 48, NS_PER_SEC));
    assert_false(xid_follows(45, 60 * NS_PER_SEC, 48, NS_PER_SEC)); /* another's, later */
    assert_false(xid_follows(45, 2 * NS_PER_SEC, 43, NS_PER_SEC));
    assert_false(xid_follows(79, 2 * NS_PER_SEC, 48, NS_PER_SEC));
    assert_false(xid_follows(45, NS_PER_SEC, 0, 0));
}
