#include "gpu/dcgm/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dcgm/dcgm.h"

static bool find(const struct dcgm_calls *calls, void *slot, const char *name)
{
    void *function = dlsym(calls->library, name);

    memcpy(slot, &function, sizeof function); /* ISO C converts no object pointer to a function pointer */
    return function != NULL;
}

static bool find_all(struct dcgm_calls *calls)
{
    find(calls, &calls->hierarchy, "dcgmGetGpuInstanceHierarchy");
    find(calls, &calls->embed, "dcgmStartEmbedded_v2");
    find(calls, &calls->embed_old, "dcgmStartEmbedded");
    find(calls, &calls->embed_stop, "dcgmStopEmbedded");
    find(calls, &calls->error_string, "errorString");
    return find(calls, &calls->init, "dcgmInit") && find(calls, &calls->shutdown, "dcgmShutdown") &&
           find(calls, &calls->connect, "dcgmConnect_v2") && find(calls, &calls->disconnect, "dcgmDisconnect") &&
           find(calls, &calls->gpus, "dcgmGetAllSupportedDevices") &&
           find(calls, &calls->group_create, "dcgmGroupCreate") &&
           find(calls, &calls->group_add, "dcgmGroupAddEntity") &&
           find(calls, &calls->field_group_create, "dcgmFieldGroupCreate") &&
           find(calls, &calls->watch, "dcgmWatchFields") && find(calls, &calls->unwatch, "dcgmUnwatchFields") &&
           find(calls, &calls->update, "dcgmUpdateAllFields") && find(calls, &calls->latest, "dcgmGetLatestValues_v2");
}

int dcgm_calls_load(struct dcgm_calls *calls, const char *library, struct error *err)
{
    static const char *const usual[] = {"libdcgm.so.4", "libdcgm.so.3"};
    const char *named = library && *library ? library : getenv(GPU_DCGM_LIBRARY_ENV);
    const char *remedy = named && *named ? "" : ": install DCGM";

    memset(calls, 0, sizeof *calls);
    if (named && *named) {
        calls->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    } else {
        for (size_t i = 0; i < sizeof usual / sizeof *usual && !calls->library; i++) {
            named = usual[i];
            calls->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        }
    }
    if (!calls->library)
        return error_set(err, ENOENT, "cannot load DCGM's library %s%s", named, remedy);
    if (find_all(calls))
        return 0;
    dlclose(calls->library); /* nothing of it has run yet */
    memset(calls, 0, sizeof *calls);
    return error_set(err, ENOSYS, "%s lacks DCGM's functions: name another one with " GPU_DCGM_LIBRARY_ENV, named);
}

const char *dcgm_calls_text(const struct dcgm_calls *calls, int status)
{
    const char *text = calls->error_string ? calls->error_string(status) : NULL;

    return text ? text : "an error that DCGM does not name";
}
