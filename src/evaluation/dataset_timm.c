/* timm's models (package timm), each trained for a few steps: measured memory and the figures of fake tensors. Layers
 * come from captures that were made of the same models, a file each. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "evaluation/rows.h"

enum column { MODEL, BATCH_SIZE, MEASURED, FT_FORWARD, FT_BACKWARD, FT_LAST };

static const struct csv_column columns[] = {
    [MODEL] = {"model", true},
    [BATCH_SIZE] = {"batch_size", true},
    [MEASURED] = {"max_gpu_memory_mib", true},
    [FT_FORWARD] = {"ft_forward_mb", false},
    [FT_BACKWARD] = {"ft_backward_mb", false},
    [FT_LAST] = {"ft_last_mb", false},
};

/* A name without characters that a file's name cannot have. */
static int check_name(const struct csv *csv, struct error *err)
{
    const char *name = csv->values[MODEL];

    if (strlen(name) > 90 || *name == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789_.-") != strlen(name))
        return csv_error(csv, err, "model '%.40s' is not a name of letters, digits, '_', '-' and '.'", name);
    return 0;
}

/* 1; 0: it was recorded for another batch size alone. */
static int read_at(struct capture *capture, const char *path, const char *text, size_t length, int64_t batch_size,
                   struct error *err)
{
    int rc = capture_read(capture, path, text, length, 0, err);
    bool scales;

    if (rc || capture->batch_size == batch_size)
        return rc ? rc : 1;
    scales = capture->scales;
    capture_release(capture);
    if (!scales)
        return 0;
    rc = capture_read(capture, path, text, length, batch_size, err);
    return rc ? rc : 1;
}

/* 1: read; 0: this model cannot be asked about this batch size. */
static int read_capture(struct dataset_row *row, const char *folder, const char *model, struct error *err)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s.capture", folder, model);
    CLEANUP(free_ptr) char *text = NULL;
    CLEANUP(free_ptr) struct capture *capture = NULL;
    const struct capture_changes changes = {row->training.optimizer, row->training.weight_decay, true, true};
    struct error why;
    size_t length;
    int rc;

    if (access(path, F_OK) != 0)
        return 0;
    rc = file_read(path, CAPTURE_MAX_BYTES, &text, &length, err);
    if (rc)
        return rc;
    capture = xcalloc(1, sizeof *capture);
    rc = read_at(capture, path, text, length, row->training.batch_size, err);
    if (rc <= 0)
        return rc;
    row->training.precision = capture->precision;
    rc = capture_change(capture, &changes, &why);
    row->capture = steal_ptr(&capture);
    return rc ? error_set(err, EINVAL, "%s: %s", path, why.text) : 1;
}

/* How the models were trained is not recorded. It was worked out from a quarter of the models (bench/timm has the
 * split, and the figures of every candidate). Images have the model's own size, as the published fake tensors show. The
 * optimizer is SGD with momentum and weight decay; gradients are set to none before the forward pass. There is more
 * than one step (Adam's second state would not have fitted in the measured memory of large models). cuDNN tries out its
 * algorithms, and images are brought to the GPU ahead. These are the defaults of timm's own training script. */
static void set_training(struct training *training)
{
    training->optimizer = OPTIMIZER_MOMENTUM;
    training->weight_decay = true;
}

/* Nor is it recorded how a run ended; many show the same few GiB for every batch. A run may have less memory than an
 * empty context and the tensors of the step's forward and backward pass (counted as fake tensors are). Such a run has
 * not gone through a step. It ran out of memory where that is more than the GPU has, else it was broken off. */
static bool is_complete(const struct dataset *dataset, struct dataset_row *row)
{
    int64_t step_bytes = row->published[1] + dataset->profile->context_bytes;

    if (row->published[1] < 0 || row->measured_bytes >= step_bytes)
        return true;
    row->out_of_memory = step_bytes > dataset->profile->memory_bytes;
    return row->out_of_memory;
}

/* 1, or 0: this row is left out. */
static int read_row(const struct csv *csv, struct dataset *dataset, const char *captures, struct error *err)
{
    struct dataset_row *row = dataset_add(dataset, csv);
    const char *model = csv->values[MODEL];

    if (check_name(csv, err) || csv_integer(csv, BATCH_SIZE, 1, DATASET_MAX_BATCH, 0, &row->training.batch_size, err) ||
        dataset_measured(csv, row, MEASURED, err) || dataset_mib(csv, FT_LAST, &row->published[1], err))
        return -EINVAL;
    snprintf(row->name, sizeof row->name, "%s %" PRId64, model, row->training.batch_size);
    snprintf(row->group, sizeof row->group, "%.*s", (int)strcspn(model, "_"), model);
    set_training(&row->training);
    if (!is_complete(dataset, row))
        return 0;
    return captures ? read_capture(row, captures, model, err) : 1;
}

int dataset_read_timm(struct dataset *dataset, const char *path, const char *captures, struct error *err)
{
    static const struct csv_table table = {columns, array_size(columns), 0};
    struct csv csv;
    int rc = csv_open(&csv, path, &table, 1, err);

    while (rc == 0 && (rc = csv_next(&csv, err)) == 1) {
        rc = read_row(&csv, dataset, captures, err);
        if (rc == 0) {
            dataset_drop(dataset);
            dataset->left_out++;
        }
        rc = rc > 0 ? 0 : rc;
    }
    csv_release(&csv);
    return rc;
}
