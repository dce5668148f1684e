#include "evaluation/collected.h"

#include <string.h>

#define SAMPLES 4096 /* of an epoch, where no column says (python/carma_collect/train.py) */

static int read_training(const struct csv *csv, size_t first, struct training *training, struct error *err)
{
    struct error why;

    if (optimizer_parse(csv->values[first + COLLECTED_OPTIMIZER], &training->optimizer, &why) ||
        precision_parse(csv->values[first + COLLECTED_PRECISION], &training->precision, &why))
        return csv_error(csv, err, "%s", why.text);
    if (training->samples <= 0)
        training->samples = SAMPLES;
    training->summary_pass = false; /* the collector makes its summary without the GPU */
    return 0;
}

int dataset_collected(const struct csv *csv, size_t first, struct dataset_row *row, struct error *err)
{
    int rc;

    if (!*csv->values[first + COLLECTED_RUN])
        return 0;
    rc = read_training(csv, first, &row->training, err);
    if (rc == 0 && strcmp(csv->values[first + COLLECTED_CHECKPOINTING], "1") != 0 &&
        strcmp(csv->values[first + COLLECTED_PROJECTION], "conv1d") != 0)
        return 0;
    layer_list_release(&row->layers);
    row->has_layers = false;
    return rc;
}
