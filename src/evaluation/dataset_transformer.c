/* Transformer encoders (thesis 5.4.2): nn.TransformerEncoder (post-norm, ReLU, batch first) over an embedding plus a
 * learned position, the mean over the sequence, one linear layer. */
#include <errno.h>

#include "base/memory.h"
#include "evaluation/collected.h"
#include "evaluation/network.h"
#include "evaluation/rows.h"

#define COLUMNS(COLUMN)                                                                                                \
    COLUMN(NUM_CLASSES, "num_classes", true)                                                                           \
    COLUMN(EMBEDDING_SIZE, "embedding_size", true)                                                                     \
    COLUMN(NUM_LAYERS, "num_layers", true)                                                                             \
    COLUMN(NUM_HEADS, "num_heads", true)                                                                               \
    COLUMN(FF_HIDDEN_SIZE, "ff_hidden_size", true)                                                                     \
    COLUMN(DROPOUT_RATE, "dropout_rate", false)                                                                        \
    COLUMN(SEQ_LENGTH, "seq_length", true)                                                                             \
    COLUMN(VOCAB_SIZE, "vocab_size", true)                                                                             \
    COLUMN(NUM_SAMPLES, "num_samples", true)                                                                           \
    COLUMN(BATCH_SIZE, "batch_size", true)                                                                             \
    COLUMN(MEASURED, "max_gpu_memory_mib", true)                                                                       \
    COLUMN(STATUS, "status", true)                                                                                     \
    COLUMN(GRACT, "avg_gract", false)                                                                                  \
    COLUMN(SMACT, "avg_smact", false)                                                                                  \
    COLUMN(SMOCC, "avg_smocc", false)                                                                                  \
    COLUMN(FP32A, "avg_fp32a", false)

enum { COLUMNS(CSV_COLUMN_PLACE) COLLECTED /* from here on */ };

static const struct csv_column columns[] = {COLUMNS(CSV_COLUMN_ROW) COLLECTED_COLUMNS(COLLECTED)};

#define MAX_WIDTH (1 << 18)

struct encoder {
    int64_t classes, width, layers, heads, inner, length, words;
};

static int32_t add_embedding(struct network *network, const struct encoder *encoder)
{
    struct layer *words = network_layer(network, LAYER_EMBEDDING, "Embedding", NETWORK_INPUT);
    int32_t at = (int32_t)network->list->count - 1;
    struct layer *position;

    words->rank = 2;
    words->shape[1] = encoder->width;
    words->parameters = encoder->words * encoder->width;
    position = network_layer(network, LAYER_PARAMETER, "Parameter", at);
    position->parameters = encoder->length * encoder->width;
    position->input_count = 0; /* it comes from nowhere */
    return network_add(network, at, at + 1);
}

static int32_t add_attention(struct network *network, const struct encoder *encoder, int32_t from)
{
    struct layer *layer = network_layer(network, LAYER_ATTENTION, "MultiheadAttention", from);

    layer->heads = (int32_t)encoder->heads;
    layer->in_channels = encoder->width;
    layer->bias_known = layer->bias = true;
    layer->parameters = 4 * (encoder->width + 1) * encoder->width; /* query, key and value in one; output */
    return (int32_t)network->list->count - 1;
}

static int32_t add_block(struct network *network, const struct encoder *encoder, int32_t in)
{
    int32_t at = network_dropout(network, add_attention(network, encoder, in));

    in = network_layer_norm(network, network_add(network, in, at));
    at = network_linear(network, in, encoder->inner);
    at = network_activation(network, at, network_activation_named("relu"));
    at = network_linear(network, network_dropout(network, at), encoder->width);
    return network_layer_norm(network, network_add(network, in, network_dropout(network, at)));
}

static void build(const struct csv *csv, const struct encoder *encoder, struct layer_list *list, struct error *err)
{
    struct network network;
    struct layer *mean;
    int32_t at;

    network_begin(&network, list, csv, NULL, &encoder->length, 1, err);
    list->input_is_index = true;
    at = add_embedding(&network, encoder);
    for (int64_t i = 0; i < encoder->layers; i++)
        at = add_block(&network, encoder, at);
    mean = network_layer(&network, LAYER_AVG_POOL, "Mean", at);
    mean->shape[0] = encoder->width;
    mean->shape[1] = 0;
    mean->rank = 1;
    network_linear(&network, (int32_t)list->count - 1, encoder->classes);
    list->connected = true;
}

static int read_row(const struct csv *csv, struct dataset_row *row, struct error *err)
{
    struct encoder encoder;

    if (csv_integer(csv, NUM_CLASSES, 1, 1 << 20, 0, &encoder.classes, err) ||
        csv_integer(csv, EMBEDDING_SIZE, 1, MAX_WIDTH, 0, &encoder.width, err) ||
        csv_integer(csv, NUM_LAYERS, 1, 1000, 0, &encoder.layers, err) ||
        csv_integer(csv, NUM_HEADS, 1, 1024, 0, &encoder.heads, err) ||
        csv_integer(csv, FF_HIDDEN_SIZE, 1, MAX_WIDTH, 0, &encoder.inner, err) ||
        csv_integer(csv, SEQ_LENGTH, 1, 1 << 20, 0, &encoder.length, err) ||
        csv_integer(csv, VOCAB_SIZE, 1, 1 << 22, 0, &encoder.words, err) ||
        csv_integer(csv, NUM_SAMPLES, 1, INT32_MAX, 0, &row->training.samples, err) ||
        csv_integer(csv, BATCH_SIZE, 1, DATASET_MAX_BATCH, 0, &row->training.batch_size, err) ||
        dataset_measured(csv, row, MEASURED, err) || dataset_status(csv, STATUS, row, err) ||
        dataset_permille(csv, SMACT, &row->smact_permille, err) ||
        dataset_permille(csv, SMOCC, &row->smocc_permille, err))
        return -EINVAL;
    if (encoder.width % encoder.heads)
        return csv_error(csv, err, "embedding_size %s does not divide among %s heads", csv->values[EMBEDDING_SIZE],
                         csv->values[NUM_HEADS]);
    row->training.summary_pass = row->training.summary_gradients =
        true; /* the script tried the model on a whole batch first */
    row->training.summary_batch = row->training.batch_size;
    build(csv, &encoder, &row->layers, err);
    row->has_layers = true;
    return dataset_collected(csv, COLLECTED, row, err);
}

const struct dataset_rows dataset_transformer_rows = {{columns, array_size(columns), 0}, read_row};
