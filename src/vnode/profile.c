#include "vnode/profile.h"

#include <assert.h>
#include <string.h>

#include "contention/contention.h"
#include "trace/profile.h"

static_assert(PROFILE_MAX_GPUS <= NODE_MAX_GPUS && PROFILE_MAX_INSTANCES <= NODE_MAX_INSTANCES,
              "a profile's GPUs have to fit");
static_assert(sizeof((struct node_profile *)0)->name <= sizeof((struct node_file *)0)->profile &&
                  sizeof((struct node_profile *)0)->driver_version <= sizeof((struct node_file *)0)->driver_version &&
                  sizeof((struct profile_instance *)0)->name <= sizeof((struct node_instance *)0)->profile &&
                  sizeof((struct node_profile *)0)->gpu_name <= sizeof((struct node_gpu *)0)->name,
              "a profile's texts have to fit");

static void fill_gpu(struct node_gpu *gpu, const struct node_profile *profile, uint32_t index)
{
    *gpu = (struct node_gpu){
        .total_bytes = profile->total_bytes,
        .reserved_bytes = profile->reserved_bytes,
        .idle_w = profile->idle_w,
        .full_w = profile->full_w,
        .power_limit_mw = profile->power_limit_mw,
        .power_limit_min_mw = profile->power_limit_min_mw,
        .compute_major = profile->compute_major,
        .compute_minor = profile->compute_minor,
        .architecture = profile->architecture,
        .cores = profile->cores,
        .clock_idle_mhz = profile->clock_idle_mhz,
        .clock_max_mhz = profile->clock_max_mhz,
        .clock_memory_mhz = profile->clock_memory_mhz,
        .pci_bus = 1 + 8 * index,
        .pci_device_id = profile->pci_device_id,
        .pcie_generation = profile->pcie_generation,
        .gpm = profile->gpm,
        .unified = profile->unified,
        .mig = index < profile->mig_gpus,
    };
    strcpy(gpu->name, profile->gpu_name);
    if (!gpu->mig)
        return;
    gpu->instance_count = profile->instance_count;
    for (uint32_t i = 0; i < gpu->instance_count; i++) {
        gpu->instances[i] = (struct node_instance){
            .total_bytes = profile->instances[i].bytes,
            .slices = profile->instances[i].slices,
            .gpu_instance = 1 + i, /* 0 is that of an instance which is all of the GPU */
        };
        strcpy(gpu->instances[i].profile, profile->instances[i].name);
    }
}

int profile_read(const char *name, struct node_file *file, struct error *err)
{
    struct node_profile profile;
    int rc = node_profile_read(name, &profile, err);

    if (rc < 0)
        return rc;
    *file = (struct node_file){
        .gpu_count = profile.gpu_count, .cuda_version = profile.cuda_version, .spread_seed = contention_default.seed};
    strcpy(file->profile, profile.name);
    strcpy(file->driver_version, profile.driver_version);
    for (uint32_t g = 0; g < file->gpu_count; g++)
        fill_gpu(&file->gpus[g], &profile, g);
    return 0;
}
