/* NVML's return codes (enum nvml_return_code) in words. In a header, since the virtual library and carma's programs
 * share no other code. */
#ifndef CARMA_GPU_ERROR_TEXT_H
#define CARMA_GPU_ERROR_TEXT_H

static inline const char *nvml_error_text(int code)
{
    static const char *const texts[] = {
        /*  0 */ "Success",
        /*  1 */ "Uninitialized",
        /*  2 */ "Invalid argument",
        /*  3 */ "Not supported",
        /*  4 */ "No permission",
        /*  5 */ "Already initialized",
        /*  6 */ "Not found",
        /*  7 */ "Insufficient size",
        /*  8 */ "Insufficient external power",
        /*  9 */ "Driver not loaded",
        /* 10 */ "Timeout",
        /* 11 */ "Interrupt request issue",
        /* 12 */ "NVML shared library not found",
        /* 13 */ "Function not found",
        /* 14 */ "Corrupted infoROM",
        /* 15 */ "GPU is lost",
        /* 16 */ "GPU requires reset",
        /* 17 */ "GPU access blocked by the operating system",
        /* 18 */ "Driver and library version mismatch",
        /* 19 */ "In use by another client",
        /* 20 */ "Insufficient memory",
        /* 21 */ "No data",
        /* 22 */ "ECC is enabled, which vGPU does not support",
        /* 23 */ "Insufficient resources",
        /* 24 */ "Frequency not supported",
        /* 25 */ "Version of the argument not supported",
        /* 26 */ "Deprecated",
        /* 27 */ "Not ready",
        /* 28 */ "No GPU found",
        /* 29 */ "Invalid state",
    };

    return code >= 0 && code < (int)(sizeof texts / sizeof *texts) ? texts[code] : "Unknown error";
}

#endif
