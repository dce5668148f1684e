/* A machine profile's constants from measured runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/estimate/calibrate.h"
#include "estimate/program/workspace.h"
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
    struct replay_options options = {.rule = workspace_rule_default()};
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

/* Adds one file's runs to those of its kind. */
static int read_file(const char *file, struct constants *plain, struct constants *with_cudnn,
                     const struct machine_profile **profile, struct strbuf *notes, struct error *err)
{
    struct constants own = {0}, *all;
    struct dataset dataset;
    int rc = dataset_read(&dataset, file, NULL, err);

    if (rc)
        return rc;
    *profile = dataset.profile;
    all = dataset.kind == DATASET_CNN ? with_cudnn : plain;
    for (size_t i = 0; i < dataset.count; i++)
        add_row(&own, &dataset.rows[i], dataset.profile);
    if (dataset.kind == DATASET_REAL || dataset.kind == DATASET_TIMM)
        rc = error_set(err, EINVAL, "--from-data '%.200s': models of all sorts; take mlp, transformer or cnn", file);
    else if (own.count == 0)
        rc = error_set(err, EINVAL, "%s: no run in it that completed and has a layer list", file);
    if (rc == 0) {
        strbuf_printf(notes, "# %zu runs of %s took %" PRId64 " MiB more than their replay reserves (median).\n",
                      own.count, dataset_kind_names[dataset.kind], median(&own) / MIB);
        array_reserve(all->bytes, all->capacity, all->count + own.count);
        memcpy(all->bytes + all->count, own.bytes, own.count * sizeof *own.bytes);
        all->count += own.count;
    }
    free(own.bytes);
    dataset_release(&dataset);
    return rc;
}

static int take_medians(struct machine_profile *profile, const struct machine_profile *of, struct constants *plain,
                        struct constants *with_cudnn, struct error *err)
{
    if (!plain->count)
        return error_set(err, EINVAL,
                         "--from-data: runs without cuDNN are needed too: give mlp:FILE or transformer:FILE");
    *profile = *of;
    profile->context_bytes = median(plain) / MIB * MIB;
    if (with_cudnn->count) {
        int64_t more = median(with_cudnn) / MIB * MIB - profile->context_bytes;
        profile->cudnn_bytes = more > 0 ? more : 0;
    }
    snprintf(profile->source, sizeof profile->source, "taken from measured runs by carma calibrate%s",
             with_cudnn->count ? "" : "; cuDNN as built in");
    return 0;
}

int calibrate_by_data(struct machine_profile *profile, const char *const *files, size_t count, struct strbuf *notes,
                      struct error *err)
{
    struct constants plain = {0}, with_cudnn = {0};
    const struct machine_profile *of = NULL;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = read_file(files[i], &plain, &with_cudnn, &of, notes, err);
    if (rc == 0)
        rc = take_medians(profile, of, &plain, &with_cudnn, err);
    free(plain.bytes);
    free(with_cudnn.bytes);
    return rc;
}
