/* The part of DCGM's C ABI that carma uses (libdcgm.so.4 and .so.3), as declarations of our own. The facts (names,
 * layouts, numbers) are after NVIDIA's DCGM API reference. The prototypes are for `__typeof__`, and for the tests' fake
 * to define; they are never linked.
 *
 * Functions return 0 or an enum dcgm_status as an int. Structures with a `version` member are filled in by the caller
 * with DCGM_VERSION(struct x, n), or are refused with DCGM_VERSION_MISMATCH. */
#ifndef CARMA_GPU_DCGM_ABI_H
#define CARMA_GPU_DCGM_ABI_H

#include <stdint.h>

#define DCGM_API __attribute__((visibility("default")))

/* Size in the low three bytes, version above. */
#define DCGM_VERSION(type, number) ((unsigned int)(sizeof(type) | ((unsigned int)(number) << 24)))

enum dcgm_status {
    DCGM_OK = 0,
    DCGM_BAD_PARAMETER = -1,
    DCGM_GENERIC_ERROR = -3,
    DCGM_NOT_SUPPORTED = -6,
    DCGM_INIT_ERROR = -7,
    DCGM_UNINITIALIZED = -10,
    DCGM_VERSION_MISMATCH = -12,
    DCGM_NO_DATA = -14,
    DCGM_NOT_WATCHED = -16,
    DCGM_NO_PERMISSION = -17,
    DCGM_CONNECTION_NOT_VALID = -21,
    DCGM_GPU_NOT_SUPPORTED = -22,
    DCGM_DUPLICATE_KEY = -26,
    DCGM_REQUIRES_ROOT = -29,
    DCGM_PROFILING_NOT_SUPPORTED = -36,
    DCGM_PROFILING_MULTI_PASS = -38,
};

/* By number: the names have changed between releases. */
enum dcgm_field {
    DCGM_FIELD_UUID = 54,
    DCGM_FIELD_XID = 230,
    DCGM_FIELD_GRAPHICS_ACTIVITY = 1001,
    DCGM_FIELD_SM_ACTIVITY = 1002,
    DCGM_FIELD_SM_OCCUPANCY = 1003,
    DCGM_FIELD_TENSOR_ACTIVITY = 1004,
    DCGM_FIELD_DRAM_ACTIVITY = 1005,
    DCGM_FIELD_PCIE_TX = 1009,
    DCGM_FIELD_PCIE_RX = 1010,
};

enum dcgm_entity_group { DCGM_ENTITY_GPU = 1, DCGM_ENTITY_GPU_INSTANCE = 4, DCGM_ENTITY_COMPUTE_INSTANCE = 5 };

enum dcgm_field_type { DCGM_TYPE_DOUBLE = 'd', DCGM_TYPE_INT64 = 'i', DCGM_TYPE_STRING = 's' };

/* Marks of "no value": these and all above them, by reason. */
#define DCGM_BLANK_INT64  INT64_C(0x7ffffffffffffff0)
#define DCGM_BLANK_DOUBLE 140737488355328.0
enum dcgm_blank { DCGM_BLANK, DCGM_BLANK_NOT_FOUND, DCGM_BLANK_NOT_SUPPORTED, DCGM_BLANK_NOT_PERMITTED };

#define DCGM_GROUP_EMPTY   1 /* a kind of group */
#define DCGM_MODE_AUTO     1 /* the engine measures on threads of its own */
#define DCGM_SEVERITY_NONE 0
#define DCGM_MAX_GPUS      32
#define DCGM_MAX_MIG_PARTS 14 /* per GPU */
#define DCGM_MODULES_LEAST 8  /* how long dcgm_embedded's list was in the releases known */
#define DCGM_MODULES_MOST  16

struct dcgm_connect {
    unsigned int version; /* 2 */
    unsigned int persist_after_disconnect;
    unsigned int timeout_ms;
    unsigned int address_is_unix_socket;
};

/* Version 1. Its size in `version` is that of a library's own list of modules, which grew with the releases. */
struct dcgm_embedded {
    unsigned int version;
    int mode;
    uintptr_t handle; /* out */
    const char *log_file;
    int severity;
    unsigned int denied_count;
    unsigned int denied[DCGM_MODULES_MOST];
};

struct dcgm_pair {
    int group; /* enum dcgm_entity_group */
    unsigned int id;
};

struct dcgm_mig_part {
    struct dcgm_pair entity;
    struct dcgm_pair parent;
    char gpu_uuid[128];
    unsigned int nvml_gpu_index;
    unsigned int nvml_gpu_instance;
    unsigned int nvml_compute_instance; /* of a compute instance only */
    unsigned int nvml_profile;
    unsigned int nvml_slices;
};

struct dcgm_mig_hierarchy {
    unsigned int version; /* 2 */
    unsigned int count;
    struct dcgm_mig_part parts[DCGM_MAX_GPUS * DCGM_MAX_MIG_PARTS];
};

/* About 4.1 kB: never an array of them on the stack. */
struct dcgm_field_value {
    unsigned int version;
    unsigned short field;
    unsigned short type; /* enum dcgm_field_type */
    int status;          /* enum dcgm_status */
    int64_t at_us;       /* since the Unix epoch */
    union {
        int64_t int64;
        double number;
        char text[256];
        char blob[4096];
    } value;
};

/* 0: go on; negative: enough. */
typedef int dcgm_value_callback(int entity_group, unsigned int entity_id, struct dcgm_field_value *values, int count,
                                void *user);

DCGM_API int dcgmInit(void);
DCGM_API int dcgmShutdown(void);
DCGM_API const char *errorString(int status);
DCGM_API int dcgmConnect_v2(const char *address, struct dcgm_connect *connect, uintptr_t *handle);
DCGM_API int dcgmDisconnect(uintptr_t handle);
DCGM_API int dcgmStartEmbedded_v2(struct dcgm_embedded *embedded);
DCGM_API int dcgmStartEmbedded(int mode, uintptr_t *handle);
DCGM_API int dcgmStopEmbedded(uintptr_t handle);
DCGM_API int dcgmGetAllSupportedDevices(uintptr_t handle, unsigned int ids[DCGM_MAX_GPUS], int *count);
DCGM_API int dcgmGetGpuInstanceHierarchy(uintptr_t handle, struct dcgm_mig_hierarchy *hierarchy);
DCGM_API int dcgmGroupCreate(uintptr_t handle, int kind, const char *name, uintptr_t *group);
DCGM_API int dcgmGroupAddEntity(uintptr_t handle, uintptr_t group, int entity_group, unsigned int entity_id);
DCGM_API int dcgmFieldGroupCreate(uintptr_t handle, int count, const unsigned short *fields, const char *name,
                                  uintptr_t *field_group);
DCGM_API int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t field_group, long long period_us,
                             double keep_s, int keep_samples);
DCGM_API int dcgmUnwatchFields(uintptr_t handle, uintptr_t group, uintptr_t field_group);
DCGM_API int dcgmUpdateAllFields(uintptr_t handle, int wait);
DCGM_API int dcgmGetLatestValues_v2(uintptr_t handle, uintptr_t group, uintptr_t field_group,
                                    dcgm_value_callback *callback, void *user);

#endif
