#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "store/store_internal.h"

struct store_batch *store_batch_new(void)
{
    return xcalloc(1, sizeof(struct store_batch));
}

void store_batch_free(struct store_batch *batch)
{
    if (!batch)
        return;
    free(batch->rows);
    strbuf_release(&batch->bodies);
    free(batch);
}

static void add_row(struct store_batch *batch, struct store_row row)
{
    row.length = batch->bodies.length - row.offset;
    array_reserve(batch->rows, batch->capacity, batch->count + 1);
    batch->rows[batch->count++] = row;
}

void store_batch_record(struct store_batch *batch, const struct record *record)
{
    struct store_row row = {
        .type = record->type, .at_ns = record->at_ns, .job = record->job, .offset = batch->bodies.length};

    if (batch->status)
        return;
    batch->status = record_json_write(record, &batch->bodies, &batch->error);
    if (!batch->status)
        add_row(batch, row);
}

void store_batch_spec(struct store_batch *batch, uint64_t job, const char *json)
{
    struct store_row row = {.kind = ROW_SPEC, .job = job, .offset = batch->bodies.length};

    if (batch->status)
        return;
    if (job > INT64_MAX) {
        batch->status = error_set(&batch->error, EINVAL, "job %" PRIu64 " is out of range", job);
        return;
    }
    strbuf_puts(&batch->bodies, json);
    add_row(batch, row);
}

void store_batch_meter(struct store_batch *batch, const struct store_meter *meter)
{
    struct store_row row = {.kind = ROW_METER,
                            .at_ns = meter->at_ns,
                            .mj = meter->counter_mj,
                            .idle_mw = meter->idle_mw,
                            .offset = batch->bodies.length};

    strbuf_puts(&batch->bodies, meter->gpu);
    add_row(batch, row);
}

void store_batch_energy(struct store_batch *batch, const char *gpu, uint64_t party, int64_t mj)
{
    struct store_row row = {.kind = ROW_ENERGY, .job = party, .mj = mj, .offset = batch->bodies.length};

    strbuf_puts(&batch->bodies, gpu);
    add_row(batch, row);
}
