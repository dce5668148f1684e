/* The metrics of GET /metrics: one table, and the walk over it.
 *
 * A row of metrics[] names a metric, its type and unit, whose it is (METRIC_OF_...), and the function that reads its
 * value; those stand in metrics_node.c and metrics_gpu.c. metrics_text() gathers what several rows need (gather). It
 * tells each row for all whom it is about (tell_all), and prints by prometheus.c. metrics_describe() prints the table
 * for docs/formats/prometheus.md, which a test compares. A new metric is a row here and a line there. */
#include "daemon/metrics/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "daemon/account/totals.h"
#include "daemon/capture/captures.h"
#include "daemon/metrics/metrics_internal.h"

/* In the order in which they are shown. A counter begins anew with carmad where its text says so; all others are kept
 * in the store and never fall. */
static const struct metric metrics[] = {
    {"carma_build_info", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_BUILD, metric_one, 0, "1; which carma this is."},
    {"carma_node_time_seconds", PROMETHEUS_GAUGE, PROMETHEUS_NANO, METRIC_OF_NODE, metric_node_time, 0,
     "The node's time, since 1970 or, on a virtual node, since the machine's start. All seconds and rates of jobs and "
     "GPUs are of this time."},
    {"carma_node_time_scale", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_NODE, metric_time_scale, 0,
     "Seconds of the node's time in a second: 1, but on a virtual node."},
    {"carma_store_trouble", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_store_trouble, 0,
     "1 while nothing can be stored, so that new jobs are refused and none is started."},

    {"carma_jobs", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_STATE, metric_jobs, 0,
     "Jobs that have not ended, by state."},
    {"carma_host_memory_asked_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_host_memory, 0,
     "Host memory that jobs with GPUs have asked for by --memory."},
    {"carma_queue_oldest_wait_seconds", PROMETHEUS_GAUGE, PROMETHEUS_NANO, METRIC_OF_NODE, metric_oldest_wait, 0,
     "How long ago that queued job was submitted which was submitted first; 0 where none is queued."},
    {"carma_decisions_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_DECISION, metric_decisions, 0,
     "Decisions by kind, since carmad began."},
    {"carma_jobs_submitted_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_submitted, 0,
     "Jobs that were submitted."},
    {"carma_job_ends_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_END, metric_ends, 0,
     "Jobs that have ended, by state."},
    {"carma_oom_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_OOM, metric_oom, 0,
     "Runs that ended because GPU memory ran out, by cause: an allocation failed, or a GPU library could not be set "
     "up."},
    {"carma_retries_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_retries, 0,
     "Times that a job was put before the queue to be retried."},
    {"carma_captures_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_CAPTURE, metric_captures, 0,
     "Automatic captures by outcome, since carmad began: the job was estimated, nothing was recorded to estimate it "
     "from, "
     "the capture failed, it was dropped since the job had ended, or a kept one was used."},
    {"carma_queue_wait_seconds", PROMETHEUS_HISTOGRAM, PROMETHEUS_NANO, METRIC_OF_WAIT, NULL, 0,
     "How long jobs waited from their submission to their first start."},

    {"carma_user_gpu_seconds_total", PROMETHEUS_COUNTER, PROMETHEUS_NANO, METRIC_OF_USER, metric_user_gpu_time, 0,
     "GPUs times how long the user's jobs ran on them, a shared one counted for each; as last seen."},
    {"carma_user_energy_joules_total", PROMETHEUS_COUNTER, PROMETHEUS_MILLI, METRIC_OF_USER, metric_user_energy, 0,
     "The user's part of the GPUs' energy, as modelled; the stored part of it."},
    {"carma_user_job_ends_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_USER, metric_user_ends, 0,
     "Jobs of the user that have ended."},
    {"carma_user_oom_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_USER, metric_user_oom, 0,
     "Runs of the user's jobs that ended because GPU memory ran out."},
    {"carma_user_retries_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_USER, metric_user_retries, 0,
     "Times that a job of the user was put before the queue to be retried."},

    {"carma_gpu_info", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_KIND, metric_one, 0,
     "1; the GPU's name and kind, and how jobs share it."},
    {"carma_gpu_lost", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_lost, 0,
     "1 while the GPU cannot be used; its measured figures are not there then."},
    {"carma_gpu_drained", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_drained, 0,
     "1 while an administrator lets no further job come to the GPU, or to any."},
    {"carma_gpu_unknown", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_unknown, 0,
     "Figures that NVML does not tell of the GPU: carma gpus names them."},
    {"carma_gpu_read_time_seconds", PROMETHEUS_GAUGE, PROMETHEUS_NANO, METRIC_OF_GPU, metric_gpu_read_time, 0,
     "When the GPU was last read, in the node's time."},
    {"carma_gpu_jobs", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_jobs, 0, "Jobs on the GPU."},
    {"carma_gpu_memory_total_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_total, 0,
     "Memory that jobs can use."},
    {"carma_gpu_memory_used_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_used, 0,
     "Memory in use, by all processes."},
    {"carma_gpu_memory_reserved_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_reserved, 0,
     "Memory reserved for jobs: of each the larger of its reservation and its observed memory; all, where a need is "
     "unknown."},
    {"carma_gpu_memory_unmanaged_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_unmanaged, 0,
     "Memory used by unmanaged processes."},
    {"carma_gpu_memory_free_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_free, 0,
     "Memory that is left for a further job, as carma counts it."},
    {"carma_gpu_sm_active_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_SM_ACTIVITY, "Share of SMs with work; from `utilization` an upper bound that stands in for it."},
    {"carma_gpu_sm_occupancy_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_SM_OCCUPANCY, "Warps on the SMs, of the most there can be."},
    {"carma_gpu_dram_active_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_DRAM_ACTIVITY, "Share of cycles in which the GPU's memory was read or written."},
    {"carma_gpu_tensor_active_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_TENSOR_ACTIVITY, "Share of cycles in which a tensor pipe was busy."},
    {"carma_gpu_graphics_active_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_GRAPHICS_ACTIVITY, "Share of time in which some engine was busy, however little."},
    {"carma_gpu_pcie_sent_bytes_per_second", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_SOURCE, metric_gpu_measure,
     GPU_PCIE_TX, "Traffic from the GPU to the host."},
    {"carma_gpu_pcie_received_bytes_per_second", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_SOURCE,
     metric_gpu_measure, GPU_PCIE_RX, "Traffic from the host to the GPU."},
    {"carma_gpu_sm_active_seconds_total", PROMETHEUS_COUNTER, PROMETHEUS_NANO, METRIC_OF_GPU, metric_gpu_active_time, 0,
     "SM activity over time, in the node's time, since carmad began: its rate is the mean activity."},
    {"carma_gpu_power_watts", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_GPU, metric_gpu_power, 0,
     "Power that the GPU draws."},
    {"carma_gpu_idle_power_watts", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_GPU, metric_gpu_idle_power, 0,
     "The lowest power observed on the empty GPU."},
    {"carma_gpu_energy_joules_total", PROMETHEUS_COUNTER, PROMETHEUS_MILLI, METRIC_OF_GPU, metric_gpu_energy, 0,
     "The GPU's own counter, which begins anew with its driver."},
    {"carma_gpu_idle_energy_joules_total", PROMETHEUS_COUNTER, PROMETHEUS_MILLI, METRIC_OF_GPU, metric_gpu_idle_energy,
     0, "The part of the GPU's energy that no process used, as modelled; the stored part of it."},
    {"carma_gpu_unmanaged_energy_joules_total", PROMETHEUS_COUNTER, PROMETHEUS_MILLI, METRIC_OF_GPU,
     metric_gpu_unmanaged_energy, 0,
     "The unmanaged processes' part of the GPU's energy, as modelled; the stored part of it."},
    {"carma_gpu_temperature_celsius", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_fact,
     GPU_TEMPERATURE, "Its temperature."},
    {"carma_gpu_sm_clock_hertz", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_clock, GPU_SM_CLOCK,
     "The clock of its SMs now."},
    {"carma_gpu_power_limit_watts", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_GPU, metric_gpu_fact, GPU_POWER_LIMIT,
     "The power limit that is enforced."},
    {"carma_gpu_ecc_corrected_errors_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_fact,
     GPU_ECC_CORRECTED, "Errors of its memory that were corrected, since its driver was loaded."},
    {"carma_gpu_ecc_uncorrected_errors_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_fact,
     GPU_ECC_UNCORRECTED, "Errors of its memory that were not, likewise."},
    {"carma_gpu_throttled", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_throttled, 0,
     "1 while heat, its power supply or its hardware holds its clocks down."},
    {"carma_gpu_xid", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_xid, 0,
     "The code of the latest critical error (Xid) since carma-monitor began; 0: none."},
    {"carma_gpu_xids_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_GPU, metric_gpu_xids, 0,
     "Critical errors (Xids) since carma-monitor began."},

    {"carma_job_info", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NAME, metric_one, 0,
     "1 for each job that has GPUs: its name, its user and how it runs."},
    {"carma_job_gpu_memory_reserved_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_SHARE, metric_job_reserved, 0,
     "Memory reserved for the job on the GPU; not there where its reservation is not known."},
    {"carma_job_gpu_memory_used_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_SHARE, metric_job_used, 0,
     "Memory that the job's processes hold on the GPU, where the driver says so."},
    {"carma_job_gpu_memory_peak_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_SHARE, metric_job_peak, 0,
     "The most that the job was observed to hold on the GPU in this run."},
    {"carma_job_stray_memory_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_STRAY, metric_stray, 0,
     "Memory of a process of the job on a GPU that the job was not given. 0: the driver does not tell it."},
    {"carma_job_gpu_memory_over_reservation_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_JOB, metric_job_over,
     0, "Memory that the job was observed to use on one of its GPUs beyond its reservation at its start; 0: none."},
    {"carma_job_victims_total", PROMETHEUS_COUNTER, PROMETHEUS_WHOLE, METRIC_OF_JOB, metric_job_victims, 0,
     "Jobs that the job ran out of GPU memory by using more than was reserved for it."},
    {"carma_job_slowdown_ratio", PROMETHEUS_GAUGE, PROMETHEUS_MILLI, METRIC_OF_JOB, metric_job_slowdown, 0,
     "How many times slower the job is estimated to run than alone, by the estimates of the jobs on its GPUs."},
    {"carma_job_gpu_seconds_total", PROMETHEUS_COUNTER, PROMETHEUS_NANO, METRIC_OF_JOB, metric_job_gpu_time, 0,
     "GPUs times how long the job ran on them, in all its launches, as last seen."},
    {"carma_job_energy_joules_total", PROMETHEUS_COUNTER, PROMETHEUS_MILLI, METRIC_OF_JOB, metric_job_energy, 0,
     "The job's part of its GPUs' energy, as modelled; the stored part of it."},

    {"process_resident_memory_bytes", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_resident_memory, 0,
     "Memory of carmad itself."},
    {"process_open_fds", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_open_files, 0,
     "Descriptors that carmad has open."},
    {"process_max_fds", PROMETHEUS_GAUGE, PROMETHEUS_WHOLE, METRIC_OF_NODE, metric_most_files, 0,
     "Descriptors that carmad may have open."},
    {"process_cpu_seconds_total", PROMETHEUS_COUNTER, PROMETHEUS_NANO, METRIC_OF_NODE, metric_processor_time, 0,
     "Processor time of carmad, in seconds of the machine."},
    {"process_start_time_seconds", PROMETHEUS_GAUGE, PROMETHEUS_NANO, METRIC_OF_NODE, metric_start_time, 0,
     "When carmad began, in seconds since 1970."},
};

/* ---- The scene ---- */

static void add_sums(struct history_sums *to, const struct history_sums *from)
{
    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        history_add(&to->ended[state], from->ended[state]);
    for (size_t i = 0; i < HISTORY_WAIT_BOUNDS; i++)
        history_add(&to->wait_le[i], from->wait_le[i]);
    history_add(&to->launched, from->launched);
    history_add(&to->wait_ns, from->wait_ns);
    history_add(&to->gpu_ns, from->gpu_ns);
    history_add(&to->energy_mj, from->energy_mj);
    history_add(&to->oom_crashes, from->oom_crashes);
    history_add(&to->handle_crashes, from->handle_crashes);
    history_add(&to->retries, from->retries);
}

static void take_total(const struct total *total, void *user)
{
    struct metrics_scene *scene = user;

    add_sums(&scene->sums, &total->sums);
    history_add(&scene->submitted, total->submitted);
    if (scene->user_count <= METRICS_MOST_USERS) {
        bool others = scene->user_count == METRICS_MOST_USERS;
        array_reserve(scene->users, scene->user_capacity, scene->user_count + 1);
        scene->users[scene->user_count++] = (struct metrics_user){
            .uid = total->uid,
            .name = others        ? xstrdup("(others)")
                    : total->user ? xstrdup(total->user)
                                  : NULL,
            .others = others,
            .sums = total->sums,
        };
    } else {
        add_sums(&scene->users[METRICS_MOST_USERS].sums, &total->sums);
    }
}

static struct metrics_user *user_of(const struct metrics_scene *scene, uint32_t uid)
{
    for (size_t i = 0; i < scene->user_count; i++)
        if (scene->users[i].others || scene->users[i].uid == uid)
            return &scene->users[i];
    return NULL;
}

static void take_unstored(uint64_t party, int64_t mj, void *user)
{
    struct metrics_scene *scene = user;
    const struct job_view *view = views_find(&scene->daemon->views, party);
    struct metrics_user *whose = view ? user_of(scene, view->wants->uid) : NULL;

    array_reserve(scene->unstored, scene->unstored_capacity, scene->unstored_count + 1);
    scene->unstored[scene->unstored_count++] = (struct metrics_unstored){.party = party, .mj = mj};
    if (whose)
        whose->unstored_mj += mj;
}

static void gather(struct metrics_scene *scene, const struct daemon *daemon)
{
    *scene = (struct metrics_scene){.daemon = daemon, .now_ns = nodetime_now_ns()};
    scene->oldest_ns = scene->now_ns;
    gethostname(scene->hostname, sizeof scene->hostname - 1);
    for (const struct job_view *view = daemon->views.jobs; view; view = view->hh.next) {
        if (!job_view_is_shown(view))
            continue;
        scene->counts[view->state]++;
        if (view->state == JOB_QUEUED && view->submitted_ns < scene->oldest_ns)
            scene->oldest_ns = view->submitted_ns;
        if (!job_state_has_gpus(view->state))
            continue;
        array_reserve(scene->views, scene->view_capacity, scene->view_count + 1);
        scene->views[scene->view_count++] = view;
    }
    totals_read(daemon, scene->now_ns, take_total, scene);
    node_energy_unstored(daemon->node, take_unstored, scene);
}

static void release(struct metrics_scene *scene)
{
    for (size_t i = 0; i < scene->user_count; i++)
        free(scene->users[i].name);
    free(scene->users);
    free(scene->unstored);
    free(scene->views);
}

/* ---- Samples ---- */

/* One metric on its way: its lines before the samples come with the first. */
struct telling {
    const struct metrics_scene *scene;
    const struct metric *metric;
    struct strbuf *out;
    bool open; /* as OpenMetrics */
    bool begun;
};

static void tell(struct telling *telling, const struct metric_subject *subject, const struct prometheus_label *labels)
{
    const struct metric *metric = telling->metric;
    int64_t value;

    if (!metric->value(telling->scene, subject, &value))
        return;
    if (!telling->begun)
        prometheus_begin(telling->out, metric->name, metric->type, metric->help, telling->open);
    telling->begun = true;
    prometheus_sample(telling->out, metric->name, labels, value, metric->unit);
}

#define NUMBER_TEXT 24

/* Which GPU it is, as dcgm-exporter says it (UUID, GPU_I_ID, hostname), so that its metrics can be joined with these.
 * An instance has its GPU's UUID, and tells itself apart by its id there. `gpu` is carma's number. */
struct gpu_labels {
    char number[NUMBER_TEXT], instance[NUMBER_TEXT];
    const char *uuid;
};

static void name_gpu(const struct metric_subject *gpu, struct gpu_labels *labels)
{
    const struct gpu_reading *reading = &gpu->entry->reading;
    bool is_instance = reading->kind == GPU_INSTANCE && *reading->parent;

    labels->uuid = is_instance ? reading->parent : gpu->gpu ? gpu->gpu->uuid : gpu->entry->uuid;
    *labels->number = *labels->instance = '\0';
    if (gpu->gpu)
        snprintf(labels->number, sizeof labels->number, "%" PRIu32, gpu->gpu->number);
    if (is_instance)
        snprintf(labels->instance, sizeof labels->instance, "%" PRIu32, reading->gpu_instance);
}

static void tell_gpu(struct telling *telling, struct metric_subject *gpu)
{
    static const char *const kinds[GPU_KIND_COUNT] = {"whole", "partitioned", "instance"};
    const struct metrics_scene *scene = telling->scene;
    enum metric_of of = telling->metric->of;
    const struct gpu_reading *reading = &gpu->entry->reading;
    struct gpu_labels names;
    const char *source = NULL, *share = NULL;

    name_gpu(gpu, &names);
    gpu->number = telling->metric->number;
    if (of == METRIC_OF_SOURCE) {
        source = gpu_source_name(reading->metrics[gpu->number].source);
    } else if (of == METRIC_OF_KIND && gpu->gpu) {
        share = share_mode_name(config_share_of(&scene->daemon->config, gpu->gpu->number, gpu->gpu->uuid));
    }
    tell(telling, gpu,
         (struct prometheus_label[]){
             {"gpu", names.number},
             {"UUID", names.uuid},
             {"GPU_I_ID", names.instance},
             {"hostname", scene->hostname},
             {"source", source},
             {"model", of == METRIC_OF_KIND ? reading->name : NULL},
             {"kind", of == METRIC_OF_KIND && gpu->entry->at_ns ? kinds[reading->kind] : NULL},
             {"share", share},
             {NULL, NULL},
         });
}

static const struct node_gpu unread;

static struct metric_subject subject_of_gpu(const struct metrics_scene *scene, uint32_t number)
{
    const struct node_gpu *entry = node_gpu_numbered(scene->daemon->node, number);

    return (struct metric_subject){.gpu = core_gpu(scene->daemon->core, number), .entry = entry ? entry : &unread};
}

static void tell_gpus(struct telling *telling)
{
    const struct metrics_scene *scene = telling->scene;
    const struct node *node = scene->daemon->node;

    for (uint32_t i = 0; i < core_gpu_count(scene->daemon->core); i++) {
        struct metric_subject subject = subject_of_gpu(scene, i);
        tell_gpu(telling, &subject);
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (node->gpus[i]->number == NODE_NO_NUMBER)
            tell_gpu(telling, &(struct metric_subject){.entry = node->gpus[i]});
}

static void tell_job(struct telling *telling, const struct job_view *view)
{
    bool named = telling->metric->of == METRIC_OF_NAME;
    char id[NUMBER_TEXT], uid[NUMBER_TEXT];

    snprintf(id, sizeof id, "%" PRIu64, view->id);
    snprintf(uid, sizeof uid, "%" PRIu32, view->wants->uid);
    tell(telling, &(struct metric_subject){.view = view},
         (struct prometheus_label[]){
             {"hpc_job", id},
             {"user", job_view_user(view)},
             {"uid", named ? uid : NULL},
             {"name", named ? common_text_first(view->name) : NULL},
             {"state", named ? job_state_name(view->state) : NULL},
             {"share", named && view->run->share ? share_mode_name(view->run->share) : NULL},
             {NULL, NULL},
         });
}

static void tell_shares(struct telling *telling, const struct job_view *view)
{
    char id[NUMBER_TEXT];

    snprintf(id, sizeof id, "%" PRIu64, view->id);
    for (uint32_t i = 0; i < view->placement_count; i++) {
        struct metric_subject subject = subject_of_gpu(telling->scene, view->placements[i].gpu);
        struct gpu_labels names;
        subject.view = view;
        name_gpu(&subject, &names);
        tell(telling, &subject,
             (struct prometheus_label[]){
                 {"hpc_job", id},
                 {"user", job_view_user(view)},
                 {"gpu", names.number},
                 {"UUID", names.uuid},
                 {"GPU_I_ID", names.instance},
                 {"hostname", telling->scene->hostname},
                 {NULL, NULL},
             });
    }
}

static void tell_strays(struct telling *telling, const struct job_view *view)
{
    const struct node *node = telling->scene->daemon->node;
    char id[NUMBER_TEXT], pid[NUMBER_TEXT];

    snprintf(id, sizeof id, "%" PRIu64, view->id);
    for (uint32_t g = 0; g < node->count; g++) {
        struct metric_subject subject = {
            .gpu = core_gpu(telling->scene->daemon->core, node->gpus[g]->number), .entry = node->gpus[g], .view = view};
        const struct attribution *attribution = &node->gpus[g]->attribution;
        struct gpu_labels names;
        name_gpu(&subject, &names);
        for (uint32_t i = 0; node->gpus[g]->there && i < attribution->unmanaged_count; i++) {
            if (attribution->unmanaged[i].job != view->id)
                continue;
            subject.process = &attribution->unmanaged[i];
            snprintf(pid, sizeof pid, "%" PRId32, attribution->unmanaged[i].pid);
            tell(telling, &subject,
                 (struct prometheus_label[]){
                     {"hpc_job", id},
                     {"user", job_view_user(view)},
                     {"pid", pid},
                     {"gpu", names.number},
                     {"UUID", names.uuid},
                     {"GPU_I_ID", names.instance},
                     {"hostname", telling->scene->hostname},
                     {NULL, NULL},
                 });
        }
    }
}

static void tell_numbered(struct telling *telling, const char *label, uint32_t from, uint32_t to,
                          const char *(*name)(uint32_t number))
{
    for (uint32_t number = from; number <= to; number++)
        tell(telling, &(struct metric_subject){.number = number},
             (struct prometheus_label[]){{label, name(number)}, {NULL, NULL}});
}

static void tell_waits(const struct telling *telling)
{
    const struct history_sums *sums = &telling->scene->sums;

    prometheus_begin(telling->out, telling->metric->name, telling->metric->type, telling->metric->help, telling->open);
    prometheus_histogram(telling->out, telling->metric->name, history_wait_bounds_s, sums->wait_le, HISTORY_WAIT_BOUNDS,
                         sums->launched, sums->wait_ns, telling->open);
}

static void tell_users(struct telling *telling)
{
    for (size_t i = 0; i < telling->scene->user_count; i++) {
        const struct metrics_user *user = &telling->scene->users[i];
        char uid[NUMBER_TEXT];
        snprintf(uid, sizeof uid, "%" PRIu32, user->uid);
        tell(telling, &(struct metric_subject){.user = user},
             (struct prometheus_label[]){{"user", user->name}, {"uid", user->others ? NULL : uid}, {NULL, NULL}});
    }
}

static void tell_all(struct telling *telling)
{
    const struct metrics_scene *scene = telling->scene;

    switch (telling->metric->of) {
    case METRIC_OF_BUILD:
        tell(telling, &(struct metric_subject){0},
             (struct prometheus_label[]){{"version", CARMA_VERSION}, {NULL, NULL}});
        break;
    case METRIC_OF_STATE:
        tell_numbered(telling, "state", JOB_HELD, JOB_CRASHED, job_state_name);
        tell_numbered(telling, "state", JOB_LAST_ENDED + 1, JOB_STATE_COUNT - 1, job_state_name);
        break;
    case METRIC_OF_DECISION:
        tell_numbered(telling, "decision", RECORD_PLACED, RECORD_RESERVED, record_type_name);
        break;
    case METRIC_OF_END:
        tell_numbered(telling, "state", JOB_COMPLETED, JOB_LAST_ENDED, job_state_name);
        break;
    case METRIC_OF_OOM:
        tell_numbered(telling, "cause", EXIT_GPU_OOM, EXIT_GPU_OOM, exit_cause_name);
        tell_numbered(telling, "cause", EXIT_GPU_HANDLE, EXIT_GPU_HANDLE, exit_cause_name);
        break;
    case METRIC_OF_CAPTURE:
        tell_numbered(telling, "outcome", 0, CAPTURE_OUTCOMES - 1, capture_outcome_name);
        break;
    case METRIC_OF_WAIT:
        tell_waits(telling);
        break;
    case METRIC_OF_USER:
        tell_users(telling);
        break;
    case METRIC_OF_GPU:
    case METRIC_OF_KIND:
    case METRIC_OF_SOURCE:
        tell_gpus(telling);
        break;
    case METRIC_OF_JOB:
    case METRIC_OF_NAME:
    case METRIC_OF_SHARE:
    case METRIC_OF_STRAY:
        for (size_t i = 0; i < scene->view_count; i++)
            if (telling->metric->of == METRIC_OF_SHARE)
                tell_shares(telling, scene->views[i]);
            else if (telling->metric->of == METRIC_OF_STRAY)
                tell_strays(telling, scene->views[i]);
            else
                tell_job(telling, scene->views[i]);
        break;
    default:
        tell(telling, &(struct metric_subject){0}, NULL);
        break;
    }
}

char *metrics_text(const struct daemon *daemon, bool open)
{
    struct metrics_scene scene;
    struct strbuf out = {0};

    gather(&scene, daemon);
    for (size_t i = 0; i < array_size(metrics); i++)
        tell_all(&(struct telling){.scene = &scene, .metric = &metrics[i], .out = &out, .open = open});
    prometheus_end(&out, open);
    release(&scene);
    return strbuf_steal(&out);
}

/* ---- The documentation's table ---- */

static const char *labels_of(const struct metric *metric)
{
    static const char *const labels[METRIC_OF_COUNT] = {
        [METRIC_OF_NODE] = "",
        [METRIC_OF_BUILD] = "version",
        [METRIC_OF_STATE] = "state",
        [METRIC_OF_DECISION] = "decision",
        [METRIC_OF_GPU] = "GPU",
        [METRIC_OF_KIND] = "GPU, model, kind, share",
        [METRIC_OF_SOURCE] = "GPU, source",
        [METRIC_OF_JOB] = "hpc_job, user",
        [METRIC_OF_NAME] = "hpc_job, user, uid, name, state, share",
        [METRIC_OF_END] = "state",
        [METRIC_OF_OOM] = "cause",
        [METRIC_OF_CAPTURE] = "outcome",
        [METRIC_OF_WAIT] = "",
        [METRIC_OF_USER] = "user, uid",
        [METRIC_OF_SHARE] = "hpc_job, user, GPU",
        [METRIC_OF_STRAY] = "hpc_job, user, pid, GPU",
    };

    return labels[metric->of];
}

void metrics_describe(struct strbuf *out)
{
    for (size_t i = 0; i < array_size(metrics); i++)
        strbuf_printf(out, "| `%s` | %s | %s | %s |\n", metrics[i].name, prometheus_type_name(metrics[i].type),
                      labels_of(&metrics[i]), metrics[i].help);
}
