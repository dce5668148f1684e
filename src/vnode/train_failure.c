#include <stdio.h>

#include "vnode/domain.h"
#include "vnode/train.h"

/* CUDA's own words for its errors. */
static const char *cuda_text(uint32_t error)
{
    switch (error) {
    case CUDA_FAULT_ECC:
        return "uncorrectable ECC error encountered";
    case CUDA_FAULT_ILLEGAL_ADDRESS:
        return "an illegal memory access was encountered";
    case CUDA_FAULT_LAUNCH_FAILED:
        return "unspecified launch failure";
    case CUDA_FAULT_MPS_RPC_FAILURE:
        return "the remote procedural call between the MPS server and the MPS client failed";
    case CUDA_FAULT_MPS_SERVER_NOT_READY:
        return "the MPS server is not ready to accept new MPS client requests";
    case CUDA_FAULT_MPS_CLIENT_TERMINATED:
        return "the MPS client has been terminated by the server";
    default:
        return "unknown error";
    }
}

void train_print_cuda_error(uint32_t error)
{
    fflush(stdout);
    fprintf(stderr,
            "Traceback (most recent call last):\n"
            "  File \"train.py\", line 1, in <module>\n"
            "    loss.backward()\n"
            "torch.AcceleratorError: CUDA error: %s\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might "
            "be incorrect.\n"
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
            cuda_text(error));
}
