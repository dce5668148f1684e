/* The driver and its GPUs, asked by carma-monitor in a child: first for facts (gpu/nvml_inspect.h), then for readings. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "cli/doctor.h"
#include "cli/doctor_child.h"
#include "cli/view.h"
#include "gpu/frame.h"
#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"

#define FACTS_MS    10000 /* wall time: a driver may have to wake its GPUs */
#define READINGS_MS 10000
#define READINGS_MOST 16 /* looks, a quarter of a second of node time apart, until every metric has come */

struct gpu_facts {
    char name[GPU_NAME_SIZE];
    char uuid[GPU_UUID_SIZE];
    char failed[128];    /* why the driver has no more to say of it; "" */
    int64_t persistence; /* -1: not told; likewise below */
    int64_t compute_mode;
    int64_t ecc;
};

struct facts {
    char library[256], no_library[512], init_text[128], driver[80], nvml[80];
    int64_t init; /* NVML's code; -1: it did not say */
    int64_t gpus; /* as NVML counts them; -1: not told */
    int64_t asked; /* the last that was touched; -1: none */
    struct gpu_facts gpu[GPU_MAX_DEVICES];
};

/* ---- Facts ---- */

static void copy(char *into, size_t room, const char *text)
{
    snprintf(into, room, "%s", text);
}

static void take_gpu_fact(struct facts *facts, const char *line)
{
    char key[32] = "";
    int64_t index;
    int used = 0;

    if (sscanf(line, "%" SCNd64 " %31s %n", &index, key, &used) < 2 || index < 0 || index >= GPU_MAX_DEVICES)
        return;
    struct gpu_facts *gpu = &facts->gpu[index];
    const char *value = line + used;
    if (strcmp(key, "asked") == 0)
        facts->asked = index;
    else if (strcmp(key, "uuid") == 0)
        copy(gpu->uuid, sizeof gpu->uuid, value);
    else if (strcmp(key, "name") == 0)
        copy(gpu->name, sizeof gpu->name, value);
    else if (strcmp(key, "failed") == 0)
        copy(gpu->failed, sizeof gpu->failed, value + strcspn(value, " ") + (strchr(value, ' ') != NULL));
    else if (strcmp(key, "persistence") == 0)
        gpu->persistence = atoll(value);
    else if (strcmp(key, "compute-mode") == 0)
        gpu->compute_mode = atoll(value);
    else if (strcmp(key, "ecc") == 0)
        gpu->ecc = atoll(value);
}

static void take_fact(struct facts *facts, const char *line)
{
    const char *blank = strchr(line, ' '), *value = blank ? blank + 1 : "";
    size_t length = blank ? (size_t)(blank - line) : strlen(line);
    const struct {
        const char *key;
        char *into;
        size_t room;
    } texts[] = {{"library", facts->library, sizeof facts->library},
                 {"no-library", facts->no_library, sizeof facts->no_library},
                 {"driver", facts->driver, sizeof facts->driver},
                 {"nvml", facts->nvml, sizeof facts->nvml}};

    for (size_t i = 0; i < array_size(texts); i++)
        if (strlen(texts[i].key) == length && strncmp(line, texts[i].key, length) == 0)
            copy(texts[i].into, texts[i].room, value);
    if (strncmp(line, "init ", 5) == 0) {
        facts->init = atoll(value);
        copy(facts->init_text, sizeof facts->init_text, value + strcspn(value, " ") + (strchr(value, ' ') != NULL));
    } else if (strncmp(line, "gpus ", 5) == 0) {
        facts->gpus = atoll(value);
    } else if (strncmp(line, "gpu ", 4) == 0) {
        take_gpu_fact(facts, value);
    }
}

static void take_facts(struct facts *facts, char *text)
{
    memset(facts, 0, sizeof *facts);
    facts->init = facts->gpus = facts->asked = -1;
    for (size_t i = 0; i < GPU_MAX_DEVICES; i++)
        facts->gpu[i].persistence = facts->gpu[i].compute_mode = facts->gpu[i].ecc = -1;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        take_fact(facts, line);
    }
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...": the word that begins with a digit and has a dot;
 * "" where there is no such file: no module is loaded. Owned by the caller. */
static char *module_version(const struct doctor *doctor)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/driver/nvidia/version", NULL);
    char *rest = text, *word;

    while (text && (word = strsep(&rest, " \t\n")))
        if (*word >= '1' && *word <= '9' && strchr(word, '.'))
            return xstrdup(word);
    return xstrdup("");
}

static void find_no_library(struct doctor *doctor, const struct facts *facts, const char *module)
{
    if (*module)
        doctor_find(doctor, "driver", DOCTOR_FAIL,
                    "install the driver's libraries of the same version, or name NVML's by the setting nvml_library",
                    "kernel module %s is loaded, but %s", module, facts->no_library);
    else
        doctor_find(doctor, "driver", DOCTOR_FAIL, "install NVIDIA's driver: without it there are no GPUs to share",
                    "no kernel module is loaded; %s", doctor->config.nvml_library || getenv(GPU_NVML_LIBRARY_ENV) ? facts->no_library
                                                      : "there is no libnvidia-ml.so.1");
}

static void find_init(struct doctor *doctor, const struct facts *facts, const char *module)
{
    const char *remedy = "look at nvidia-smi and at dmesg | grep NVRM";

    if (facts->init == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        remedy = "the driver was updated under a running module: reboot, or end what uses the GPUs, then rmmod and modprobe "
                 "nvidia";
    else if (facts->init == NVML_ERROR_DRIVER_NOT_LOADED)
        remedy = "modprobe nvidia; after an update of the kernel, build the module anew (dkms), and look at dmesg";
    else if (facts->init == NVML_ERROR_NO_PERMISSION)
        remedy = "the device files /dev/nvidia* are not for this user: look at their modes, or at the container's devices";
    doctor_find(doctor, "driver", DOCTOR_FAIL, remedy, "NVML (%s) does not start: %s; kernel module %s", facts->library,
                facts->init_text, *module ? module : "not loaded");
}

/* Whether there is anything to ask further. */
static bool check_driver(struct doctor *doctor, const struct facts *facts, const struct doctor_answer *answer)
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
        doctor_find(doctor, "driver", DOCTOR_OK, NULL, "%s, NVML %s, %s", *facts->driver ? facts->driver : "version not told",
                    *facts->nvml ? facts->nvml : "version not told", facts->library);
    return facts->init == 0 && !answer->hung;
}

/* ---- GPUs ---- */

/* Appends "0, 1" or the like for each GPU of which `is` holds; how many those are. */
static size_t list(const struct facts *facts, bool (*is)(const struct gpu_facts *gpu), struct strbuf *out)
{
    size_t count = 0;

    for (int64_t i = 0; i < facts->gpus && i < GPU_MAX_DEVICES; i++)
        if (is(&facts->gpu[i]))
            strbuf_printf(out, "%s%" PRId64, count++ ? ", " : "", i);
    return count;
}

static bool is_not_persistent(const struct gpu_facts *gpu)
{
    return gpu->persistence == NVML_FEATURE_DISABLED;
}

static bool is_prohibited(const struct gpu_facts *gpu)
{
    return gpu->compute_mode == NVML_COMPUTEMODE_PROHIBITED;
}

static bool is_exclusive(const struct gpu_facts *gpu)
{
    return gpu->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS ||
           gpu->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD;
}

static bool has_ecc_errors(const struct gpu_facts *gpu)
{
    return gpu->ecc > 0;
}

/* How many GPUs answer and have the name of this one; 0 where it is not the first of them. */
static size_t count_alike(const struct facts *facts, int64_t first)
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

static void check_each(struct doctor *doctor, const struct facts *facts)
{
    CLEANUP(strbuf_release) struct strbuf names = {0};

    if (facts->gpus <= 0) {
        doctor_find(doctor, "GPUs", DOCTOR_FAIL, "look at lspci | grep -i nvidia, at dmesg, and at the container's devices",
                    "the driver sees none");
        return;
    }
    for (int64_t i = 0; i < facts->gpus && i < GPU_MAX_DEVICES; i++) {
        const struct gpu_facts *gpu = &facts->gpu[i];
        size_t same = count_alike(facts, i);
        if (*gpu->failed)
            doctor_find(doctor, "GPUs", DOCTOR_FAIL,
                        "drain the node, then nvidia-smi --gpu-reset, or reboot: look at dmesg for Xid 79 (fallen off the bus)",
                        "GPU %" PRId64 ": %s", i, gpu->failed);
        else if (same)
            strbuf_printf(&names, "%s%zu x %s", names.length ? ", " : "", same, *gpu->name ? gpu->name : "without a name");
    }
    if (names.length)
        doctor_find(doctor, "GPUs", DOCTOR_OK, NULL, "%s", names.text);
}

/* A mode that some GPUs are in; nothing is said where none tells. */
static void check_mode(struct doctor *doctor, const struct facts *facts, const char *check,
                       bool (*is)(const struct gpu_facts *gpu), enum doctor_mark mark, const char *what, const char *remedy)
{
    CLEANUP(strbuf_release) struct strbuf which = {0};

    if (list(facts, is, &which))
        doctor_find(doctor, check, mark, remedy, "%s on GPU %s", what, which.text);
}

static void check_modes(struct doctor *doctor, const struct facts *facts)
{
    size_t before = doctor->count;

    check_mode(doctor, facts, "persistence", is_not_persistent, DOCTOR_WARN, "off",
               "each first use of an idle GPU waits for the driver: run nvidia-persistenced, or nvidia-smi -pm 1");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].persistence == NVML_FEATURE_ENABLED)
        doctor_find(doctor, "persistence", DOCTOR_OK, NULL, "on");
    before = doctor->count;
    check_mode(doctor, facts, "compute mode", is_prohibited, DOCTOR_FAIL, "PROHIBITED", "no job can use it: nvidia-smi -c DEFAULT");
    check_mode(doctor, facts, "compute mode", is_exclusive, DOCTOR_WARN, "EXCLUSIVE",
               "a second job by streams fails as it starts; only MPS can share it: nvidia-smi -c DEFAULT");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].compute_mode == NVML_COMPUTEMODE_DEFAULT)
        doctor_find(doctor, "compute mode", DOCTOR_OK, NULL, "default");
    before = doctor->count;
    check_mode(doctor, facts, "ECC", has_ecc_errors, DOCTOR_WARN, "uncorrected errors since the driver was loaded",
               "jobs there may have failed by Xid 48, 63 or 64: look at nvidia-smi -q -d ECC,ROW_REMAPPER, reset the GPU when idle");
    if (doctor->count == before && facts->gpus > 0 && facts->gpu[0].ecc == 0)
        doctor_find(doctor, "ECC", DOCTOR_OK, NULL, "no uncorrected errors since the driver was loaded");
}

/* ---- Readings ---- */

struct looks {
    struct gpu_frame_decoder decoder;
    size_t taken; /* bytes of the output */
    size_t count;
    struct gpu_node_reading *last;
};

static bool measured(const struct gpu_reading *gpu)
{
    if (gpu->kind == GPU_PARTITIONED || !*gpu->uuid)
        return true;
    for (size_t i = 0; i < GPU_METRIC_COUNT; i++)
        if (gpu->metrics[i].source != GPU_SOURCE_GPM && gpu->metrics[i].source != GPU_SOURCE_DCGM)
            return false;
    return true;
}

/* A measure over an interval is not there at the first look, and DCGM may take some time to begin. */
static bool enough(void *user, const struct strbuf *out)
{
    struct looks *looks = user;
    const void *bytes = out->length ? out->text + looks->taken : "";
    size_t count = out->length - looks->taken;
    bool all = true;

    while (gpu_frame_decode(&looks->decoder, &bytes, &count, looks->last, NULL) == 1)
        looks->count++;
    looks->taken = out->length;
    for (uint32_t i = 0; i < looks->last->count; i++)
        all = all && measured(&looks->last->gpus[i]);
    return looks->count >= READINGS_MOST || (looks->count > 1 && all);
}

static void check_stand_in(struct doctor *doctor, const struct gpu_node_reading *reading, size_t count)
{
    doctor_find(doctor, "metrics", DOCTOR_WARN,
                "run carmad as root, or have the driver let all users profile; GPUs before Hopper need DCGM. Without SM activity "
                "policies take a GPU for busy as soon as any kernel runs",
                "sm_activity is NVML's utilisation, an upper bound, on %zu of %u%s%s", count, reading->count,
                *reading->limits ? ": " : "", reading->limits);
}

/* What each source gives, metric by metric. */
static void check_metrics(struct doctor *doctor, const struct gpu_node_reading *reading)
{
    struct strbuf of[GPU_SOURCE_COUNT] = {0};
    size_t stand_ins = 0;

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++) {
        size_t sources[GPU_SOURCE_COUNT] = {0};
        for (uint32_t i = 0; i < reading->count; i++)
            if (reading->gpus[i].kind != GPU_PARTITIONED && *reading->gpus[i].uuid)
                sources[reading->gpus[i].metrics[metric].source]++;
        for (uint32_t source = 0; source < GPU_SOURCE_COUNT; source++)
            if (sources[source])
                strbuf_printf(&of[source], "%s%s", of[source].length ? ", " : "", gpu_metric_name(metric));
        stand_ins += sources[GPU_SOURCE_UTILIZATION];
    }
    for (uint32_t source = GPU_SOURCE_GPM; source <= GPU_SOURCE_DCGM; source++)
        if (of[source].length)
            doctor_find(doctor, "metrics", DOCTOR_OK, NULL, "by %s: %s", gpu_source_name(source), of[source].text);
    if (stand_ins)
        check_stand_in(doctor, reading, stand_ins);
    if (of[GPU_SOURCE_NONE].length)
        doctor_find(doctor, "metrics", DOCTOR_WARN, "carma goes on without them: docs/metrics.md", "not to be had: %s",
                    of[GPU_SOURCE_NONE].text);
    for (uint32_t source = 0; source < GPU_SOURCE_COUNT; source++)
        strbuf_release(&of[source]);
}

static void check_mig(struct doctor *doctor, const struct gpu_node_reading *reading)
{
    size_t instances = 0, partitioned = 0;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        size_t own = 0;
        if (gpu->kind != GPU_PARTITIONED)
            continue;
        for (uint32_t k = 0; k < reading->count; k++)
            own += reading->gpus[k].kind == GPU_INSTANCE && strcmp(reading->gpus[k].parent, gpu->uuid) == 0;
        partitioned++;
        instances += own;
        if (!own)
            doctor_find(doctor, "MIG", DOCTOR_WARN, "make instances (nvidia-smi mig -cgi ... -C), or turn the mode off (nvidia-smi -mig 0)",
                        "GPU %u is in MIG mode and has no instance: no job can run on it", gpu->index);
    }
    if (partitioned)
        doctor_find(doctor, "MIG", DOCTOR_OK, NULL, "%zu of the GPUs in MIG mode, %zu instances", partitioned, instances);
}

static void check_readings(struct doctor *doctor, const char *program)
{
    const char *argv[12] = {program, "--period-ms", "250"};
    struct looks looks = {.last = xcalloc(1, sizeof *looks.last)};
    struct doctor_answer answer;
    struct error err;
    size_t at = 3;

    if (doctor->config.nvml_library) {
        argv[at++] = "--library";
        argv[at++] = doctor->config.nvml_library;
    }
    if (doctor->config.dcgm_library) {
        argv[at++] = "--dcgm";
        argv[at++] = doctor->config.dcgm_library;
    }
    if (doctor_child_run(argv, READINGS_MS, enough, &looks, &answer, &err))
        doctor_find(doctor, "metrics", DOCTOR_FAIL, NULL, "%s", err.text);
    else if (!looks.count)
        doctor_find(doctor, "metrics", DOCTOR_FAIL, "look at dmesg for Xids", "%s",
                    answer.hung ? "the driver hangs as the GPUs are read" : answer.errors.length ? answer.errors.text : "no reading came");
    else {
        check_metrics(doctor, looks.last);
        check_mig(doctor, looks.last);
    }
    doctor_answer_release(&answer);
    gpu_frame_decoder_release(&looks.decoder);
    free(looks.last);
}

/* Who may profile: the driver's own setting. */
static void check_profiling(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *text = doctor_read(doctor, "/proc/driver/nvidia/params", NULL);
    const char *at = text ? strstr(text, "RmProfilingAdminOnly:") : NULL;

    if (!at)
        return;
    if (atoi(at + strlen("RmProfilingAdminOnly:")) == 0)
        doctor_find(doctor, "profiling", DOCTOR_OK, NULL, "for all users (NVreg_RestrictProfilingToAdminUsers=0)");
    else if (geteuid() == 0)
        doctor_find(doctor, "profiling", DOCTOR_OK, NULL, "for root alone (NVreg_RestrictProfilingToAdminUsers=1): run carmad as root");
    else
        doctor_find(doctor, "profiling", DOCTOR_WARN,
                    "run carmad as root; or put options nvidia NVreg_RestrictProfilingToAdminUsers=0 into /etc/modprobe.d and "
                    "reload the module",
                    "for root alone (NVreg_RestrictProfilingToAdminUsers=1): a carmad of this user gets no SM activity");
}

/* What the daemon has seen since it began; without one nobody has watched. */
static void check_xids(struct doctor *doctor)
{
    CLEANUP(json_release) json_t *reply = NULL;
    struct error err;
    json_t *gpu;
    size_t i;

    if (!doctor->status || cli_call(doctor->cli, "GET", "/v1/gpus", NULL, &reply, &err))
        return;
    json_array_foreach(json_object_get(reply, "gpus"), i, gpu)
    {
        const json_t *xid = json_object_get(gpu, "xid");
        if (json_is_object(xid))
            doctor_find(doctor, "Xid", DOCTOR_WARN, "NVIDIA's list of Xids says what it means; dmesg has the line",
                        "GPU %" PRId64 ": Xid %" PRId64 ", %" PRId64 " since carmad began", view_integer(gpu, "index", -1),
                        view_integer(xid, "code", 0), view_integer(xid, "count", 0));
    }
}

void doctor_check_gpus(struct doctor *doctor)
{
    CLEANUP(free_ptr) char *program = install_path("lib/carma/carma-monitor");
    const char *argv[] = {program, "--inspect", doctor->config.nvml_library ? "--library" : NULL,
                          doctor->config.nvml_library, NULL};
    CLEANUP(free_ptr) struct facts *facts = xcalloc(1, sizeof *facts);
    struct doctor_answer answer;
    struct error err;

    if (doctor_child_run(argv, FACTS_MS, NULL, NULL, &answer, &err)) {
        doctor_find(doctor, "driver", DOCTOR_FAIL, "install carma anew: this is one of its own programs", "%s", err.text);
        return;
    }
    take_facts(facts, answer.out.text);
    if (check_driver(doctor, facts, &answer)) {
        check_each(doctor, facts);
        check_modes(doctor, facts);
        check_readings(doctor, program);
        check_xids(doctor);
    }
    check_profiling(doctor);
    doctor_answer_release(&answer);
}
