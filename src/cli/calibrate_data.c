/* A machine profile's constants from measured runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/calibrate.h"
#include "estimate/workspace.h"
#include "evaluation/dataset.h"

/* Near the end of the GPU PyTorch gives cached blocks back before it allocates: such runs say little of a constant. */
#define FULL_PERMILLE 950

struct constants {
    int64_t *bytes; /* owned */
    size_t count, capacity;
};

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t median(struct constants *constants)
{
    qsort(constants->bytes, constants->count, sizeof *constants->bytes, ascending);
    return (constants->bytes[(constants->count - 1) / 2] + constants->bytes[constants->count / 2]) / 2;
}

static void add_row(struct constants *constants, const struct dataset_row *row, const struct machine_profile *profile)
{
    /* Of the simple rules the one that fits measured CNNs best. */
    struct replay_options options = {.rule =
                                         workspace_rule_by_pass(WORKSPACE_NONE, WORKSPACE_WINOGRAD, WORKSPACE_COPY)};
    struct replay_result result;
    struct program program;

    if (row->out_of_memory || row->measured_bytes < 0 || !row->has_layers ||
        row->measured_bytes > profile->memory_bytes / 1000 * FULL_PERMILLE)
        return;
    if (program_lower(&program, &row->layers, &row->training, NULL) == 0) {
        program_replay(&program, &options, &result);
        array_reserve(constants->bytes, constants->capacity, constants->count + 1);
        constants->bytes[constants->count++] = row->measured_bytes - result.peak_reserved_bytes;
    }
    program_release(&program);
}

/* The median of one file's runs. */
static int constant_of(const char *file, const struct machine_profile **profile, enum dataset_kind *kind,
                       int64_t *bytes, struct strbuf *notes, struct error *err)
{
    struct constants constants = {0};
    struct dataset dataset;
    char text[UNITS_TEXT];
    int rc = dataset_read(&dataset, file, NULL, err);

    if (rc)
        return rc;
    *kind = dataset.kind;
    *profile = dataset.profile;
    if (dataset.kind == DATASET_REAL || dataset.kind == DATASET_TIMM) {
        dataset_release(&dataset);
        return error_set(err, EINVAL, "--from-data '%.200s': models of all sorts; take mlp, transformer or cnn", file);
    }
    for (size_t i = 0; i < dataset.count; i++)
        add_row(&constants, &dataset.rows[i], dataset.profile);
    if (constants.count) {
        *bytes = median(&constants);
        strbuf_printf(notes, "# %zu runs of %s: %s more than their replay reserves (median).\n", constants.count,
                      dataset_kind_names[dataset.kind], format_bytes(*bytes, text));
    } else {
        rc = error_set(err, EINVAL, "%s: no run in it that completed and has a layer list", file);
    }
    free(constants.bytes);
    dataset_release(&dataset);
    return rc;
}

int calibrate_by_data(struct machine_profile *profile, const char *const *files, size_t count, struct strbuf *notes,
                      struct error *err)
{
    const struct machine_profile *of = NULL;
    int64_t context_bytes = -1, with_cudnn_bytes = -1, bytes = 0;
    enum dataset_kind kind = DATASET_MLP;
    int rc;

    for (size_t i = 0; i < count; i++) {
        if ((rc = constant_of(files[i], &of, &kind, &bytes, notes, err)))
            return rc;
        if (kind == DATASET_CNN)
            with_cudnn_bytes = bytes;
        else
            context_bytes = bytes;
    }
    if (context_bytes < 0)
        return error_set(err, EINVAL,
                         "--from-data: runs without cuDNN are needed too: give mlp:FILE or transformer:FILE");
    *profile = *of;
    profile->context_bytes = context_bytes;
    if (with_cudnn_bytes >= 0)
        profile->cudnn_bytes = with_cudnn_bytes > context_bytes ? with_cudnn_bytes - context_bytes : 0;
    snprintf(profile->source, sizeof profile->source, "taken from measured runs by carma calibrate%s",
             with_cudnn_bytes < 0 ? "; cuDNN assumed as built in" : "");
    return 0;
}
