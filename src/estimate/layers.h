/* A model as its summary shows it: one list of layers, for every format of summaries. Shapes are per sample. */
#ifndef CARMA_ESTIMATE_LAYERS_H
#define CARMA_ESTIMATE_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layer_kind {
    LAYER_INPUT,
    LAYER_CONV, /* 1, 2 or 3 spatial dimensions */
    LAYER_CONV_TRANSPOSE,
    LAYER_LINEAR,
    LAYER_CONV1D_LINEAR, /* transformers.Conv1D: a linear layer with a transposed weight */
    LAYER_BATCH_NORM,
    LAYER_LAYER_NORM, /* also RMSNorm */
    LAYER_GROUP_NORM, /* also InstanceNorm */
    LAYER_ACTIVATION,
    LAYER_SOFTMAX,
    LAYER_DROPOUT,
    LAYER_MAX_POOL,
    LAYER_AVG_POOL, /* also adaptive and global ones */
    LAYER_EMBEDDING,
    LAYER_ATTENTION, /* MultiheadAttention and its like, as one layer: projections included */
    LAYER_RECURRENT, /* RNN, LSTM, GRU */
    LAYER_ADD,       /* sum of its inputs */
    LAYER_MULTIPLY,
    LAYER_CONCAT,
    LAYER_RESHAPE, /* flatten, view, permute: no memory of its own */
    LAYER_UPSAMPLE,
    LAYER_PADDING,
    LAYER_IDENTITY,
    LAYER_PARAMETER, /* a bare parameter: a positional embedding, a class token */
    LAYER_UNKNOWN,   /* its type is not one we know: shape and parameters count all the same */
    LAYER_KIND_COUNT
};

/* The tensors that a layer's backward pass keeps: see activation_saves_output(). */
enum activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_RELU6,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_PRELU,
    ACTIVATION_ELU,
    ACTIVATION_SELU,
    ACTIVATION_GELU,
    ACTIVATION_SILU,
    ACTIVATION_MISH,
    ACTIVATION_SOFTPLUS,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_HARDSWISH,
    ACTIVATION_HARDSIGMOID,
    ACTIVATION_COUNT
};

#define LAYER_MAX_RANK       5
#define LAYER_NAME_SIZE      64
#define LAYER_LIST_MAX       100000 /* layers */
#define LAYER_MAX_DIMENSION  (INT64_C(1) << 31)
#define LAYER_MAX_PARAMETERS (INT64_C(1) << 40)

struct layer {
    char type[LAYER_NAME_SIZE]; /* as the summary writes it, cut where longer */
    char name[LAYER_NAME_SIZE]; /* "conv1", "layer1.0.conv1", "Conv2d-1"; "" where there is none */
    uint8_t kind;               /* enum layer_kind */
    uint8_t activation;         /* enum activation, of LAYER_ACTIVATION */
    bool container;             /* its parameters and memory are its children's: never counted twice */
    bool shape_known; /* else, with rank 1, shape[0] is the width (the last dimension) or the channels of its output */
    bool frozen;      /* its parameters are not trained */
    bool in_place;    /* writes over its input (ReLU(inplace=True)) */
    uint8_t depth;    /* in the tree of modules; 0 = the model itself (or no tree) */
    uint8_t rank;     /* of shape */
    int64_t shape[LAYER_MAX_RANK]; /* of its output, per sample: C,H,W or T,E or N; channels first, for every summary */
    int64_t parameters;            /* elements, its own (a container's: the sum it shows) */
    /* Convolutions; 0 = the summary does not say (layers_complete() works it out where it can). */
    int32_t kernel[3], stride[3];
    int64_t groups, in_channels;
    bool bias_known, bias;
    int32_t heads; /* LAYER_ATTENTION; 0 = not said */
    /* Where its input comes from: indices into layers.items, owned; -1 = the model's input. input_count 0: not said. */
    int32_t *inputs;
    uint32_t input_count;
};

struct layer_list {
    struct layer *items; /* owned */
    size_t count, capacity;
    int64_t batch_size;            /* the summary's own, or -1: the job must say */
    int64_t input[LAYER_MAX_RANK]; /* of the model, per sample */
    uint8_t input_rank;            /* 0 = not known */
    bool input_is_index;           /* token numbers (8 bytes each), not floats */
    int64_t total_parameters;      /* as the summary's footer says (without the optimizer's), or -1 */
    int64_t trainable_parameters;  /* the same */
    bool connected;                /* every layer that is not a container has its inputs */
    uint32_t unknown;              /* layers of LAYER_UNKNOWN that are not containers */
    uint32_t shapeless;            /* layers of unknown shape that are neither containers nor bare parameters */
    uint32_t guessed;              /* layers for which nothing before has a shape that fits: their input is a guess */
};

void layer_list_init(struct layer_list *list);
void layer_list_release(struct layer_list *list);

/* A new last layer, all zero but for kind; valid until the next is added. */
struct layer *layer_list_add(struct layer_list *list, enum layer_kind kind);
void layer_add_input(struct layer *layer, int32_t from);

int64_t layer_elements(const struct layer *layer); /* of its output, per sample; 0 where its shape is not known */
const char *layer_kind_name(enum layer_kind kind); /* "conv", "linear", ... */

/* The kind (and activation) that a type name of PyTorch or Keras stands for: "Conv2d", "BatchNormalization", "GELU".
 * LAYER_UNKNOWN where there is none. */
enum layer_kind layer_kind_of_type(const char *type, enum activation *activation);

/* The same of a type's beginning ("GlobalAveragePooli"), where all that begin so are of one kind. */
enum layer_kind layer_kind_of_cut_type(const char *beginning, enum activation *activation);

/* True: backward needs its output (ReLU, Tanh, Sigmoid, softmax); false: its input. PyTorch's derivatives.yaml. */
bool activation_saves_output(enum activation activation);

#endif
