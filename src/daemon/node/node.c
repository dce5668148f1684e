/* The node's GPUs as the daemon knows them: each reading of carma-monitor comes in here.
 *
 * on_reading() takes the GPUs of one reading (take_reading): it keeps it for whoever shows it (keep_reading),
 * integrates energy, and attributes the memory to jobs (attribute). What the core decides by goes on as records: a GPU
 * that comes or goes at once, samples when a window is full (node_feed_samples). on_blind() takes GPUs for lost where
 * no reading comes. node_*.c beside this file have one question each, and struct node is theirs as well
 * (node_internal.h). */
#include "daemon/node/node.h"

#include <inttypes.h>
#include <string.h>

#include "base/handle.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "core/ledger.h"
#include "core/quantum.h"
#include "daemon/engine/engine.h"
#include "daemon/log.h"
#include "daemon/node/node_internal.h"

/* SM activity from which a GPU counts as used. */
#define BUSY_PERMILLE 10

/* Without a reading for this wall time (or for this many periods, where that is more), GPUs are taken for lost. A
 * driver that cannot be asked runs no new job. It is longer than a carma-monitor that hangs takes to be replaced. */
#define BLIND_WALL_MS 30000
#define BLIND_PERIODS 4

void node_stop(struct node *node)
{
    gpu_monitor_free(node->monitor);
    node->monitor = NULL;
    if (node->blind)
        uv_close((uv_handle_t *)node->blind, free_handle);
    node->blind = NULL;
    node_energy_stop(node);
}

struct node *node_new(struct daemon *daemon, const struct node_calls *calls)
{
    struct node *node = xcalloc(1, sizeof *node);

    node->daemon = daemon;
    node->calls = calls;
    node->attributor = attributor_new(calls->owner_of, daemon);
    return node;
}

void node_free(struct node *node)
{
    if (!node)
        return;
    gpu_monitor_free(node->monitor);
    attributor_free(node->attributor);
    node_energy_free(node);
    for (uint32_t i = 0; i < node->count; i++) {
        close_fd(&node->gpus[i]->claim);
        free(node->gpus[i]->strays);
        free(node->gpus[i]);
    }
    free(node->gpus);
    free(node->mig_minors);
    free(node);
}

/* ---- Which is which ---- */

struct node_gpu *node_gpu_numbered(const struct node *node, uint32_t number)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->number == number)
            return node->gpus[i];
    return NULL;
}

struct node_gpu *node_gpu_of_uuid(const struct node *node, const char *uuid)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (strcmp(node->gpus[i]->uuid, uuid) == 0)
            return node->gpus[i];
    return NULL;
}

const struct node_gpu *node_physical(const struct node *node, const struct node_gpu *gpu)
{
    return gpu->reading.kind == GPU_INSTANCE ? node_gpu_of_uuid(node, gpu->reading.parent) : gpu;
}

static void add_jobs(const struct node *node, const struct node_gpu *entry, struct strbuf *out)
{
    const struct gpu *gpu = core_gpu(node->daemon->core, entry->number);

    for (uint32_t i = 0; gpu && i < gpu->resident_count; i++)
        strbuf_printf(out, "%s%" PRIu64, out->length ? ", " : "", gpu->residents[i]->id);
}

char *node_jobs_on(const struct node *node, const struct node_gpu *gpu)
{
    struct strbuf out = {0};

    strbuf_puts(&out, "");
    add_jobs(node, gpu, &out);
    for (uint32_t i = 0; i < node->count && gpu->reading.kind == GPU_PARTITIONED; i++)
        if (node->gpus[i]->reading.kind == GPU_INSTANCE && strcmp(node->gpus[i]->reading.parent, gpu->uuid) == 0)
            add_jobs(node, node->gpus[i], &out);
    return strbuf_steal(&out);
}

/* The core's number of a GPU; the next one, where it is new. */
static uint32_t number_of(const struct core *core, const char *uuid)
{
    uint32_t number = 0;

    while (number < core_gpu_count(core) && strcmp(core_gpu(core, number)->uuid, uuid) != 0)
        number++;
    return number;
}

static struct node_gpu *entry_of(struct node *node, const char *uuid)
{
    struct node_gpu *entry = node_gpu_of_uuid(node, uuid);

    if (entry)
        return entry;
    entry = xcalloc(1, sizeof *entry);
    memcpy(entry->uuid, uuid, sizeof entry->uuid);
    entry->number = NODE_NO_NUMBER;
    entry->claim = -1;
    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT; metric++)
        entry->told.sources[metric] = GPU_SOURCE_COUNT;
    for (int i = 0; i < NODE_WINDOWS; i++) {
        gpu_window_init(&entry->windows[i], node->daemon->config.core.window_ns, node->daemon->config.sample_period_ns);
        entry->statistics[i] = -1;
    }
    array_reserve(node->gpus, node->capacity, node->count + 1);
    node->gpus[node->count++] = entry;
    return entry;
}

/* ---- Owners of memory ---- */

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

/* Tells the core the memory of its jobs, and finds the unmanaged memory. */
static void attribute(struct node *node, struct node_gpu *entry)
{
    const struct gpu *gpu = core_gpu(node->daemon->core, entry->number);

    if (!gpu)
        return;
    attributor_judge(node->attributor, gpu, &entry->reading, &entry->attribution);
    node_stray_judge(node, entry);
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        int64_t held = attribution_of(&entry->attribution, gpu->residents[i]->id);
        if (held > 0)
            feed_memory(node, gpu, gpu->residents[i], held);
    }
}

const char *node_unmanaged_why(const struct node *node, uint32_t number)
{
    const struct node_gpu *entry = node_gpu_numbered(node, number);

    return entry ? entry->attribution.why : "";
}

/* ---- Readings ---- */

static void integrate(struct node_gpu *entry, int64_t at_ns)
{
    double seconds = entry->at_ns && at_ns > entry->at_ns ? (double)(at_ns - entry->at_ns) / 1e9 : 0;

    entry->memory_byte_seconds += seconds * (double)entry->reading.used_bytes;
    if (entry->reading.metrics[GPU_SM_ACTIVITY].source)
        entry->sm_activity_seconds += seconds * (double)entry->reading.metrics[GPU_SM_ACTIVITY].value / 1000.0;
}

static int32_t activity_of(const struct gpu_reading *reading, uint32_t metric)
{
    return reading->metrics[metric].source ? (int32_t)reading->metrics[metric].value : -1;
}

static void fill_windows(const struct node *node, struct node_gpu *entry)
{
    for (uint32_t i = 0; i < NODE_WINDOWS; i++) {
        gpu_window_push(&entry->windows[i], entry->at_ns, activity_of(&entry->reading, i));
        entry->statistics[i] =
            gpu_window_statistic(&entry->windows[i], node->daemon->config.core.statistic, entry->at_ns);
    }
    if (activity_of(&entry->reading, GPU_SM_ACTIVITY) >= BUSY_PERMILLE || entry->active_ns == 0)
        entry->active_ns = entry->at_ns;
}

static void log_closed(const struct node *node, uint32_t number, const struct gpu_reading *reading)
{
    const struct gpu *gpu = core_gpu(node->daemon->core, number);
    const struct node_gpu *entry = node_gpu_numbered(node, number);
    bool lost = !reading || reading->error;
    bool partitioned = !lost && reading->kind == GPU_PARTITIONED;
    CLEANUP(free_ptr) char *why = partitioned ? NULL : node_why_lost(node, entry, gpu);

    daemon_log("GPU %" PRIu32 " (%s) %s%s%s: nothing is placed there", number, gpu->uuid,
               partitioned ? "is in MIG mode now"
               : lost      ? "is lost"
                           : "cannot be used",
               why ? ": " : "", why ? why : "");
}

/* Whether the core knows it as it is. */
static bool is_as_known(const struct gpu *gpu, const struct record_gpu *now)
{
    return gpu->total_bytes == now->total_bytes && gpu->share == now->share &&
           gpu->part_permille == (now->part_permille ? now->part_permille : 1000) &&
           strcmp(gpu->name, now->name) == 0 && gpu->compute == now->compute;
}

/* A GPU that is new comes, or gets its number though it cannot be used yet. */
static void gpu_comes_or_goes(struct node *node, uint32_t number, const struct gpu_reading *reading, bool there)
{
    struct daemon *daemon = node->daemon;
    const struct gpu *gpu = core_gpu(daemon->core, number);
    const char *why;
    enum share_mode share = there ? node_share_of(node, number, reading, &why) : gpu ? gpu->share : SHARE_ANY;
    int32_t part = there && reading->kind == GPU_INSTANCE ? reading->part_permille : 0;
    struct record input = {.type = there ? RECORD_GPU_BACK : RECORD_GPU_LOST, .at_ns = nodetime_now_ns()};
    bool known = gpu;
    struct error err;

    input.gpu.gpu = number;
    input.gpu.total_bytes = there ? reading->total_bytes : gpu ? gpu->total_bytes : 0;
    input.gpu.share = share;
    input.gpu.part_permille = part;
    input.gpu.instance = there && reading->kind == GPU_INSTANCE;
    if (there) {
        snprintf(input.gpu.name, sizeof input.gpu.name, "%.*s", GPU_NAME_ROOM - 1, reading->name);
        input.gpu.compute = reading->compute;
    }
    if (gpu ? gpu->lost == !there && (!there || is_as_known(gpu, &input.gpu)) : !reading)
        return;
    memcpy(input.gpu.uuid, there || !gpu ? reading->uuid : gpu->uuid, sizeof input.gpu.uuid);
    if (engine_input(daemon->engine, &input, &err) != 0)
        daemon_log("GPU %s: %s", input.gpu.uuid, err.text);
    else if (node->unread)
        return; /* told once for all of them */
    else if (there && known)
        daemon_log("GPU %" PRIu32 " (%s) is there", number, input.gpu.uuid);
    else if (!there)
        log_closed(node, number, reading);
}

/* A GPU in MIG mode takes no job: its instances do. */
static bool is_target(const struct gpu_reading *reading)
{
    return reading->kind != GPU_PARTITIONED;
}

/* Whether the reading is one to go on with. */
static bool admit(struct node *node, struct node_gpu *entry, const struct gpu_reading *reading)
{
    node_untold_take(entry, reading);
    if (entry->number != NODE_NO_NUMBER && !node_untold_is_forgiven(entry))
        gpu_comes_or_goes(node, entry->number, reading, node_untold_is_open(entry, reading));
    return entry->there;
}

/* Memory that is not told just now stays as it was. */
static void keep_reading(struct node_gpu *entry, const struct gpu_reading *reading)
{
    struct gpu_reading before = entry->reading;

    entry->reading = *reading;
    if (reading->valid & GPU_HAS_MEMORY)
        return;
    entry->reading.total_bytes = before.total_bytes;
    entry->reading.reserved_bytes = before.reserved_bytes;
    entry->reading.used_bytes = before.used_bytes;
}

/* Also of a lost GPU: the Xid says why, and which jobs were there. */
static void take_xid(struct node *node, struct node_gpu *entry, const struct gpu_reading *reading)
{
    entry->reading.xid = reading->xid;
    entry->reading.xid_count = reading->xid_count;
    entry->reading.xid_at_ns = reading->xid_at_ns;
    node_report_xid(node, entry);
}

static void take_reading(struct node *node, const struct gpu_reading *reading, int64_t at_ns)
{
    const struct core *core = node->daemon->core;
    uint32_t number = number_of(core, reading->uuid);
    bool known = number < core_gpu_count(core);
    struct node_gpu *entry;

    if (!*reading->uuid) {
        node_untold_unnamed(node, reading);
        return;
    }
    entry = entry_of(node, reading->uuid);
    if (known || (is_target(reading) && !reading->refused[GPU_REFUSED_MIG]))
        entry->number = number;
    take_xid(node, entry, reading);
    if (!admit(node, entry, reading))
        return;
    integrate(entry, at_ns);
    keep_reading(entry, reading);
    entry->at_ns = at_ns;
    node_remember(entry);
    fill_windows(node, entry);
    attribute(node, entry);
    if (entry->attribution.unmanaged_count || *entry->attribution.why)
        entry->others_ns = at_ns;
    node_report_gpu(node, entry);
    node_notes_tell(node, entry);
}

static void on_blind(uv_timer_t *timer)
{
    struct node *node = timer->data;

    uv_timer_stop(timer); /* until the next reading */
    daemon_log("no GPU could be read for %" PRIu64 " s", uv_timer_get_repeat(timer) / 1000);
    for (uint32_t i = 0; i < core_gpu_count(node->daemon->core); i++)
        gpu_comes_or_goes(node, i, NULL, false);
    node_report_unused(node);
    engine_turn(node->daemon->engine);
}

static void on_reading(void *user, const struct gpu_node_reading *reading)
{
    struct node *node = user;
    const struct core *core = node->daemon->core;

    uv_timer_again(node->blind);
    attributor_begin(node->attributor);
    node_untold_begin(node);
    for (uint32_t i = 0; i < reading->count; i++)
        take_reading(node, &reading->gpus[i], reading->at_ns);
    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        const struct node_gpu *entry = node_gpu_numbered(node, i);
        if (!entry || !entry->there)
            gpu_comes_or_goes(node, i, NULL, false);
    }
    node_read_devices(node);
    node_stray_charge(node);
    node_follow_residents(node);
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->there)
            node_energy_read(node, node->gpus[i]);
    node_report_order(node);
    node_report_share(node);
    node_report_reading(node, reading);
    if (node->unread)
        daemon_log("GPUs can be read again");
    node->unread = false;
    node_untold_report(node);
    node_report_unused(node);
    node_series_add(node, reading->at_ns);
    node->calls->was_read(node->daemon);
    engine_turn(node->daemon->engine);
}

/* A driver that does not answer may do anything to a new job, and the GPUs' memory is unknown. */
static void on_problem(void *user, const char *text)
{
    struct node *node = user;
    const struct core *core = node->daemon->core;

    daemon_log("GPUs cannot be read, nothing is placed: %s", text);
    node->unread = true;
    snprintf(node->problem, sizeof node->problem, "GPUs cannot be read: %s", text);
    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        gpu_comes_or_goes(node, i, NULL, false);
    node_report_unused(node);
    engine_turn(node->daemon->engine);
}

void node_watch(struct node *node)
{
    struct gpu_monitor_options options = {.library = node->daemon->config.nvml_library,
                                          .dcgm_library = node->daemon->config.dcgm_library,
                                          .period_ns = node->daemon->config.sample_period_ns,
                                          .on_reading = on_reading,
                                          .on_problem = on_problem,
                                          .user = node};
    uint64_t blind_ms = (uint64_t)(BLIND_PERIODS * nodetime_to_wall_ns(options.period_ns) / NS_PER_MS);

    if (blind_ms < BLIND_WALL_MS)
        blind_ms = BLIND_WALL_MS;
    node->blind = xmalloc(sizeof *node->blind);
    uv_timer_init(node->daemon->loop, node->blind);
    node->blind->data = node;
    uv_update_time(node->daemon->loop); /* reading the store took its time */
    uv_timer_start(node->blind, on_blind, blind_ms, blind_ms);
    node->monitor = gpu_monitor_new(node->daemon->loop, &options);
}

void node_feed_samples(struct node *node)
{
    int64_t window_ns = node->daemon->config.core.window_ns;

    for (uint32_t i = 0; i < node->count; i++) {
        struct node_gpu *entry = node->gpus[i];
        struct record input = {.type = RECORD_SAMPLE, .at_ns = nodetime_now_ns()};
        int64_t others_ns = entry->others_ns;
        if (!entry->there || !gpu_reading_usable(&entry->reading) || !core_gpu(node->daemon->core, entry->number))
            continue;
        input.sample = (struct record_sample){.gpu = entry->number,
                                              .used_bytes = quantum_memory(entry->reading.used_bytes),
                                              .unmanaged_bytes = quantum_memory(entry->attribution.unmanaged_bytes),
                                              .smact_permille = quantum_activity(entry->statistics[GPU_SM_ACTIVITY]),
                                              .smocc_permille = quantum_activity(entry->statistics[GPU_SM_OCCUPANCY]),
                                              .dram_permille = quantum_activity(entry->statistics[GPU_DRAM_ACTIVITY]),
                                              .others = others_ns && entry->at_ns - others_ns <= window_ns};
        if (core_sample_is_due(node->daemon->core, &input))
            engine_input(node->daemon->engine, &input, NULL);
    }
}

/* ---- Facts for estimators ---- */

const char *node_gpu_name(const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (*node->gpus[i]->reading.name)
            return node->gpus[i]->reading.name;
    return "";
}

static const struct machine_profile *profile_by_name(struct node *node)
{
    const struct machine_profile *found = NULL;

    for (uint32_t i = 0; i < node->count && !found; i++)
        if (*node->gpus[i]->reading.name)
            found = machine_profile_find(node->gpus[i]->reading.name);
    if (found)
        return found;
    if (node->count && !node->told_of_profile) {
        node->told_of_profile = true;
        daemon_log("no machine profile is known for GPU '%s': jobs are estimated as on %s; `carma calibrate` makes one",
                   node->gpus[0]->reading.name, machine_profile_builtin(0)->name);
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
