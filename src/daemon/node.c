#include "daemon/node.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "core/ledger.h"
#include "core/quantum.h"
#include "daemon/attribution.h"
#include "daemon/engine.h"
#include "daemon/runs.h"
#include "gpu/monitor.h"
#include "gpu/window.h"

/* A GPU as last read; entry i is the core's GPU i. */
struct node_gpu {
    struct gpu_reading reading;
    struct gpu_window window;
    int64_t at_ns;   /* of `reading`; 0: none since the daemon started */
    bool there;
    struct attribution attribution;
    int32_t smact_permille; /* window mean */
    double memory_byte_seconds;
    double sm_activity_seconds;
};

struct node {
    struct daemon *daemon;
    struct gpu_monitor *monitor;
    struct node_gpu *gpus; /* owned */
    uint32_t count;
    size_t capacity;
    struct attributor *attributor;
    bool told_of_profile;
};

static uint64_t owner_of(const void *user, pid_t pid)
{
    const struct daemon *daemon = user;

    return runs_owner_of(daemon->runs, pid);
}

struct node *node_new(struct daemon *daemon)
{
    struct node *node = xcalloc(1, sizeof *node);

    node->daemon = daemon;
    node->attributor = attributor_new(owner_of, daemon);
    return node;
}

void node_free(struct node *node)
{
    if (!node)
        return;
    gpu_monitor_free(node->monitor);
    attributor_free(node->attributor);
    free(node->gpus);
    free(node);
}

/* ---- Whose memory ---- */

static void feed_memory(struct node *node, const struct gpu *gpu, const struct job *job, int64_t held)
{
    const struct job_placement *placement = job_placement_on(job, gpu->number);
    struct record input = {.at_ns = nodetime_now_ns(), .job = job->id};

    input.memory = (struct record_memory){.gpu = gpu->number, .bytes = quantum_memory(held)};
    if (input.memory.bytes <= placement->observed_bytes)
        return;
    input.type = placement->observed_bytes ? RECORD_OBSERVED : RECORD_FIRST_USE;
    engine_input(node->daemon->engine, &input, NULL);
}

/* Tells the core what its jobs hold, and finds out what is nobody's. */
static void attribute(struct node *node, struct node_gpu *entry, uint32_t number)
{
    const struct gpu *gpu = core_gpu(node->daemon->core, number);

    attributor_judge(node->attributor, gpu, &entry->reading, &entry->attribution);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        int64_t held = attribution_of(&entry->attribution, gpu->residents[i]->id);
        if (held > 0)
            feed_memory(node, gpu, gpu->residents[i], held);
    }
}

/* ---- Readings ---- */

static uint32_t number_of(const struct core *core, const char *uuid)
{
    uint32_t number = 0;

    while (number < core_gpu_count(core) && strcmp(core_gpu(core, number)->uuid, uuid) != 0)
        number++;
    return number; /* the next one, where it is new */
}

static struct node_gpu *entry_of(struct node *node, uint32_t number)
{
    while (node->count <= number) {
        array_reserve(node->gpus, node->capacity, node->count + 1);
        memset(&node->gpus[node->count], 0, sizeof node->gpus[node->count]);
        gpu_window_init(&node->gpus[node->count].window, node->daemon->config.core.window_ns);
        node->count++;
    }
    return &node->gpus[number];
}

static void integrate(struct node_gpu *entry, int64_t at_ns)
{
    double seconds = entry->at_ns && at_ns > entry->at_ns ? (double)(at_ns - entry->at_ns) / 1e9 : 0;

    entry->memory_byte_seconds += seconds * (double)entry->reading.used_bytes;
    if (entry->reading.metrics[GPU_SM_ACTIVITY].source)
        entry->sm_activity_seconds += seconds * (double)entry->reading.metrics[GPU_SM_ACTIVITY].value / 1000.0;
}

static void gpu_comes_or_goes(struct node *node, uint32_t number, const struct gpu_reading *reading, bool there)
{
    struct daemon *daemon = node->daemon;
    const struct gpu *gpu = core_gpu(daemon->core, number);
    enum share_mode share = config_share_of(&daemon->config, number, there ? reading->uuid : gpu ? gpu->uuid : "");
    struct record input = {.type = there ? RECORD_GPU_BACK : RECORD_GPU_LOST, .at_ns = nodetime_now_ns()};
    struct error err;

    if (gpu ? gpu->lost == !there && (!there || (gpu->total_bytes == reading->total_bytes && gpu->share == share)) : !there)
        return;
    input.gpu.gpu = number;
    input.gpu.total_bytes = there ? reading->total_bytes : gpu->total_bytes;
    input.gpu.share = share;
    input.gpu.instance = there && reading->kind == GPU_INSTANCE;
    memcpy(input.gpu.uuid, there ? reading->uuid : gpu->uuid, sizeof input.gpu.uuid);
    if (engine_input(daemon->engine, &input, &err) != 0)
        daemon_log("GPU %s: %s", input.gpu.uuid, err.text);
    else if (gpu || !there)
        daemon_log("GPU %" PRIu32 " (%s) is %s", number, input.gpu.uuid, there ? "there" : "lost");
}

static void take_reading(struct node *node, const struct gpu_reading *reading, int64_t at_ns)
{
    uint32_t number = number_of(node->daemon->core, reading->uuid);
    bool known = number < core_gpu_count(node->daemon->core), measured = reading->valid & GPU_HAS_MEMORY;
    struct node_gpu *entry;

    if (!known && (reading->error || !measured))
        return;
    entry = entry_of(node, number);
    entry->there = reading->error == 0;
    if (entry->there && !measured) /* a call that failed once is no lost GPU: only the device's own error says that */
        return;
    gpu_comes_or_goes(node, number, reading, entry->there);
    if (!entry->there)
        return;
    integrate(entry, at_ns);
    entry->reading = *reading;
    entry->at_ns = at_ns;
    gpu_window_push(&entry->window, at_ns,
                    reading->metrics[GPU_SM_ACTIVITY].source ? (int32_t)reading->metrics[GPU_SM_ACTIVITY].value : -1);
    entry->smact_permille = gpu_window_mean(&entry->window, at_ns, NULL);
    attribute(node, entry, number);
}

static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct node *node = user;

    attributor_begin(node->attributor);
    for (uint32_t i = 0; i < node->count; i++)
        node->gpus[i].there = false;
    for (uint32_t i = 0; i < reading->count; i++)
        take_reading(node, &reading->gpus[i], reading->at_ns);
    for (uint32_t i = 0; i < core_gpu_count(node->daemon->core); i++)
        if (!entry_of(node, i)->there)
            gpu_comes_or_goes(node, i, NULL, false);
    engine_turn(node->daemon->engine);
}

static void on_problem(void *user, const char *text)
{
    (void)user;
    daemon_log("GPUs cannot be read: %s", text);
}

void node_watch(struct node *node)
{
    struct gpu_monitor_options options = {.library = node->daemon->config.nvml_library,
                                          .period_ns = node->daemon->config.sample_period_ns,
                                          .on_reading = on_reading,
                                          .on_problem = on_problem,
                                          .user = node};

    node->monitor = gpu_monitor_new(node->daemon->loop, &options);
}

void node_feed_samples(struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        struct node_gpu *entry = &node->gpus[i];
        struct record input = {.type = RECORD_SAMPLE, .at_ns = nodetime_now_ns()};
        if (!entry->there)
            continue;
        input.sample = (struct record_sample){.gpu = i,
                                              .used_bytes = quantum_memory(entry->reading.used_bytes),
                                              .foreign_bytes = quantum_memory(entry->attribution.foreign_bytes),
                                              .smact_permille = quantum_activity(entry->smact_permille),
                                              .smocc_permille = -1, /* not read yet */
                                              .dram_permille = -1};
        if (core_sample_is_due(node->daemon->core, &input))
            engine_input(node->daemon->engine, &input, NULL);
    }
}

/* ---- What people and estimators are told ---- */

static const struct machine_profile *profile_by_name(struct node *node)
{
    const struct machine_profile *found = NULL;

    for (uint32_t i = 0; i < node->count && !found; i++)
        if (*node->gpus[i].reading.name)
            found = machine_profile_find(node->gpus[i].reading.name);
    if (found)
        return found;
    if (node->count && !node->told_of_profile) {
        node->told_of_profile = true;
        daemon_log("no machine profile is known for GPU '%s': jobs are estimated as on %s; `carma calibrate` makes one",
                   node->gpus[0].reading.name, machine_profile_builtin(0)->name);
    }
    return machine_profile_builtin(0);
}

void node_machine_profile(struct node *node, struct machine_profile *profile)
{
    const struct daemon *daemon = node->daemon;
    int64_t largest_bytes = 0;

    *profile = *daemon->profile.name ? daemon->profile : *profile_by_name(node);
    for (uint32_t i = 0; i < core_gpu_count(daemon->core); i++)
        if (core_gpu(daemon->core, i)->total_bytes > largest_bytes)
            largest_bytes = core_gpu(daemon->core, i)->total_bytes;
    if (largest_bytes)
        profile->memory_bytes = largest_bytes;
}

static json_t *known(int64_t value, bool is_known)
{
    return is_known ? json_integer(value) : json_null();
}

/* Processes that are no job's; one that cannot be seen from here has neither user nor command. */
static json_t *foreign_to_json(const struct attribution *attribution)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < attribution->foreign_count; i++) {
        const struct attribution_foreign *process = &attribution->foreign[i];
        bool seen = *process->command;
        CLEANUP(free_ptr) char *user = seen ? view_user_name(process->uid) : NULL;
        json_array_append_new(list, json_pack("{s:i, s:s?, s:s?, s:o}", "pid", (int)process->pid, "user", user, "command",
                                              seen ? process->command : NULL, "used_bytes",
                                              known(process->used_bytes, process->used_bytes >= 0)));
    }
    return list;
}

static json_t *gpu_to_json(const struct node *node, const struct gpu *gpu)
{
    static const struct node_gpu unread;
    const struct node_gpu *entry = gpu->number < node->count ? &node->gpus[gpu->number] : &unread;
    const struct gpu_reading *reading = &entry->reading;
    json_t *jobs = json_array(), *json = json_object();

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        json_array_append_new(jobs, json_integer((json_int_t)gpu->residents[i]->id));
    json_object_set_new(json, "index", json_integer(gpu->number));
    json_object_set_new(json, "uuid", json_string(gpu->uuid));
    json_object_set_new(json, "name", entry->at_ns ? json_string(reading->name) : json_null());
    json_object_set_new(json, "lost", json_boolean(gpu->lost));
    json_object_set_new(json, "total_bytes", json_integer(gpu->total_bytes));
    json_object_set_new(json, "used_bytes", known(reading->used_bytes, entry->at_ns));
    json_object_set_new(json, "foreign_bytes", known(entry->attribution.foreign_bytes, entry->at_ns && entry->attribution.foreign_bytes >= 0));
    json_object_set_new(json, "foreign", foreign_to_json(&entry->attribution));
    json_object_set_new(json, "foreign_why",
                        *entry->attribution.why ? json_string(entry->attribution.why) : json_null());
    json_object_set_new(json, "free_bytes", json_integer(gpu_free_bytes(node->daemon->core, gpu)));
    json_object_set_new(json, "sm_activity_permille",
                        known(entry->smact_permille, entry->at_ns && entry->smact_permille >= 0));
    json_object_set_new(json, "power_mw", known(reading->power_mw, reading->valid & GPU_HAS_POWER));
    json_object_set_new(json, "energy_mj", known(reading->energy_mj, reading->valid & GPU_HAS_ENERGY));
    json_object_set_new(json, "processes", known(reading->process_count, reading->valid & GPU_HAS_PROCESSES));
    json_object_set_new(json, "jobs", jobs);
    json_object_set_new(json, "observed_ns", known(entry->at_ns, entry->at_ns));
    json_object_set_new(json, "memory_byte_seconds", json_real(entry->memory_byte_seconds));
    json_object_set_new(json, "sm_activity_seconds", json_real(entry->sm_activity_seconds));
    return json;
}

json_t *node_to_json(const struct node *node)
{
    const struct core *core = node->daemon->core;
    json_t *list = json_array();

    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        json_array_append_new(list, gpu_to_json(node, core_gpu(core, i)));
    return json_pack("{s:I, s:o}", "now_ns", (json_int_t)nodetime_now_ns(), "gpus", list);
}
