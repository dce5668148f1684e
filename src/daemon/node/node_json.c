/* GET /v1/gpus (docs/formats/http.md). */
#include <inttypes.h>
#include <string.h>

#include "api/or_null.h"
#include "base/json/moment.h"
#include "base/nodetime.h"
#include "base/share.h"
#include "base/strbuf.h"
#include "core/share/sharing.h"
#include "core/ledger.h"
#include "daemon/node/node_internal.h"
#include "daemon/view/owners.h"

static void set(json_t *json, const char *name, int64_t value, bool is_known)
{
    json_object_set_new(json, name, integer_or_null(value, is_known));
}

/* Unmanaged processes, or processes of a job that was not given the GPU; one that is invisible from here has neither
 * user nor command. */
static json_t *unmanaged_to_json(const struct node *node, const struct attribution *attribution)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < attribution->unmanaged_count; i++) {
        const struct attribution_unmanaged *process = &attribution->unmanaged[i];
        bool seen = *process->command;
        const struct job_view *view = process->job ? views_find(&node->daemon->views, process->job) : NULL;
        const char *user = view ? job_view_user(view) : seen ? owners_name(node->daemon->owners, process->uid) : NULL;
        json_array_append_new(list,
                              json_pack("{s:o, s:i, s:s?, s:s?, s:o}", "job",
                                        integer_or_null((int64_t)process->job, process->job != 0), "pid",
                                        (int)process->pid, "user", user, "command", seen ? process->command : NULL,
                                        "used_bytes", integer_or_null(process->used_bytes, process->used_bytes >= 0)));
    }
    return list;
}

json_t *node_resident_names(const struct node *node, const struct gpu *gpu)
{
    json_t *names = json_array();
    char name[JOB_NUMBER_TEXT];

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        json_array_append_new(names, json_string(job_number(&node->daemon->views, gpu->residents[i]->id, name)));
    return names;
}

static json_t *window_to_json(const struct gpu_window *window, int64_t now_ns)
{
    static const char *const names[] = {
        [STATISTIC_MEAN] = "mean", [STATISTIC_MEDIAN] = "median", [STATISTIC_P95] = "p95",
        [STATISTIC_EMA] = "ema",   [STATISTIC_RISK] = "risk",
    };
    json_t *json = json_object();
    int64_t samples;

    gpu_window_mean(window, now_ns, &samples);
    set(json, "samples", samples, true);
    for (enum window_statistic statistic = STATISTIC_MEAN; statistic <= STATISTIC_RISK; statistic++) {
        int32_t permille = gpu_window_statistic(window, statistic, now_ns);
        set(json, names[statistic], permille, permille >= 0);
    }
    return json;
}

static json_t *metrics_to_json(const struct node_gpu *entry, int64_t now_ns)
{
    json_t *json = json_object();

    for (uint32_t metric = 0; metric < GPU_METRIC_COUNT && entry->at_ns; metric++) {
        const struct gpu_measure *measure = &entry->reading.metrics[metric];
        bool is_known = measure->source != GPU_SOURCE_NONE;
        json_t *one = json_object();
        set(one, "value", measure->value, is_known);
        json_object_set_new(one, "source", json_string(gpu_source_name(measure->source)));
        set(one, "age_ns", now_ns > measure->at_ns ? now_ns - measure->at_ns : 0, is_known);
        if (metric < NODE_WINDOWS)
            json_object_set_new(one, "window", window_to_json(&entry->windows[metric], entry->at_ns));
        json_object_set_new(json, gpu_metric_name(metric), one);
    }
    return json;
}

json_t *node_throttle_to_json(int64_t bits)
{
    json_t *list = json_array();

    for (uint32_t bit = 0; bit < GPU_THROTTLE_BITS; bit++)
        if (bits >> bit & 1)
            json_array_append_new(list, json_string(gpu_throttle_name(bit)));
    return list;
}

/* How the GPU fares, and what of that it does not tell. An instance's are its parent's. */
static json_t *health_to_json(const struct node_gpu *entry)
{
    CLEANUP(strbuf_release) struct strbuf unknown = {0};
    json_t *json;

    if (!entry->at_ns || entry->reading.kind == GPU_INSTANCE)
        return json_null();
    json = json_object();
    for (uint32_t kind = 0; kind < GPU_FACT_COUNT; kind++) {
        const struct gpu_fact *fact = &entry->reading.facts[kind];
        if (kind == GPU_THROTTLE && !fact->code)
            json_object_set_new(json, gpu_fact_name(kind), node_throttle_to_json(fact->value));
        else
            set(json, gpu_fact_name(kind), fact->value, !fact->code);
        if (fact->code)
            strbuf_printf(&unknown, "%s%s: %s (%d)", unknown.length ? ", " : "", gpu_fact_name(kind),
                          gpu_error_text(fact->code), (int)fact->code);
    }
    json_object_set_new(json, "unknown", text_or_null(unknown.text));
    return json;
}

const char *node_kind_name(uint32_t kind)
{
    static const char *const names[GPU_KIND_COUNT] = {"whole", "partitioned", "instance"};

    return names[kind];
}

static void add_reading(json_t *json, const struct node_gpu *entry, bool closed, int64_t now_ns)
{
    const struct gpu_reading *reading = &entry->reading;
    bool is_read = entry->at_ns, is_described = *reading->name;

    json_object_set_new(json, "kind", is_described ? json_string(node_kind_name(reading->kind)) : json_null());
    json_object_set_new(json, "parent", *reading->parent ? json_string(reading->parent) : json_null());
    json_object_set_new(json, "name", is_described ? json_string(reading->name) : json_null());
    json_object_set_new(json, "unknown", node_untold_to_json(entry, closed));
    json_object_set_new(json, "unified_memory", json_boolean(reading->valid & GPU_UNIFIED));
    set(json, "used_bytes", reading->used_bytes, is_read && reading->valid & GPU_HAS_MEMORY);
    set(json, "sm_activity_permille", entry->statistics[GPU_SM_ACTIVITY],
        is_read && entry->statistics[GPU_SM_ACTIVITY] >= 0);
    json_object_set_new(json, "metrics", metrics_to_json(entry, now_ns));
    set(json, "power_mw", reading->power_mw, reading->valid & GPU_HAS_POWER);
    set(json, "energy_mj", reading->energy_mj, reading->valid & GPU_HAS_ENERGY);
    json_object_set_new(json, "health", health_to_json(entry));
    set(json, "processes", reading->process_count, reading->valid & GPU_HAS_PROCESSES);
    json_object_set_new(json, "xid",
                        reading->xid ? moment_twin(json_pack("{s:I, s:I, s:I}", "code", (json_int_t)reading->xid,
                                                             "count", (json_int_t)reading->xid_count, "at_ns",
                                                             (json_int_t)nodetime_shown_ns(reading->xid_at_ns)),
                                                   "at_ns")
                                     : json_null());
    set(json, "observed_ns", entry->at_ns, is_read);
    set(json, "age_ns", now_ns - entry->at_ns, is_read);
    json_object_set_new(json, "memory_byte_seconds", json_real(entry->memory_byte_seconds));
    json_object_set_new(json, "sm_activity_seconds", json_real(entry->sm_activity_seconds));
}

static void add_energy(const struct node *node, json_t *json, const char *uuid)
{
    const struct energy_meter *meter = node_energy_of(node, uuid);
    int64_t idle_mj = 0, unmanaged_mj = 0;

    for (size_t i = 0; meter && i < meter->count; i++) {
        if (meter->accounts[i].party == ENERGY_IDLE)
            idle_mj = meter->accounts[i].mj;
        else if (meter->accounts[i].party == ENERGY_UNMANAGED)
            unmanaged_mj = meter->accounts[i].mj;
    }
    set(json, "idle_power_mw", meter ? meter->idle_mw : -1, meter && meter->idle_mw >= 0);
    set(json, "modelled_idle_mj", idle_mj, meter);
    set(json, "modelled_unmanaged_mj", unmanaged_mj, meter);
}

int64_t node_free_bytes(const struct node *node, const struct gpu *gpu, const struct node_gpu *entry)
{
    int64_t free_bytes = gpu_free_bytes(node->daemon->core, gpu), unused = gpu->total_bytes - entry->reading.used_bytes;

    if (!entry->there || unused >= free_bytes)
        return free_bytes;
    return unused > 0 ? unused : 0;
}

static void add_why(json_t *json, char *why)
{
    json_object_set_new(json, "why", why ? json_string(why) : json_null());
    free(why);
}

/* A GPU that the core knows. */
static json_t *target_to_json(const struct node *node, const struct gpu *gpu, int64_t now_ns)
{
    static const struct node_gpu unread;
    const struct node_gpu *read = node_gpu_numbered(node, gpu->number), *entry = read ? read : &unread;
    json_t *jobs = json_array(), *json = json_object();
    const char *why = "";

    for (uint32_t i = 0; i < gpu->resident_count; i++)
        json_array_append_new(jobs, json_integer((json_int_t)gpu->residents[i]->id));
    set(json, "index", gpu->number, true);
    json_object_set_new(json, "uuid", json_string(gpu->uuid));
#define CLOSED(member, reason) json_object_set_new(json, #member, json_boolean(gpu->member));
#include "core/gpus/closed.def"
    json_object_set_new(json, "share", json_string(share_mode_name(sharing_configured(gpu))));
    if (entry->at_ns)
        node_share_of(node, gpu->number, &entry->reading, &why);
    json_object_set_new(json, "share_why", *why ? json_string(why) : json_null());
    add_why(json, node_why_closed(node, read, gpu));
    json_object_set_new(json, "closed", node_closed_to_json(node, read, gpu));
    json_object_set_new(json, "notes", node_notes_to_json(node, read, gpu));
    set(json, "total_bytes", gpu->total_bytes, gpu->total_bytes > 0);
    set(json, "free_bytes", node_free_bytes(node, gpu, entry), !gpu->lost);
    json_object_set_new(json, "jobs", jobs);
    json_object_set_new(json, "job_names", node_resident_names(node, gpu));
    set(json, "unmanaged_bytes", entry->attribution.unmanaged_bytes,
        entry->at_ns && entry->attribution.unmanaged_bytes >= 0);
    set(json, "mps_server_bytes", entry->attribution.mps_server_bytes, entry->at_ns);
    json_object_set_new(json, "unmanaged", unmanaged_to_json(node, &entry->attribution));
    json_object_set_new(json, "unmanaged_why",
                        *entry->attribution.why ? json_string(entry->attribution.why) : json_null());
    add_reading(json, entry, gpu->lost, now_ns);
    add_energy(node, json, gpu->uuid);
    return json;
}

/* One that the core does not know: in MIG mode, a heading for its instances, or one that NVML does not describe. */
static json_t *heading_to_json(const struct node *node, const struct node_gpu *entry, int64_t now_ns)
{
    json_t *json = json_object();

    json_object_set_new(json, "index", json_null());
    json_object_set_new(json, "uuid", json_string(entry->uuid));
    json_object_set_new(json, "lost", json_boolean(!entry->there || entry->reading.kind != GPU_PARTITIONED));
    add_why(json, node_why_closed(node, entry, NULL));
    set(json, "total_bytes", entry->reading.total_bytes, entry->reading.valid & GPU_HAS_MEMORY);
    json_object_set_new(json, "free_bytes", json_null());
    json_object_set_new(json, "jobs", json_array());
    add_reading(json, entry, true, now_ns);
    add_energy(node, json, entry->uuid);
    return json;
}

static json_t *unnamed_to_json(const struct node_unnamed *unnamed)
{
    CLEANUP(free_ptr) char *key = node_unnamed_key(unnamed), *why = node_why_unnamed(unnamed);

    return json_pack("{s:n, s:s, s:n, s:n, s:b, s:s, s:n, s:n, s:n, s:n, s:[]}", "index", "uuid", key, "kind", "name",
                     "lost", 1, "why", why, "unknown", "total_bytes", "used_bytes", "free_bytes", "jobs");
}

const struct node_gpu *node_heading_before(const struct node *node, uint32_t number)
{
    const struct node_gpu *entry = node_gpu_numbered(node, number);
    const struct node_gpu *physical = entry ? node_physical(node, entry) : NULL;
    bool headed = !physical || physical == entry || physical->number != NODE_NO_NUMBER;

    for (uint32_t k = 0; k < number && !headed; k++) {
        const struct node_gpu *before = node_gpu_numbered(node, k);
        headed = before && before != entry && node_physical(node, before) == physical;
    }
    return headed ? NULL : physical;
}

json_t *node_to_json(const struct node *node)
{
    const struct core *core = node->daemon->core;
    int64_t now_ns = nodetime_now_ns();
    const struct node_unnamed *unnamed;
    CLEANUP(free_ptr) char *order = node_order_text(node);
    json_t *list = json_array();

    for (uint32_t i = 0; i < core_gpu_count(core); i++) {
        const struct node_gpu *heading = node_heading_before(node, i);
        if (heading)
            json_array_append_new(list, heading_to_json(node, heading, now_ns));
        json_array_append_new(list, target_to_json(node, core_gpu(core, i), now_ns));
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (node_has_own_line(node, node->gpus[i]))
            json_array_append_new(list, heading_to_json(node, node->gpus[i], now_ns));
    for (uint32_t i = node_lines_unnamed(node, &unnamed); i > 0; i--)
        json_array_append_new(list, unnamed_to_json(unnamed++));
    return moment_twin(json_pack("{s:I, s:s?, s:s?, s:s?, s:o, s:o}", "now_ns", (json_int_t)nodetime_shown_ns(now_ns),
                                 "limits", *node->limits ? node->limits : NULL, "problem",
                                 node->unread ? node->problem : NULL, "order", order, "reservations",
                                 node_reservations_to_json(node), "gpus", list),
                       "now_ns");
}
