#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/record_json.h"
#include "base/memory.h"
#include "store/store_internal.h"

#define PART_BYTES 262144 /* of a snapshot's text, in a row of its own; the snapshot's row has the rest */
#define BIT_ROWS   200    /* of a batch that is committed bit by bit */

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
    struct store_row row = {.kind = ROW_RECORD,
                            .type = record->type,
                            .at_ns = record->at_ns,
                            .job = record->job,
                            .offset = batch->bodies.length};

    if (batch->status)
        return;
    batch->status = record_json_write(record, &batch->bodies, &batch->error);
    if (!batch->status)
        add_row(batch, row);
}

void store_batch_begin(struct store_batch *batch, struct store_row row)
{
    if (!batch->status && row.job > INT64_MAX)
        batch->status = error_set(&batch->error, EINVAL, "job %" PRIu64 " is out of range", row.job);
    row.offset = batch->bodies.length;
    batch->begun = row;
}

void store_batch_end(struct store_batch *batch)
{
    if (!batch->status)
        add_row(batch, batch->begun);
}

static void add_text(struct store_batch *batch, struct store_row row, const char *text)
{
    store_batch_begin(batch, row);
    if (!batch->status)
        strbuf_puts(&batch->bodies, text);
    store_batch_end(batch);
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

void store_batch_request(struct store_batch *batch, const struct store_request *request)
{
    add_text(batch,
             (struct store_row){.kind = ROW_REQUEST,
                                .type = request->count,
                                .uid = request->uid,
                                .at_ns = request->at_s,
                                .job = request->first,
                                .digest = request->digest},
             request->id);
}

/* The jobs of an array have one text, which is here once: all rows of it end where it does. */
void store_batch_spec(struct store_batch *batch, uint64_t job, const char *json)
{
    const struct store_row *last = batch->count ? &batch->rows[batch->count - 1] : NULL;
    bool again = last && last->kind == ROW_SPEC && last->length == strlen(json) &&
                 memcmp(batch->bodies.text + last->offset, json, last->length) == 0;

    store_batch_begin(batch, (struct store_row){.kind = ROW_SPEC, .job = job});
    if (again)
        batch->begun.offset = last->offset;
    else if (!batch->status)
        strbuf_puts(&batch->bodies, json);
    store_batch_end(batch);
}

void store_batch_drop_environment(struct store_batch *batch, uint64_t job)
{
    add_text(batch, (struct store_row){.kind = ROW_NO_ENVIRONMENT, .job = job}, "");
}

void store_batch_drop_spec(struct store_batch *batch, uint64_t job)
{
    add_text(batch, (struct store_row){.kind = ROW_NO_SPEC, .job = job}, "");
}

void store_batch_job(struct store_batch *batch, uint64_t job, uint32_t uid, int64_t ended_ns, const char *json)
{
    add_text(batch, (struct store_row){.kind = ROW_JOB, .job = job, .uid = uid, .at_ns = ended_ns}, json);
}

void store_batch_snapshot(struct store_batch *batch, int64_t at_ns, int64_t spacing_ns,
                          const struct record_list *snapshot)
{
    struct store_row row = {
        .kind = ROW_SNAPSHOT, .at_ns = at_ns, .spacing_ns = spacing_ns, .offset = batch->bodies.length};
    struct store_row part = {.kind = ROW_PART};

    for (size_t i = 0; i < snapshot->count && !batch->status; i++) {
        batch->status = record_json_write(&snapshot->items[i], &batch->bodies, &batch->error);
        strbuf_puts(&batch->bodies, "\n");
        if (batch->bodies.length - row.offset < PART_BYTES)
            continue;
        part.offset = row.offset;
        add_row(batch, part);
        part.type++;
        row.offset = batch->bodies.length;
    }
    if (!batch->status)
        add_row(batch, row);
}

void store_batch_forget(struct store_batch *batch, int64_t before_ns, uint32_t most)
{
    add_text(batch, (struct store_row){.kind = ROW_FORGET, .at_ns = before_ns, .type = most}, "");
}

void store_batch_mark(struct store_batch *batch)
{
    add_text(batch, (struct store_row){.kind = ROW_MARK}, "");
}

/* ---- A batch in a file: bits, each its head, its rows and their bodies ---- */

struct bit {
    size_t count;
    size_t bytes; /* of the bodies, which begin with the first row's */
};

static int save_bit(const struct store_batch *batch, size_t first, struct bit bit, int fd, struct error *err)
{
    const size_t rows = bit.count * sizeof *batch->rows;

    if (write(fd, &bit, sizeof bit) == sizeof bit && write(fd, &batch->rows[first], rows) == (ssize_t)rows &&
        write(fd, batch->bodies.text + batch->rows[first].offset, bit.bytes) == (ssize_t)bit.bytes)
        return 0;
    return error_set(err, errno ? errno : EIO, "a snapshot cannot be written: %s", strerror(errno));
}

int store_batch_save(const struct store_batch *batch, int fd, struct error *err)
{
    int rc = batch->status;

    if (rc)
        *err = batch->error;
    for (size_t first = 0, next; !rc && first < batch->count; first = next) {
        struct bit bit = {0};

        for (next = first; next < batch->count && bit.count < BIT_ROWS && bit.bytes < PART_BYTES; next++) {
            bit.bytes += batch->rows[next].length;
            bit.count++;
        }
        rc = save_bit(batch, first, bit, fd, err);
    }
    return rc;
}

struct store_batch *store_batch_next(int fd)
{
    struct store_batch *batch;
    struct bit bit;
    char *bodies;
    size_t base;

    if (read(fd, &bit, sizeof bit) != sizeof bit || bit.count == 0)
        return NULL;
    batch = store_batch_new();
    batch->marked = true;
    batch->rows = xcalloc(bit.count, sizeof *batch->rows);
    batch->count = batch->capacity = bit.count;
    bodies = xcalloc(bit.bytes + 1, 1);
    if (read(fd, batch->rows, bit.count * sizeof *batch->rows) != (ssize_t)(bit.count * sizeof *batch->rows) ||
        read(fd, bodies, bit.bytes) != (ssize_t)bit.bytes) {
        free(bodies);
        store_batch_free(batch);
        return NULL;
    }
    base = batch->rows[0].offset;
    for (size_t i = 0; i < bit.count; i++)
        batch->rows[i].offset -= base;
    strbuf_append(&batch->bodies, bodies, bit.bytes);
    free(bodies);
    return batch;
}
