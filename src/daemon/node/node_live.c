#include "daemon/node/node_live.h"

#include <string.h>

#include "api/or_null.h"
#include "base/json/moment.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/share.h"
#include "core/gpus/allotment.h"
#include "core/share/sharing.h"
#include "core/ledger.h"
#include "daemon/node/node_internal.h"

/* A row. Compared as bytes, so each is zeroed before it is filled. Unknown values are -1. */
struct shown {
    const struct node_gpu *entry; /* lasts as long as the node; NULL: not read yet */
    uint32_t number;              /* the core's; NODE_NO_NUMBER: a heading, or one that the core does not know */
    uint32_t unnamed;             /* 1: has no UUID, and is at this index: */
    uint32_t index;
    uint32_t error; /* NVML's, of one that is closed */
    uint32_t share; /* enum share_mode */
    uint32_t kind;
    bool there, read;
    int64_t drained_ns; /* since then, summed over the GPU and the node */
    int64_t total_bytes, used_bytes, free_bytes, unmanaged_bytes, mps_server_bytes;
    const char *share_why; /* lasts as long as the daemon; NULL or empty: it is shared as it is configured */
    int64_t sm_permille, power_mw;
    uint64_t xid, xid_count;
    int64_t xid_at_ns;
    int64_t trouble; /* GPU_THROTTLE_TROUBLE of its reasons; of an instance they are its parent's, and so are: */
    int64_t ecc_uncorrected;
    uint32_t resident_count; /* that many more of `residents` */
};

struct resident {
    uint64_t id;
    int64_t reserved_bytes, observed_bytes;
};

struct look {
    struct shown *rows;
    size_t row_count, row_capacity;
    struct resident *residents;
    size_t resident_count, resident_capacity;
    uint32_t reservation_count, next_reservation; /* which there are: none changes */
};

struct node_live {
    struct look now, last;
};

struct node_live *node_live_new(void)
{
    return xcalloc(1, sizeof(struct node_live));
}

static void release(struct look *look)
{
    free(look->rows);
    free(look->residents);
}

void node_live_free(struct node_live *live)
{
    if (!live)
        return;
    release(&live->now);
    release(&live->last);
    free(live);
}

static struct shown *add_row(struct look *look, const struct node_gpu *entry, uint32_t number)
{
    const struct gpu_fact *facts = entry ? entry->reading.facts : NULL;
    struct shown *row;

    array_reserve(look->rows, look->row_capacity, look->row_count + 1);
    row = &look->rows[look->row_count++];
    memset(row, 0, sizeof *row);
    row->entry = entry;
    row->number = number;
    row->used_bytes = row->free_bytes = row->unmanaged_bytes = row->mps_server_bytes = row->total_bytes = -1;
    row->sm_permille = row->power_mw = row->trouble = row->ecc_uncorrected = -1;
    if (!entry)
        return row;
    row->there = entry->there && entry->reading.kind == GPU_PARTITIONED; /* the core's word for the others */
    row->error = entry->seen ? (uint32_t)entry->error + entry->refused[0] + entry->refused[GPU_REFUSED_MIG] : 0;
    row->kind = entry->reading.kind;
    row->xid = entry->reading.xid;
    row->xid_count = entry->reading.xid_count;
    row->xid_at_ns = nodetime_shown_ns(entry->reading.xid_at_ns);
    row->read = entry->at_ns;
    if (!row->read)
        return row;
    if (entry->reading.valid & GPU_HAS_MEMORY) {
        row->total_bytes = entry->reading.total_bytes;
        row->used_bytes = entry->reading.used_bytes;
    }
    row->sm_permille = entry->statistics[GPU_SM_ACTIVITY];
    if (entry->reading.valid & GPU_HAS_POWER)
        row->power_mw = entry->reading.power_mw;
    if (row->kind != GPU_INSTANCE && !facts[GPU_THROTTLE].code)
        row->trouble = facts[GPU_THROTTLE].value & GPU_THROTTLE_TROUBLE;
    if (row->kind != GPU_INSTANCE && !facts[GPU_ECC_UNCORRECTED].code)
        row->ecc_uncorrected = facts[GPU_ECC_UNCORRECTED].value;
    return row;
}

static void add_residents(struct look *look, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        const struct job *job = gpu->residents[i];
        array_reserve(look->residents, look->resident_capacity, look->resident_count + 1);
        look->residents[look->resident_count++] =
            (struct resident){.id = job->id,
                              .reserved_bytes = job->reserved_bytes,
                              .observed_bytes = job_placement_on(job, gpu->number)->observed_bytes};
    }
}

static void look_at(struct look *look, const struct node *node, const struct gpu *gpu)
{
    static const struct node_gpu unread;
    const struct node_gpu *heading = node_heading_before(node, gpu->number);
    const struct node_gpu *entry = node_gpu_numbered(node, gpu->number);
    struct shown *row;

    if (heading)
        add_row(look, heading, NODE_NO_NUMBER);
    row = add_row(look, entry, gpu->number);
    row->there = !gpu->lost;
    row->drained_ns = gpu_drain(node->daemon->core, gpu)->since_ns + gpu_drain(node->daemon->core, NULL)->since_ns;
    row->total_bytes = gpu->total_bytes ? gpu->total_bytes : -1;
    row->free_bytes = gpu->lost ? -1 : node_free_bytes(node, gpu, entry ? entry : &unread);
    if (row->read) {
        row->unmanaged_bytes = entry->attribution.unmanaged_bytes;
        row->mps_server_bytes = entry->attribution.mps_server_bytes;
        node_share_of(node, gpu->number, &entry->reading, &row->share_why);
    }
    row->share = sharing_configured(gpu);
    row->resident_count = gpu->resident_count;
    add_residents(look, gpu);
}

static bool same(const struct look *a, const struct look *b)
{
    return a->reservation_count == b->reservation_count && a->next_reservation == b->next_reservation &&
           a->row_count == b->row_count && a->resident_count == b->resident_count &&
           (!a->row_count || memcmp(a->rows, b->rows, a->row_count * sizeof *a->rows) == 0) &&
           (!a->resident_count || memcmp(a->residents, b->residents, a->resident_count * sizeof *a->residents) == 0);
}

bool node_live_look(struct node_live *live, const struct node *node)
{
    const struct core *core = node->daemon->core;
    const struct node_unnamed *unnamed;
    struct look last = live->last;

    live->last = live->now;
    live->now = last;
    live->now.row_count = live->now.resident_count = 0;
    core_allotments(core, &live->now.reservation_count);
    live->now.next_reservation = core_next_allotment(core);
    for (uint32_t i = 0; i < core_gpu_count(core); i++)
        look_at(&live->now, node, core_gpu(core, i));
    for (uint32_t i = 0; i < node->count; i++)
        if (node_has_own_line(node, node->gpus[i]))
            add_row(&live->now, node->gpus[i], NODE_NO_NUMBER);
    for (uint32_t i = node_lines_unnamed(node, &unnamed); i > 0; i--, unnamed++) {
        struct shown *row = add_row(&live->now, NULL, NODE_NO_NUMBER);
        row->unnamed = 1;
        row->index = unnamed->index;
        row->error = (uint32_t)unnamed->error;
    }
    return !same(&live->now, &live->last);
}

/* ---- Shown ---- */

static json_t *residents_to_json(const struct resident *residents, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:I, s:o, s:I}", "id", (json_int_t)residents[i].id, "reserved_bytes",
                                              natural_or_null(residents[i].reserved_bytes), "observed_bytes",
                                              (json_int_t)residents[i].observed_bytes));
    return list;
}

static json_t *row_to_json(const struct node *node, const struct shown *row, const struct gpu *gpu)
{
    const struct gpu_reading *reading = row->entry && *row->entry->reading.name ? &row->entry->reading : NULL;
    bool is_heading = row->number == NODE_NO_NUMBER;
    struct node_unnamed unnamed = {row->index, (int32_t)row->error};
    CLEANUP(free_ptr) char *key = row->unnamed ? node_unnamed_key(&unnamed) : NULL;
    CLEANUP(free_ptr)
    char *why = row->unnamed ? node_why_unnamed(&unnamed) : node_why_closed(node, row->entry, gpu);
    json_t *json = json_object();

    json_object_set_new(json, "index", is_heading ? json_null() : json_integer(row->number));
    json_object_set_new(json, "uuid", json_string(key ? key : gpu ? gpu->uuid : row->entry->uuid));
    json_object_set_new(json, "name", reading ? json_string(reading->name) : json_null());
    json_object_set_new(json, "kind", reading ? json_string(node_kind_name(row->kind)) : json_null());
    json_object_set_new(json, "parent", text_or_null(reading && *reading->parent ? reading->parent : NULL));
    json_object_set_new(json, "lost", json_boolean(!row->there));
    json_object_set_new(json, "drained", json_boolean(gpu && (gpu->drained || gpu->node_drained)));
    json_object_set_new(json, "why", text_or_null(why));
    json_object_set_new(json, "share", is_heading ? json_null() : json_string(share_mode_name(row->share)));
    json_object_set_new(json, "share_why", text_or_null(row->share_why && *row->share_why ? row->share_why : NULL));
    json_object_set_new(json, "total_bytes", natural_or_null(row->total_bytes));
    json_object_set_new(json, "used_bytes", natural_or_null(row->used_bytes));
    json_object_set_new(json, "free_bytes", natural_or_null(row->free_bytes));
    json_object_set_new(json, "unmanaged_bytes", natural_or_null(row->unmanaged_bytes));
    json_object_set_new(json, "mps_server_bytes", natural_or_null(row->mps_server_bytes));
    json_object_set_new(json, "sm_activity_permille", natural_or_null(row->sm_permille));
    json_object_set_new(json, "power_mw", natural_or_null(row->power_mw));
    json_object_set_new(json, "throttle", row->trouble >= 0 ? node_throttle_to_json(row->trouble) : json_null());
    json_object_set_new(json, "ecc_uncorrected", natural_or_null(row->ecc_uncorrected));
    json_object_set_new(json, "xid",
                        row->xid
                            ? moment_twin(json_pack("{s:I, s:I, s:I}", "code", (json_int_t)row->xid, "count",
                                                    (json_int_t)row->xid_count, "at_ns", (json_int_t)row->xid_at_ns),
                                          "at_ns")
                            : json_null());
    return json;
}

json_t *node_live_to_json(const struct node_live *live, const struct node *node, int64_t now_ns)
{
    const struct resident *residents = live->now.residents;
    json_t *list = json_array();

    for (size_t i = 0; i < live->now.row_count; i++) {
        const struct shown *row = &live->now.rows[i];
        const struct gpu *gpu = row->number == NODE_NO_NUMBER ? NULL : core_gpu(node->daemon->core, row->number);
        json_t *json = row_to_json(node, row, gpu);

        json_object_set_new(json, "residents", residents_to_json(residents, row->resident_count));
        if (row->resident_count)
            residents += row->resident_count;
        json_array_append_new(list, json);
    }
    return moment_twin(json_pack("{s:I, s:o, s:o}", "now_ns", (json_int_t)nodetime_shown_ns(now_ns), "reservations",
                                 node_reservations_to_json(node), "gpus", list),
                       "now_ns");
}
