/* The driver and its GPUs, asked by carma-monitor in a child: facts (gpu/driver_facts.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "cli/show/answer.h"
#include "gpu/driver_facts.h"
#include "gpu/nvml/abi.h"
#include "gpu/nvml/nvml.h"

#define FACTS_MS 10000 /* wall time: a driver may have to wake its GPUs */
/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module 550.54.15 Tue ...": the word that begins with a digit and has a dot.
 * "" where the file is missing: no module is loaded. Owned by the caller. */
static char *module_version(const struct doctor *doctor)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/driver/nvidia/version", NULL);
    char *rest = text, *word;

    while (text && (word = strsep(&rest, " \t\n")))
        if (*word >= '1' && *word <= '9' && strchr(word, '.'))
            return xstrdup(word);
    return xstrdup("");
}

static void find_no_library(struct doctor *doctor, const struct driver_facts *facts, const char *module)
{
    if (*module)
        doctor_find(doctor, "driver", DOCTOR_FAIL,
                    "install the driver's libraries of the same version, or name NVML's by the setting nvml_library",
                    "kernel module %s is loaded, but %s", module, facts->no_library);
    else
        doctor_find(doctor, "driver", DOCTOR_FAIL, "install NVIDIA's driver: without it there are no GPUs to share",
                    "no kernel module is loaded; %s",
                    doctor->config.nvml_library || getenv(GPU_NVML_LIBRARY_ENV) ? facts->no_library
                                                                                : "there is no libnvidia-ml.so.1");
}

static void find_init(struct doctor *doctor, const struct driver_facts *facts, const char *module)
{
    const char *remedy = "look at nvidia-smi and at dmesg | grep NVRM";

    if (facts->init == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        remedy = "the driver was updated under a running module: reboot, or end the programs that use the GPUs, then "
                 "rmmod and modprobe nvidia";
    else if (facts->init == NVML_ERROR_DRIVER_NOT_LOADED)
        remedy = "modprobe nvidia; after an update of the kernel, build the module anew (dkms), and look at dmesg";
    else if (facts->init == NVML_ERROR_NO_PERMISSION)
        remedy =
            "the device files /dev/nvidia* are not for this user: look at their modes, or at the container's devices";
    doctor_find(doctor, "driver", DOCTOR_FAIL, remedy, "NVML (%s) does not start: %s; kernel module %s", facts->library,
                facts->init_text, *module ? module : "not loaded");
}

/* Whether there is anything to ask further. */
static bool check_driver(struct doctor *doctor, const struct driver_facts *facts, const struct cli_child *answer)
{
    CLEANUP(free_ptr) char *module = module_version(doctor);

    if (*facts->no_library)
        find_no_library(doctor, facts, module);
    else if (answer->hung && facts->asked >= 0)
        doctor_find(doctor, "driver", DOCTOR_FAIL,
                    "its calls never return: look at dmesg for Xids; drain the node and reset that GPU, or reboot",
                    "hangs as GPU %" PRId64 " is asked", facts->asked);
    else if (answer->hung)
        doctor_find(doctor, "driver", DOCTOR_FAIL, "look at dmesg | grep NVRM; reboot", "hangs as NVML is started");
    else if (facts->init > 0)
        find_init(doctor, facts, module);
    else if (facts->init < 0)
        doctor_find(doctor, "driver", DOCTOR_FAIL, "look at nvidia-smi, and reinstall the driver's libraries",
                    "NVML (%s) ended carma-monitor by %s %d", *facts->library ? facts->library : "not loaded",
                    WIFSIGNALED(answer->status) ? "signal" : "status",
                    WIFSIGNALED(answer->status) ? WTERMSIG(answer->status) : WEXITSTATUS(answer->status));
    else
        doctor_find(doctor, "driver", DOCTOR_OK, NULL, "%s, NVML %s, %s",
                    *facts->driver ? facts->driver : "version not told",
                    *facts->nvml ? facts->nvml : "version not told", facts->library);
    return facts->init == 0 && !answer->hung;
}

/* ---- GPUs ---- */

/* Appends "0, 1" or the like for each GPU of which `is` holds; how many those are. */
static size_t list(const struct driver_facts *facts, bool (*is)(const struct driver_gpu_facts *gpu), struct strbuf *out)
{
    size_t count = 0;

    for (int64_t i = 0; i < facts->gpus && i < GPU_MAX_DEVICES; i++)
        if (is(&facts->gpu[i]))
            strbuf_printf(out, "%s%" PRId64, count++ ? ", " : "", i);
    return count;
}

static bool is_not_persistent(const struct driver_gpu_facts *gpu)
{
    return gpu->persistence == NVML_FEATURE_DISABLED;
}

static bool is_prohibited(const struct driver_gpu_facts *gpu)
{
    return gpu->compute_mode == NVML_COMPUTEMODE_PROHIBITED;
}

static bool is_exclusive(const struct driver_gpu_facts *gpu)
{
    return gpu->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS ||
           gpu->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD;
}

static bool has_ecc_errors(const struct driver_gpu_facts *gpu)
{
    return gpu->ecc > 0;
}

/* How many GPUs answer and have the name of this one; 0 where it is not the first of them. */
static size_t count_alike(const struct driver_facts *facts, int64_t first)
{
    size_t count = 0;

    for (int64_t i = 0; i < facts->gpus && i < GPU_MAX_DEVICES; i++) {
        if (*facts->gpu[i].failed || strcmp(facts->gpu[i].name, facts->gpu[first].name) != 0)
            continue;
        if (i < first)
            return 0;
        count++;
    }
    return count;
}

static void check_each(struct doctor *doctor, const struct driver_facts *facts)
{
    CLEANUP(strbuf_release) struct strbuf names = {0};

    if (facts->gpus <= 0) {
        doctor_find(doctor, "GPUs", DOCTOR_FAIL,
                    "look at lspci | grep -i nvidia, at dmesg, and at the container's devices", "the driver sees none");
        return;
    }
    for (int64_t i = 0; i < facts->gpus && i < GPU_MAX_DEVICES; i++) {
        const struct driver_gpu_facts *gpu = &facts->gpu[i];
        size_t same = count_alike(facts, i);
        if (*gpu->failed)
            doctor_find(
                doctor, "GPUs", DOCTOR_FAIL,
                "drain the node, then nvidia-smi --gpu-reset, or reboot: look at dmesg for Xid 79 (fallen off the bus)",
                "GPU %" PRId64 ": %s", i, gpu->failed);
        else if (same)
            strbuf_printf(&names, "%s%zu x %s", names.length ? ", " : "", same,
                          *gpu->name ? gpu->name : "without a name");
    }
    if (names.length)
        doctor_find(doctor, "GPUs", DOCTOR_OK, NULL, "%s", names.text);
}

/* A mode that some GPUs are in; nothing is said where none tells. */
static void check_mode(struct doctor *doctor, const struct driver_facts *facts, const char *check,
                       bool (*is)(const struct driver_gpu_facts *gpu), enum doctor_mark mark, const char *what,
                       const char *remedy)
{
    CLEANUP(strbuf_release) struct strbuf which = {0};

    if (list(facts, is, &which))
        doctor_find(doctor, check, mark, remedy, "%s on GPU %s", what, which.text);
}

static void check_modes(struct doctor *doctor, const struct driver_facts *facts)
{
    size_t before = doctor->count;

    check_mode(doctor, facts, "persistence", is_not_persistent, DOCTOR_WARN, "off",
               "each first use of an idle GPU waits for the driver: run nvidia-persistenced, or nvidia-smi -pm 1");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].persistence == NVML_FEATURE_ENABLED)
        doctor_find(doctor, "persistence", DOCTOR_OK, NULL, "on");
    before = doctor->count;
    check_mode(doctor, facts, "compute mode", is_prohibited, DOCTOR_FAIL, "PROHIBITED",
               "no job can use it: nvidia-smi -c DEFAULT");
    check_mode(doctor, facts, "compute mode", is_exclusive, DOCTOR_WARN, "EXCLUSIVE",
               "a second job by time-slicing fails as it starts; only MPS can share it: nvidia-smi -c DEFAULT");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].compute_mode == NVML_COMPUTEMODE_DEFAULT)
        doctor_find(doctor, "compute mode", DOCTOR_OK, NULL, "default");
    before = doctor->count;
    check_mode(doctor, facts, "ECC", has_ecc_errors, DOCTOR_WARN, "uncorrected errors since the driver was loaded",
               "jobs there may have failed by Xid 48, 63 or 64: look at nvidia-smi -q -d ECC,ROW_REMAPPER, reset the "
               "GPU when idle");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].ecc == 0)
        doctor_find(doctor, "ECC", DOCTOR_OK, NULL, "no uncorrected errors since the driver was loaded");
}

/* The right to profile: the driver's own setting. */
static void check_profiling(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/driver/nvidia/params", NULL);
    const char *at = text ? strstr(text, "RmProfilingAdminOnly:") : NULL;

    if (!at)
        return;
    if (atoi(at + strlen("RmProfilingAdminOnly:")) == 0)
        doctor_find(doctor, "profiling", DOCTOR_OK, NULL, "for all users (NVreg_RestrictProfilingToAdminUsers=0)");
    else if (geteuid() == 0)
        doctor_find(doctor, "profiling", DOCTOR_OK, NULL,
                    "for root alone (NVreg_RestrictProfilingToAdminUsers=1): run carmad as root");
    else
        doctor_find(
            doctor, "profiling", DOCTOR_WARN,
            "run carmad as root; or put options nvidia NVreg_RestrictProfilingToAdminUsers=0 into /etc/modprobe.d and "
            "reload the module",
            "for root alone (NVreg_RestrictProfilingToAdminUsers=1): a carmad of this user gets no SM activity");
}

static void tell_notes(struct doctor *doctor, const json_t *gpu)
{
    json_t *note;
    size_t i;

    json_array_foreach (json_object_get(gpu, "notes"), i, note)
        doctor_find(doctor, "GPU", DOCTOR_WARN, "carmad's log has the jobs", "GPU %" PRId64 ": %s",
                    answer_integer(gpu, "index", -1), json_string_value(note));
}

/* One that was drained and forgotten. */
static void tell_drained(struct doctor *doctor, const json_t *gpu)
{
    CLEANUP(free_ptr) char *why = answer_is_drained(gpu) ? answer_safe_text(gpu, "why") : NULL;

    if (why)
        doctor_find(doctor, "GPU", DOCTOR_WARN, "'carma admin resume', once the work there is done",
                    "GPU %" PRId64 " takes no job: %s", answer_integer(gpu, "index", -1), why);
}

/* The daemon's readings since it began; without a daemon there are none. */
static void check_daemons_view(struct doctor *doctor)
{
    CLEANUP(json_release) json_t *reply = NULL;
    const char *order;
    struct error err;
    json_t *gpu;
    size_t i;

    if (!doctor->status || cli_call(doctor->cli, "GET", "/v1/gpus", NULL, &reply, &err))
        return;
    order = answer_text(reply, "order");
    if (order)
        doctor_find(doctor, "GPUs", DOCTOR_WARN, "in the setting share, name GPUs by UUID or by carma's numbers", "%s",
                    order);
    json_array_foreach (json_object_get(reply, "gpus"), i, gpu) {
        const json_t *xid = json_object_get(gpu, "xid");
        tell_notes(doctor, gpu);
        tell_drained(doctor, gpu);
        if (json_is_object(xid))
            doctor_find(doctor, "Xid", DOCTOR_WARN, "NVIDIA's list of Xids explains it; dmesg has the line",
                        "GPU %" PRId64 ": Xid %" PRId64 ", %" PRId64 " since carmad began",
                        answer_integer(gpu, "index", -1), answer_integer(xid, "code", 0),
                        answer_integer(xid, "count", 0));
    }
}

void doctor_check_gpus(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-monitor");
    const char *argv[] = {program, "--inspect", doctor->config.nvml_library ? "--library" : NULL,
                          doctor->config.nvml_library, NULL};
    CLEANUP(free_ptr) struct driver_facts *facts = xcalloc(1, sizeof *facts);
    struct cli_child answer;
    struct error err;

    if (cli_child_run(argv, -1, FACTS_MS, NULL, NULL, &answer, &err)) {
        doctor_find(doctor, "driver", DOCTOR_FAIL, "install carma anew: this is one of its own programs", "%s",
                    err.text);
        return;
    }
    driver_facts_read(facts, answer.out.text);
    if (check_driver(doctor, facts, &answer)) {
        check_each(doctor, facts);
        check_modes(doctor, facts);
        doctor_check_readings(doctor, program);
        check_daemons_view(doctor);
    }
    check_profiling(doctor);
    cli_child_release(&answer);
}
