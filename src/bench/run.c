#include "bench/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/install.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/watch.h"

#define LOOK_US        50000             /* between two looks at the host */
#define PROBE_FRAMES   25                /* a source has shown all its values by then */
#define PROBE_FRAME_NS (200 * NS_PER_MS) /* node time between them */

const char *bench_source_name(enum bench_source source)
{
    static const char *const names[BENCH_SOURCES] = {"none", "utilization", "gpm", "dcgm", "nsys", "pytorch"};

    return names[source];
}

bool bench_simulated(void)
{
    const char *node = getenv("CARMA_VNODE");

    return node && *node;
}

/* carma-monitor's names for them. */
static const uint32_t wanted_source[BENCH_SOURCES] = {
    [BENCH_UTILIZATION] = GPU_SOURCE_UTILIZATION, [BENCH_GPM] = GPU_SOURCE_GPM, [BENCH_DCGM] = GPU_SOURCE_DCGM};

static bool is_monitor(enum bench_source source)
{
    return source == BENCH_UTILIZATION || source == BENCH_GPM || source == BENCH_DCGM;
}

/* The questions of a probe. */
struct probe {
    struct bench_setup *setup;
    uint32_t wanted; /* enum gpu_source */
    bool seen;
    char limits[sizeof((struct gpu_node_reading *)0)->limits];
};

static bool is_wanted(const struct bench_setup *setup, const struct gpu_reading *gpu)
{
    char index[16];

    snprintf(index, sizeof index, "%u", gpu->index);
    if (!gpu->uuid[0] || gpu->kind == GPU_PARTITIONED)
        return false;
    return !setup->wanted || strcmp(setup->wanted, gpu->uuid) == 0 ||
           (gpu->kind == GPU_WHOLE && strcmp(setup->wanted, index) == 0);
}

static void take_probe(void *user, const struct gpu_node_reading *reading)
{
    struct probe *probe = user;
    struct bench_setup *setup = probe->setup;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        if (!setup->gpu[0] && is_wanted(setup, gpu)) {
            memcpy(setup->gpu, gpu->uuid, sizeof setup->gpu);
            memcpy(setup->gpu_name, gpu->name, sizeof setup->gpu_name);
        }
        if (!gpu->uuid[0] || strcmp(gpu->uuid, setup->gpu) != 0)
            continue;
        probe->seen |= gpu->metrics[GPU_SM_ACTIVITY].source == probe->wanted;
        probe->seen |= probe->wanted == GPU_SOURCE_UTILIZATION && gpu->valid & GPU_HAS_UTILIZATION;
    }
    memcpy(probe->limits, reading->limits, sizeof probe->limits);
}

static bool monitor_present(struct bench_setup *setup, enum bench_source source, struct error *err)
{
    CLEANUP(free_ptr) char *directory = xasprintf("%s/probe-%s", setup->directory, bench_source_name(source));
    CLEANUP(free_ptr) char *frames = bench_path(directory, "frames");
    struct probe probe = {.setup = setup, .wanted = wanted_source[source]};
    struct bench_child child;
    int rc = file_make_dirs(directory, 0755, err);

    if (rc == 0)
        rc = bench_watch_start(setup, bench_source_name(source), PROBE_FRAME_NS, directory, &child, err);
    if (rc < 0)
        return false;
    for (int64_t bytes = 0; rc == 0 && !probe.seen && bytes < PROBE_FRAMES;) {
        rc = bench_watch_wait(&child, directory, bench_file_bytes(frames), err);
        bytes++;
        if (rc == 0)
            bench_watch_read(directory, take_probe, &probe, NULL); /* the last frame may not be all there yet */
    }
    bench_child_end(&child);
    if (rc == 0 && !setup->gpu[0])
        error_set(err, ENODEV, "no GPU is usable here: NVML shows no GPU %s",
                  setup->wanted ? setup->wanted : "that jobs can use");
    else if (rc == 0 && !probe.seen)
        error_set(err, ENODEV, "%s does not offer it%s%s", source == BENCH_DCGM ? "DCGM" : "the GPU's driver",
                  probe.limits[0] ? ": " : "", probe.limits);
    return probe.seen;
}

/* The profilers. */

static bool on_path(const char *program)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t length = strcspn(at, ":");
        CLEANUP(free_ptr) char *path = xasprintf("%.*s/%s", (int)length, at, program);
        if (access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Where the words after the interpreter begin, in a command such as "python3 train.py"; NULL: not such a command. */
static const char *after_python(const char *command)
{
    size_t length = strcspn(command, " ");
    const char *base = command;

    for (const char *c = command; c < command + length; c++)
        if (*c == '/')
            base = c + 1;
    return strncmp(base, "python", strlen("python")) == 0 && command[length] ? command + length + 1 : NULL;
}

static bool pytorch_present(const struct bench_setup *setup, const char *command, struct error *err)
{
    CLEANUP(free_ptr) char *output = bench_path(setup->directory, "probe-pytorch");
    const char *script = after_python(command);
    struct bench_child child;

    if (!script || !*script || (script[0] == '-' && strncmp(script, "-m ", 3) != 0)) {
        error_set(err, ENODEV, "the load is not a Python script (python3 SCRIPT, python3 -m MODULE)");
        return false;
    }
    CLEANUP(free_ptr)
    char *check = xasprintf("%.*s -c 'import torch.profiler'", (int)(script - command - 1), command);
    const char *argv[] = {"/bin/sh", "-c", check, NULL};
    if (bench_child_start(&child, argv, NULL, output, output, err) < 0)
        return false;
    while (!bench_child_ended(&child))
        usleep(LOOK_US);
    if (child.status == 0)
        return true;
    CLEANUP(free_ptr) char *words = bench_last_words(output);
    error_set(err, ENODEV, "%s", words);
    return false;
}

bool bench_source_present(struct bench_setup *setup, enum bench_source source, const char *command, struct error *err)
{
    if (is_monitor(source))
        return monitor_present(setup, source, err);
    if (source == BENCH_PYTORCH)
        return pytorch_present(setup, command, err);
    if (source == BENCH_NONE || on_path("nsys"))
        return true;
    error_set(err, ENODEV, "there is no nsys on the PATH");
    return false;
}

/* A run. */

/* Runs "$2" and notes in the directory "$1" its pid, its beginning and its end; the files' times are the note. */
static const char wrapper[] =
    "echo $$ >\"$1/session\"; : >\"$1/begin\"; /bin/sh -c \"$2\"; status=$?; : >\"$1/end\"; exit $status";

static int start_job(const struct bench_setup *setup, enum bench_source source, const char *directory,
                     const char *command, struct bench_child *child, struct error *err)
{
    CLEANUP(free_ptr) char *output = bench_path(directory, "output");
    CLEANUP(free_ptr) char *report = bench_path(directory, "report");
    CLEANUP(free_ptr) char *trace = bench_path(directory, "trace.json");
    CLEANUP(free_ptr) char *visible = xasprintf("CUDA_VISIBLE_DEVICES=%s", setup->gpu);
    CLEANUP(free_ptr) char *modules = install_path("share/carma/python");
    const char *others = getenv("PYTHONPATH"), *script = after_python(command);
    CLEANUP(free_ptr) char *path = xasprintf("PYTHONPATH=%s%s%s", modules, others ? ":" : "", others ? others : "");
    CLEANUP(free_ptr)
    char *profiled = source == BENCH_PYTORCH ? xasprintf("%.*s -m carma.torch_profile '%s' %s",
                                                         (int)(script - command - 1), command, trace, script)
                                             : xstrdup(command);
    const char *environment[] = {setup->gpu[0] ? visible : path, path, NULL};
    const char *plain[] = {"/bin/sh", "-c", wrapper, "carma-bench", directory, profiled, NULL};
    const char *nsys[] = {"nsys",   "profile",     "--force-overwrite=true",
                          "-o",     report,        "setsid",
                          "--wait", "/bin/sh",     "-c",
                          wrapper,  "carma-bench", directory,
                          profiled, NULL};

    if (source != BENCH_PYTORCH)
        environment[1] = NULL;
    if (source != BENCH_PYTORCH && !setup->gpu[0])
        environment[0] = NULL;
    return bench_child_start(child, source == BENCH_NSYS ? nsys : plain, environment, output, output, err);
}

static pid_t read_session(const char *directory)
{
    CLEANUP(free_ptr) char *path = bench_path(directory, "session");
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;

    return file_read(path, 32, &text, &length, NULL) == 0 ? (pid_t)atoi(text) : 0;
}

/* Node time from the job's beginning to its end, by its files; -1: it has not begun, or not ended. */
static double job_seconds(const char *directory, struct timespec *end)
{
    CLEANUP(free_ptr) char *begin_path = bench_path(directory, "begin");
    CLEANUP(free_ptr) char *end_path = bench_path(directory, "end");
    struct stat begin_info, end_info;

    if (stat(begin_path, &begin_info) || stat(end_path, &end_info))
        return -1;
    *end = end_info.st_mtim;
    return ((double)(end_info.st_mtim.tv_sec - begin_info.st_mtim.tv_sec) +
            (double)(end_info.st_mtim.tv_nsec - begin_info.st_mtim.tv_nsec) / 1e9) *
           nodetime_scale();
}

struct watching {
    struct bench_child job, tool;
    struct bench_usage usages[3]; /* of the job, of the tool, of DCGM's engine */
    int64_t begun_ns, ended_ns;   /* node time, the latter 0 while the command runs */
};

static void look(struct bench_run *run, struct watching *w, size_t *capacity)
{
    double at_s = (double)(nodetime_now_ns() - w->begun_ns) / 1e9;
    int64_t tool_memory_bytes;

    bench_usage_look(w->usages, array_size(w->usages));
    tool_memory_bytes = w->usages[1].memory_bytes + w->usages[2].memory_bytes;
    array_reserve(run->samples, *capacity, run->sample_count + 1);
    run->samples[run->sample_count++] = (struct bench_sample){.at_s = at_s,
                                                              .job_cpu_s = w->usages[0].cpu_s,
                                                              .tool_cpu_s = w->usages[1].cpu_s + w->usages[2].cpu_s,
                                                              .job_memory_bytes = w->usages[0].memory_bytes,
                                                              .tool_memory_bytes = tool_memory_bytes};
}

/* Until the job, and the profiler around it, has ended. */
static int wait_for_job(const struct bench_setup *setup, enum bench_source source, const char *directory,
                        struct bench_run *run, struct watching *w, struct error *err)
{
    size_t capacity = 0;

    w->usages[source == BENCH_NSYS].session = w->job.pid;
    for (bool ended = false; !ended;) {
        struct timespec end;
        usleep(LOOK_US);
        ended = bench_child_ended(&w->job);
        if (source == BENCH_NSYS && w->usages[0].session == 0)
            w->usages[0].session = read_session(directory);
        look(run, w, &capacity);
        if (w->ended_ns == 0 && job_seconds(directory, &end) >= 0)
            w->ended_ns = nodetime_now_ns();
        if (*setup->interrupted)
            return error_set(err, EINTR, "interrupted");
        if (w->tool.pid && bench_child_ended(&w->tool)) {
            CLEANUP(free_ptr) char *errors = bench_path(directory, "errors");
            CLEANUP(free_ptr) char *words = bench_last_words(errors);
            return error_set(err, EIO, "carma-monitor ended during a run: %s", words);
        }
    }
    return 0;
}

struct mean {
    const struct bench_setup *setup;
    enum bench_source source;
    const struct watching *w;
    double sums[GPU_METRIC_COUNT];
    int counts[GPU_METRIC_COUNT];
};

static void take_mean(void *user, const struct gpu_node_reading *reading)
{
    struct mean *mean = user;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct gpu_reading *gpu = &reading->gpus[i];
        /* An interval that ended just after the beginning was mostly before it. */
        int64_t from_ns = mean->w->begun_ns + mean->setup->period_ns;
        for (uint32_t metric = 0; strcmp(gpu->uuid, mean->setup->gpu) == 0 && metric < GPU_METRIC_COUNT; metric++) {
            const struct gpu_measure *measure = &gpu->metrics[metric];
            bool traffic = metric == GPU_PCIE_TX || metric == GPU_PCIE_RX;
            /* A substitute's values before a source's first one are not that source's. */
            if (measure->source != wanted_source[mean->source] || measure->at_ns < from_ns ||
                measure->at_ns > mean->w->ended_ns)
                continue;
            mean->sums[metric] += (double)measure->value / (traffic ? 1 : 1000);
            mean->counts[metric]++;
        }
    }
}

/* The bytes of the files in a directory with names that begin with `prefix`. */
static int64_t logged_bytes(const char *directory, const char *prefix)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    int64_t bytes = 0;

    while (entries && (entry = readdir(entries))) {
        CLEANUP(free_ptr) char *path = bench_path(directory, entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            bytes += bench_file_bytes(path);
    }
    if (entries)
        closedir(entries);
    return bytes;
}

static int finish_run(const struct bench_setup *setup, enum bench_source source, const char *directory,
                      struct bench_run *run, const struct watching *w, struct error *err)
{
    static const char *const logs[BENCH_SOURCES] = {[BENCH_UTILIZATION] = "frames",
                                                    [BENCH_GPM] = "frames",
                                                    [BENCH_DCGM] = "frames",
                                                    [BENCH_NSYS] = "report",
                                                    [BENCH_PYTORCH] = "trace.json"};
    struct mean mean = {.setup = setup, .source = source, .w = w};
    const struct bench_sample *last = &run->samples[run->sample_count - 1];
    struct timespec end;
    double length_s;

    run->epoch_s = job_seconds(directory, &end);
    if (run->epoch_s < 0 || w->job.status != 0)
        return error_set(err, ECHILD, "it ended with %s %d: see %s/output",
                         WIFSIGNALED(w->job.status) ? "signal" : "status",
                         WIFSIGNALED(w->job.status) ? WTERMSIG(w->job.status) : WEXITSTATUS(w->job.status), directory);
    length_s = nodetime_to_wall_ns((int64_t)(last->at_s * 1e9)) / 1e9;
    run->after_s = last->at_s > run->epoch_s ? last->at_s - run->epoch_s : 0;
    run->job_cpu = source == BENCH_NSYS ? w->usages[0].cpu_s : w->job.cpu_s;
    run->tool_cpu = (is_monitor(source) ? w->tool.cpu_s : w->usages[1].cpu_s) + w->usages[2].cpu_s;
    run->job_cpu /= run->epoch_s / nodetime_scale() > 0 ? run->epoch_s / nodetime_scale() : 1;
    run->tool_cpu /= length_s > 0 ? length_s : 1;
    run->job_memory_bytes = w->usages[0].memory_peak_bytes;
    run->tool_memory_bytes = w->usages[1].memory_peak_bytes + w->usages[2].memory_peak_bytes;
    run->logged_bytes = logs[source] ? logged_bytes(directory, logs[source]) : 0;
    if (is_monitor(source) && bench_watch_read(directory, take_mean, &mean, err) < 0)
        return -EIO;
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        run->metrics[metric] = mean.counts[metric] ? mean.sums[metric] / mean.counts[metric] : -1;
    return 0;
}

int bench_run(const struct bench_setup *setup, enum bench_source source, const char *name, const char *command,
              struct bench_run *run, struct error *err)
{
    CLEANUP(free_ptr) char *directory = bench_path(setup->directory, name);
    struct watching w = {.begun_ns = 0};
    int rc = file_make_dirs(directory, 0755, err);
    pid_t session;

    *run = (struct bench_run){0};
    if (rc == 0 && is_monitor(source))
        rc = bench_watch_start(setup, bench_source_name(source), setup->period_ns, directory, &w.tool, err);
    if (rc == 0 && is_monitor(source)) {
        w.usages[1].session = w.tool.pid;
        w.usages[2].name = source == BENCH_DCGM ? "nv-hostengine" : NULL;
        rc = bench_watch_wait(&w.tool, directory, 0, err);
    }
    w.begun_ns = nodetime_now_ns();
    if (rc == 0)
        rc = start_job(setup, source, directory, command, &w.job, err);
    if (rc == 0)
        rc = wait_for_job(setup, source, directory, run, &w, err);
    session = read_session(directory);
    if (w.job.pid && session)
        kill(-session, SIGTERM); /* under a profiler it is another one */
    bench_child_end(&w.job);
    bench_child_end(&w.tool);
    if (rc == 0)
        rc = finish_run(setup, source, directory, run, &w, err);
    for (size_t i = 0; i < array_size(w.usages); i++)
        bench_usage_release(&w.usages[i]);
    return rc;
}

void bench_run_release(struct bench_run *run)
{
    free_ptr(&run->samples);
    run->sample_count = 0;
}
