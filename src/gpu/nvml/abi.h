/* The part of NVML's C ABI that carma uses and that its virtual node offers: own declarations, so that neither side
 * needs NVIDIA's header. Facts (names, layouts, numbers) after NVIDIA's NVML API reference and nvidia-ml-py 13.
 *
 * The prototypes serve both sides: the virtual library defines these functions, a user of the real one resolves them
 * with dlsym into `__typeof__(nvmlDeviceGetUUID) *uuid;`. They are never linked.
 *
 * Every function returns an enum nvml_return_code as an int. Strings are NUL-terminated in the caller's buffer. The
 * caller fills in the `version` member of a structure with NVML_VERSION(struct x, n). A library that does not know that
 * version refuses it with NVML_ERROR_ARGUMENT_VERSION_MISMATCH. */
#ifndef CARMA_GPU_NVML_ABI_H
#define CARMA_GPU_NVML_ABI_H

#include <stdint.h>

#define NVML_API __attribute__((visibility("default")))

/* Size in the low three bytes, version above. */
#define NVML_VERSION(type, number) ((unsigned int)(sizeof(type) | ((unsigned int)(number) << 24)))

enum nvml_return_code {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_DEPRECATED = 26,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_INVALID_STATE = 29,
    NVML_ERROR_UNKNOWN = 999,
};

#define NVML_VALUE_NOT_AVAILABLE UINT64_MAX /* a memory size that the driver does not tell */
#define NVML_NO_INSTANCE         UINT32_MAX /* GPU and compute instance id where MIG is off */

#define NVML_UUID_ROOM           96
#define NVML_NAME_ROOM           96
#define NVML_PCI_BUS_ID_ROOM     32
#define NVML_PCI_BUS_ID_OLD_ROOM 16
#define NVML_SYSTEM_VERSION_ROOM 80

#define NVML_FEATURE_DISABLED 0
#define NVML_FEATURE_ENABLED  1

#define NVML_TEMPERATURE_GPU 0

enum nvml_temperature_threshold {
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
};

enum nvml_clock { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };

/* Why a GPU's clocks are not higher; `throttle reasons` until driver 535, `event reasons` since. */
enum nvml_clocks_reason {
    NVML_CLOCKS_IDLE = 0x1,
    NVML_CLOCKS_SETTING = 0x2,           /* set by an administrator */
    NVML_CLOCKS_POWER_CAP = 0x4,         /* its power limit */
    NVML_CLOCKS_HARDWARE_SLOWDOWN = 0x8, /* heat, or its power supply */
    NVML_CLOCKS_SYNC_BOOST = 0x10,       /* of a group of GPUs, another one */
    NVML_CLOCKS_HEAT = 0x20,
    NVML_CLOCKS_HARDWARE_HEAT = 0x40,
    NVML_CLOCKS_POWER_BRAKE = 0x80, /* the server's power supply */
    NVML_CLOCKS_DISPLAY = 0x100,
};

enum nvml_ecc_kind { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1 };
#define NVML_ECC_SINCE_LOADED 0

enum nvml_compute_mode {
    NVML_COMPUTEMODE_DEFAULT = 0,
    NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
    NVML_COMPUTEMODE_PROHIBITED = 2,
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
};

enum nvml_architecture {
    NVML_DEVICE_ARCH_HOPPER = 9,
};

#define NVML_BRAND_NVIDIA  14
#define NVML_BUS_TYPE_PCIE 2

enum nvml_process_mode {
    NVML_PROCESS_MODE_COMPUTE = 0,
    NVML_PROCESS_MODE_GRAPHICS = 1,
    NVML_PROCESS_MODE_MPS = 2,
};

enum nvml_value_type {
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

/* Fields of nvmlDeviceGetFieldValues. */
enum nvml_field {
    NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83, /* mJ, unsigned long long */
    NVML_FI_DEV_POWER_AVERAGE = 185,           /* mW, unsigned int */
    NVML_FI_DEV_POWER_INSTANT = 186,
    NVML_FI_DEV_POWER_MIN_LIMIT = 187,
    NVML_FI_DEV_POWER_MAX_LIMIT = 188,
    NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189,
    NVML_FI_DEV_POWER_CURRENT_LIMIT = 190,
};

/* GPM metrics: percentages, 0..100, but traffic. */
enum nvml_gpm_metric_id {
    NVML_GPM_METRIC_GRAPHICS_UTIL = 1,
    NVML_GPM_METRIC_SM_UTIL = 2,
    NVML_GPM_METRIC_SM_OCCUPANCY = 3,
    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5,
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
    NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20, /* MiB/s, from the GPU to the host */
    NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21, /* MiB/s, from the host to the GPU */
};

#define NVML_GPM_METRICS_GET_VERSION 1 /* not NVML_VERSION(): GPM uses bare numbers */
#define NVML_GPM_SUPPORT_VERSION     1

#define NVML_EVENT_XID_CRITICAL_ERROR 0x8ull

struct nvml_device;     /* opaque: nvmlDevice_t is struct nvml_device * */
struct nvml_gpm_sample; /* opaque: nvmlGpmSample_t */
struct nvml_event_set;  /* opaque: nvmlEventSet_t */

struct nvml_pci_info { /* v3; v2 has the same size and the same first seven members, no bus_id */
    char bus_id_old[NVML_PCI_BUS_ID_OLD_ROOM]; /* "0000:01:00.0" */
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pci_device_id; /* device id in the upper half, vendor 0x10de in the lower */
    unsigned int pci_subsystem_id;
    char bus_id[NVML_PCI_BUS_ID_ROOM]; /* "00000000:01:00.0" */
};

struct nvml_pci_info_v2 {
    char bus_id[NVML_PCI_BUS_ID_OLD_ROOM];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pci_device_id;
    unsigned int pci_subsystem_id;
    unsigned int reserved[4];
};

struct nvml_memory { /* bytes; `used` includes the driver's part */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_memory_v2 { /* bytes; total = reserved + free + used */
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_utilization { /* percent of the last sampling period */
    unsigned int gpu;     /* some kernel ran: not SM activity */
    unsigned int memory;  /* device memory was being read or written */
};

struct nvml_process_info_v1 { /* of the functions without a version suffix */
    unsigned int pid;
    unsigned long long used_bytes; /* or NVML_VALUE_NOT_AVAILABLE */
};

struct nvml_process_info { /* _v2 and _v3 */
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance_id;
    unsigned int compute_instance_id;
};

struct nvml_process_detail {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance_id;
    unsigned int compute_instance_id;
    unsigned long long used_protected_bytes;
};

struct nvml_process_detail_list { /* version 1 */
    unsigned int version;
    unsigned int mode;  /* enum nvml_process_mode */
    unsigned int count; /* in: size of the array; out: processes */
    struct nvml_process_detail *processes;
};

struct nvml_process_utilization { /* percent */
    unsigned int pid;
    unsigned long long at_us;
    unsigned int sm;
    unsigned int memory;
    unsigned int encoder;
    unsigned int decoder;
};

struct nvml_bar1_memory { /* bytes */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

union nvml_value {
    double as_double;
    unsigned int as_uint;
    unsigned long as_ulong;
    unsigned long long as_ulonglong;
    signed long long as_longlong;
    int as_int;
    unsigned short as_ushort;
};

struct nvml_field_value {
    unsigned int field_id; /* enum nvml_field */
    unsigned int scope_id;
    long long at_us;
    long long latency_us;
    unsigned int value_type; /* enum nvml_value_type */
    int nvml_return;         /* whether this field is valid */
    union nvml_value value;
};

struct nvml_temperature { /* version 1 */
    unsigned int version;
    unsigned int sensor;
    int celsius;
};

struct nvml_uuid { /* version 1; type 1: text, 2: 16 bytes */
    unsigned int version;
    unsigned int type;
    union {
        char text[41];
        unsigned char bytes[16];
    } value;
};

struct nvml_attributes { /* of a MIG handle, v2 */
    unsigned int multiprocessor_count;
    unsigned int copy_engines;
    unsigned int decoders;
    unsigned int encoders;
    unsigned int jpeg_engines;
    unsigned int ofa_engines;
    unsigned int gpu_instance_slices;
    unsigned int compute_instance_slices;
    unsigned long long memory_mib;
};

struct nvml_event_data {
    struct nvml_device *device;
    unsigned long long type;
    unsigned long long data; /* of NVML_EVENT_XID_CRITICAL_ERROR: the Xid */
    unsigned int gpu_instance_id;
    unsigned int compute_instance_id;
};

struct nvml_gpm_metric {
    unsigned int id; /* in: enum nvml_gpm_metric_id */
    int nvml_return; /* whether this metric is valid */
    double value;
    struct {
        const char *short_name;
        const char *long_name;
        const char *unit;
    } info;
};

/* The real structure ends in NVML_GPM_METRIC_MAX metrics, a number that grew from 98 to 477 with the drivers. Allocate
 * NVML_GPM_METRICS_ROOM metrics, and set `count` to those that are asked for; a library touches no more than `count`.
 * */
#define NVML_GPM_METRICS_ROOM 512
struct nvml_gpm_metrics_get {
    unsigned int version; /* NVML_GPM_METRICS_GET_VERSION */
    unsigned int count;
    struct nvml_gpm_sample *sample1; /* the earlier one */
    struct nvml_gpm_sample *sample2;
    struct nvml_gpm_metric metrics[];
};

struct nvml_gpm_support {
    unsigned int version; /* NVML_GPM_SUPPORT_VERSION */
    unsigned int supported;
};

_Static_assert(sizeof(struct nvml_pci_info) == 68 && sizeof(struct nvml_pci_info_v2) == 52, "NVML layout");
_Static_assert(NVML_VERSION(struct nvml_memory_v2, 2) == 0x02000028, "NVML layout");
_Static_assert(sizeof(struct nvml_process_info_v1) == 16 && sizeof(struct nvml_process_info) == 24, "NVML layout");
_Static_assert(NVML_VERSION(struct nvml_process_detail_list, 1) == 0x01000018, "NVML layout");
_Static_assert(sizeof(struct nvml_process_detail) == 32 && sizeof(struct nvml_process_utilization) == 32,
               "NVML layout");
_Static_assert(sizeof(struct nvml_field_value) == 40 && sizeof(struct nvml_event_data) == 32, "NVML layout");
_Static_assert(NVML_VERSION(struct nvml_temperature, 1) == 0x0100000c, "NVML layout");
_Static_assert(NVML_VERSION(struct nvml_uuid, 1) == 0x01000034, "NVML layout");
_Static_assert(sizeof(struct nvml_gpm_metric) == 40 && sizeof(struct nvml_gpm_metrics_get) == 24, "NVML layout");

/* No part of NVML: the host's memory beside a virtual GPU that has none of its own, in place of /proc/meminfo. 0, or
 * -1: it has one. */
NVML_API int nvmlVirtualHostMemory(int64_t *total_bytes, int64_t *available_bytes);

/* Initialisation: nvmlInit is the oldest form, nvmlInit_v2 today's. */
NVML_API int nvmlInit(void);
NVML_API int nvmlInit_v2(void);
NVML_API int nvmlInitWithFlags(unsigned int flags);
NVML_API int nvmlShutdown(void);
NVML_API const char *nvmlErrorString(int code);

/* The system. */
NVML_API int nvmlSystemGetDriverVersion(char *text, unsigned int room);
NVML_API int nvmlSystemGetNVMLVersion(char *text, unsigned int room);
NVML_API int nvmlSystemGetCudaDriverVersion(int *version); /* 1000 * major + 10 * minor */
NVML_API int nvmlSystemGetCudaDriverVersion_v2(int *version);
NVML_API int nvmlSystemGetProcessName(unsigned int pid, char *text, unsigned int room);

/* Devices. */
NVML_API int nvmlDeviceGetCount(unsigned int *count);
NVML_API int nvmlDeviceGetCount_v2(unsigned int *count);
NVML_API int nvmlDeviceGetHandleByIndex(unsigned int index, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleByUUIDV(const struct nvml_uuid *uuid, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device);
NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device);

/* Identity and kind. */
NVML_API int nvmlDeviceGetIndex(struct nvml_device *device, unsigned int *index);
NVML_API int nvmlDeviceGetUUID(struct nvml_device *device, char *text, unsigned int room);
NVML_API int nvmlDeviceGetName(struct nvml_device *device, char *text, unsigned int room);
NVML_API int nvmlDeviceGetSerial(struct nvml_device *device, char *text, unsigned int room);
NVML_API int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned int *minor);
NVML_API int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *info);
NVML_API int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info_v2 *info);
NVML_API int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *info);
NVML_API int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor);
NVML_API int nvmlDeviceGetArchitecture(struct nvml_device *device, unsigned int *architecture);
NVML_API int nvmlDeviceGetBrand(struct nvml_device *device, unsigned int *brand);
NVML_API int nvmlDeviceGetBusType(struct nvml_device *device, unsigned int *type);
NVML_API int nvmlDeviceGetNumGpuCores(struct nvml_device *device, unsigned int *count);
NVML_API int nvmlDeviceGetComputeMode(struct nvml_device *device, unsigned int *mode);
NVML_API int nvmlDeviceGetPersistenceMode(struct nvml_device *device, unsigned int *mode);
NVML_API int nvmlDeviceGetDisplayMode(struct nvml_device *device, unsigned int *mode);
NVML_API int nvmlDeviceGetDisplayActive(struct nvml_device *device, unsigned int *mode);
NVML_API int nvmlDeviceGetDriverModel(struct nvml_device *device, unsigned int *current, unsigned int *pending);
NVML_API int nvmlDeviceGetDriverModel_v2(struct nvml_device *device, unsigned int *current, unsigned int *pending);
NVML_API int nvmlDeviceGetPerformanceState(struct nvml_device *device, unsigned int *state);
NVML_API int nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *device, unsigned int *generation);
NVML_API int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *device, unsigned int *width);
NVML_API int nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *device, unsigned int *generation);
NVML_API int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *device, unsigned int *width);
NVML_API int nvmlDeviceGetPcieThroughput(struct nvml_device *device, unsigned int counter, unsigned int *kib_per_s);

/* Memory and processes. The lists: with *count too small (0 to ask), NVML_ERROR_INSUFFICIENT_SIZE and the number that
 * is needed. A process that came through MPS is in the MPS list only. */
NVML_API int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory);
NVML_API int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory);
NVML_API int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory);
NVML_API int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned int *count,
                                                  struct nvml_process_info_v1 *infos);
NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned int *count,
                                                     struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned int *count,
                                                     struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetGraphicsRunningProcesses(struct nvml_device *device, unsigned int *count,
                                                   struct nvml_process_info_v1 *infos);
NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_device *device, unsigned int *count,
                                                      struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned int *count,
                                                      struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetMPSComputeRunningProcesses(struct nvml_device *device, unsigned int *count,
                                                     struct nvml_process_info_v1 *infos);
NVML_API int nvmlDeviceGetMPSComputeRunningProcesses_v2(struct nvml_device *device, unsigned int *count,
                                                        struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct nvml_device *device, unsigned int *count,
                                                        struct nvml_process_info *infos);
NVML_API int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *list);
NVML_API int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
                                             unsigned int *count, unsigned long long since_us);

/* Its present activity. Power in mW, energy in mJ since the driver was loaded, clocks in MHz, temperature in
 * Celsius. */
NVML_API int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization);
NVML_API int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, unsigned int *percent,
                                             unsigned int *period_us);
NVML_API int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, unsigned int *percent,
                                             unsigned int *period_us);
NVML_API int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned int *mw);
NVML_API int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *mj);
NVML_API int nvmlDeviceGetPowerManagementMode(struct nvml_device *device, unsigned int *mode);
NVML_API int nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, unsigned int *mw);
NVML_API int nvmlDeviceGetPowerManagementDefaultLimit(struct nvml_device *device, unsigned int *mw);
NVML_API int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, unsigned int *min_mw,
                                                          unsigned int *max_mw);
NVML_API int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, unsigned int *mw);
NVML_API int nvmlDeviceGetTemperature(struct nvml_device *device, unsigned int sensor, unsigned int *celsius);
NVML_API int nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature);
NVML_API int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, unsigned int threshold,
                                               unsigned int *celsius);
NVML_API int nvmlDeviceGetFanSpeed(struct nvml_device *device, unsigned int *percent);
NVML_API int nvmlDeviceGetClockInfo(struct nvml_device *device, unsigned int clock, unsigned int *mhz);
NVML_API int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, unsigned int clock, unsigned int *mhz);
NVML_API int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, unsigned long long *reasons);
NVML_API int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, unsigned long long *reasons);
NVML_API int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned int kind, unsigned int counter,
                                         unsigned long long *count);
NVML_API int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values);

/* MIG. */
NVML_API int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned int *current, unsigned int *pending);
NVML_API int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, unsigned int *is_mig);
NVML_API int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned int *count);
NVML_API int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned int index,
                                                 struct nvml_device **mig);
NVML_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig, struct nvml_device **device);
NVML_API int nvmlDeviceGetGpuInstanceId(struct nvml_device *device, unsigned int *id);
NVML_API int nvmlDeviceGetComputeInstanceId(struct nvml_device *device, unsigned int *id);
NVML_API int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *attributes);

/* GPM: metrics over the time between two samples (Hopper and later on real hardware). */
NVML_API int nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *support);
NVML_API int nvmlGpmSampleAlloc(struct nvml_gpm_sample **sample);
NVML_API int nvmlGpmSampleFree(struct nvml_gpm_sample *sample);
NVML_API int nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *sample);
NVML_API int nvmlGpmMigSampleGet(struct nvml_device *device, unsigned int gpu_instance_id,
                                 struct nvml_gpm_sample *sample);
NVML_API int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *metrics);

/* Events. */
NVML_API int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types);
NVML_API int nvmlEventSetCreate(struct nvml_event_set **set);
NVML_API int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set);
NVML_API int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms);
NVML_API int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned int timeout_ms);
NVML_API int nvmlEventSetFree(struct nvml_event_set *set);

#endif
