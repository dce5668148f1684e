#include "gpu/nvml/inspect.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "gpu/nvml/calls.h"
#include "gpu/reading.h"

/* Asked for by nobody else. Each may be NULL. */
struct fact_calls {
    __typeof__(nvmlSystemGetDriverVersion) *driver;
    __typeof__(nvmlSystemGetNVMLVersion) *nvml;
    __typeof__(nvmlDeviceGetPersistenceMode) *persistence;
    __typeof__(nvmlDeviceGetComputeMode) *compute_mode;
};

static void find(const struct nvml_calls *calls, void *slot, const char *name)
{
    void *function = dlsym(calls->library, name);

    memcpy(slot, &function, sizeof function);
}

static void find_facts(const struct nvml_calls *calls, struct fact_calls *facts)
{
    find(calls, &facts->driver, "nvmlSystemGetDriverVersion");
    find(calls, &facts->nvml, "nvmlSystemGetNVMLVersion");
    find(calls, &facts->persistence, "nvmlDeviceGetPersistenceMode");
    find(calls, &facts->compute_mode, "nvmlDeviceGetComputeMode");
}

static void tell_library(const struct nvml_calls *calls, FILE *out)
{
    void *init;
    Dl_info where;

    memcpy(&init, &calls->init, sizeof init);
    fprintf(out, "library %s\n", dladdr(init, &where) && where.dli_fname ? where.dli_fname : calls->path);
    fflush(out);
}

static void tell_versions(const struct fact_calls *facts, FILE *out)
{
    char text[NVML_SYSTEM_VERSION_ROOM] = "";

    if (facts->driver && facts->driver(text, sizeof text) == NVML_SUCCESS)
        fprintf(out, "driver %s\n", text);
    if (facts->nvml && facts->nvml(text, sizeof text) == NVML_SUCCESS)
        fprintf(out, "nvml %s\n", text);
    fflush(out);
}

static void tell_gpu(const struct nvml_calls *calls, const struct fact_calls *facts, unsigned int index, FILE *out)
{
    char text[NVML_UUID_ROOM] = "";
    struct nvml_device *device;
    unsigned long long errors;
    unsigned int value;
    int code;

    fprintf(out, "gpu %u asked\n", index);
    fflush(out);
    code = calls->handle(index, &device);
    if (code == NVML_SUCCESS && calls->uuid && (code = calls->uuid(device, text, sizeof text)) == NVML_SUCCESS)
        fprintf(out, "gpu %u uuid %s\n", index, text);
    if (code != NVML_SUCCESS) {
        fprintf(out, "gpu %u failed %d %s\n", index, code, nvml_code_text(calls, code));
        fflush(out);
        return;
    }
    if (calls->name && calls->name(device, text, sizeof text) == NVML_SUCCESS)
        fprintf(out, "gpu %u name %s\n", index, text);
    if (facts->persistence && facts->persistence(device, &value) == NVML_SUCCESS)
        fprintf(out, "gpu %u persistence %u\n", index, value);
    if (facts->compute_mode && facts->compute_mode(device, &value) == NVML_SUCCESS)
        fprintf(out, "gpu %u compute-mode %u\n", index, value);
    if (calls->ecc_errors &&
        calls->ecc_errors(device, NVML_ECC_UNCORRECTED, NVML_ECC_SINCE_LOADED, &errors) == NVML_SUCCESS)
        fprintf(out, "gpu %u ecc %llu\n", index, errors);
    fflush(out);
}

int nvml_inspect(const char *library, FILE *out)
{
    struct fact_calls facts = {0};
    struct nvml_calls calls;
    unsigned int count = 0;
    struct error err;
    int rc = nvml_calls_load(&calls, library, &err);

    if (rc) {
        error_make_printable(&err);
        fprintf(out, "no-library %s\n", err.text);
        fflush(out);
        return rc;
    }
    find_facts(&calls, &facts);
    tell_library(&calls, out);
    rc = calls.init();
    fprintf(out, "init %d %s\n", rc, nvml_code_text(&calls, rc));
    fflush(out);
    if (rc != NVML_SUCCESS) {
        nvml_calls_unload(&calls);
        return -EIO;
    }
    tell_versions(&facts, out);
    if (calls.count(&count) == NVML_SUCCESS)
        fprintf(out, "gpus %u\n", count);
    fflush(out);
    for (unsigned int i = 0; i < count && i < GPU_MAX_DEVICES; i++)
        tell_gpu(&calls, &facts, i, out);
    if (calls.shutdown)
        calls.shutdown();
    nvml_calls_unload(&calls);
    return 0;
}
