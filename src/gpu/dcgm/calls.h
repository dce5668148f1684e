/* DCGM's functions, as far as the loaded library has them. Of this folder only. */
#ifndef CARMA_GPU_DCGM_CALLS_H
#define CARMA_GPU_DCGM_CALLS_H

#include "base/error.h"
#include "gpu/dcgm/abi.h"

/* All but the last five are there once it is loaded; those may be NULL. */
struct dcgm_calls {
    void *library;
    __typeof__(dcgmInit) *init;
    __typeof__(dcgmShutdown) *shutdown;
    __typeof__(dcgmConnect_v2) *connect;
    __typeof__(dcgmDisconnect) *disconnect;
    __typeof__(dcgmGetAllSupportedDevices) *gpus;
    __typeof__(dcgmGroupCreate) *group_create;
    __typeof__(dcgmGroupAddEntity) *group_add;
    __typeof__(dcgmFieldGroupCreate) *field_group_create;
    __typeof__(dcgmWatchFields) *watch;
    __typeof__(dcgmUnwatchFields) *unwatch;
    __typeof__(dcgmUpdateAllFields) *update;
    __typeof__(dcgmGetLatestValues_v2) *latest;
    __typeof__(dcgmGetGpuInstanceHierarchy) *hierarchy;
    __typeof__(dcgmStartEmbedded_v2) *embed;
    __typeof__(dcgmStartEmbedded) *embed_old;
    __typeof__(dcgmStopEmbedded) *embed_stop;
    __typeof__(errorString) *error_string;
};

/* -ENOENT: no such library; -ENOSYS: it is another one. Which for NULL: dcgm.h. It is never unloaded: an engine within
 * this process may have threads in it. */
int dcgm_calls_load(struct dcgm_calls *calls, const char *library, struct error *err);

const char *dcgm_calls_text(const struct dcgm_calls *calls, int status); /* DCGM's own words for a status */

#endif
