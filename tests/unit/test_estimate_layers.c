/* The elements of a layer; the meaning of type names. */
#include "unit.h"

#include "activation_name.h"

TEST(test_elements)
{
    struct layer layer = {.rank = 3, .shape = {3, 4, 5}};

    assert_int_equal(layer_elements(&layer), 0);
    layer.shape_known = true;
    assert_int_equal(layer_elements(&layer), 60);
    layer = (struct layer){.shape_known = true, .rank = 1, .shape = {1}};
    assert_int_equal(layer_elements(&layer), 1);
    layer = (struct layer){.shape_known = true, .rank = 3, .shape = {INT64_C(1) << 31, INT64_C(1) << 31, 4}};
    assert_int_equal(layer_elements(&layer), INT64_MAX);
}

static const struct {
    const char *types;
    enum layer_kind kind;
} kinds[] = {
    {"InputLayer", LAYER_INPUT},
    {"Conv1d Conv2d Conv3d Conv2D Conv3D DepthwiseConv2D SeparableConv2D Conv2dSame StdConv2d conv2d", LAYER_CONV},
    {"ConvTranspose1d ConvTranspose2d ConvTranspose3d Conv2DTranspose", LAYER_CONV_TRANSPOSE},
    {"Linear Dense Bilinear NonDynamicallyQuantizableLinear EinsumDense linear", LAYER_LINEAR},
    {"Conv1D", LAYER_CONV1D_LINEAR},
    {"BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm FrozenBatchNorm2d BatchNormalization BatchNormAct2d "
     "batch_normalization batchnorm2d",
     LAYER_BATCH_NORM},
    {"LayerNorm LayerNorm2d RMSNorm LlamaRMSNorm T5LayerNorm LayerNormalization", LAYER_LAYER_NORM},
    {"GroupNorm InstanceNorm2d GroupNormalization", LAYER_GROUP_NORM},
    {"Softmax LogSoftmax Softmax2d", LAYER_SOFTMAX},
    {"Dropout Dropout2d AlphaDropout SpatialDropout2D StochasticDepth DropPath StableDropout dropout", LAYER_DROPOUT},
    {"MaxPool1d MaxPool2d AdaptiveMaxPool2d MaxPooling2D GlobalMaxPooling2D", LAYER_MAX_POOL},
    {"AvgPool2d AdaptiveAvgPool2d AveragePooling2D GlobalAveragePooling2D adaptive_avg_pool2d", LAYER_AVG_POOL},
    {"Embedding EmbeddingBag BartLearnedPositionalEmbedding", LAYER_EMBEDDING},
    {"MultiheadAttention MultiHeadAttention ShiftedWindowAttention", LAYER_ATTENTION},
    {"RNN LSTM GRU SimpleRNN Bidirectional", LAYER_RECURRENT},
    {"Add Subtract Rescaling", LAYER_ADD},
    {"Multiply LayerScale", LAYER_MULTIPLY},
    {"Concatenate", LAYER_CONCAT},
    {"Flatten Unflatten Reshape Permute", LAYER_RESHAPE},
    {"Upsample UpSampling2D PixelShuffle", LAYER_UPSAMPLE},
    {"ZeroPad2d ZeroPadding2D ReflectionPad2d", LAYER_PADDING},
    {"Identity LlamaRotaryEmbedding", LAYER_IDENTITY},
    {"ParameterList", LAYER_PARAMETER},
    {"BasicBlock ResNet Sequential BertLayer Activation Attention TFOpLambda Norm - ...", LAYER_UNKNOWN},
};

static const struct {
    const char *types;
    enum activation activation;
} activations[] = {
    {"ReLU relu ThresholdedReLU", ACTIVATION_RELU},
    {"ReLU6 Hardtanh", ACTIVATION_RELU6},
    {"LeakyReLU RReLU", ACTIVATION_LEAKY_RELU},
    {"PReLU", ACTIVATION_PRELU},
    {"ELU CELU", ACTIVATION_ELU},
    {"SELU", ACTIVATION_SELU},
    {"GELU GELUActivation NewGELUActivation FastGELUActivation QuickGELUActivation PytorchGELUTanh", ACTIVATION_GELU},
    {"SiLU Swish SiLUActivation", ACTIVATION_SILU},
    {"Mish", ACTIVATION_MISH},
    {"Softplus", ACTIVATION_SOFTPLUS},
    {"Tanh", ACTIVATION_TANH},
    {"Sigmoid", ACTIVATION_SIGMOID},
    {"Hardswish", ACTIVATION_HARDSWISH},
    {"Hardsigmoid", ACTIVATION_HARDSIGMOID},
};

static void assert_types(const char *types, enum layer_kind kind, enum activation activation)
{
    CLEANUP(free_ptr) char *copy = xstrdup(types);
    char *rest = NULL;

    for (char *type = strtok_r(copy, " ", &rest); type; type = strtok_r(NULL, " ", &rest)) {
        enum activation found;
        if (layer_kind_of_type(type, &found) != kind || found != activation)
            fail_msg("%s is %s:%s", type, layer_kind_name(layer_kind_of_type(type, NULL)), activation_name(found));
    }
}

TEST(test_types)
{
    char longest[1000];

    for (size_t i = 0; i < array_size(kinds); i++)
        assert_types(kinds[i].types, kinds[i].kind, ACTIVATION_NONE);
    for (size_t i = 0; i < array_size(activations); i++)
        assert_types(activations[i].types, LAYER_ACTIVATION, activations[i].activation);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(layer_kind_of_type(longest, NULL), LAYER_UNKNOWN);
    assert_int_equal(layer_kind_of_type("", NULL), LAYER_UNKNOWN);
}

TEST(test_cut_types)
{
    enum activation activation;

    assert_int_equal(layer_kind_of_cut_type("BatchNo", NULL), LAYER_BATCH_NORM);
    assert_int_equal(layer_kind_of_cut_type("GlobalAveragePooli", NULL), LAYER_AVG_POOL);
    assert_int_equal(layer_kind_of_cut_type("LeakyRe", &activation), LAYER_ACTIVATION);
    assert_int_equal(activation, ACTIVATION_LEAKY_RELU);
    assert_int_equal(layer_kind_of_cut_type("Global", NULL), LAYER_UNKNOWN); /* average or maximum */
    assert_int_equal(layer_kind_of_cut_type("Max", NULL), LAYER_UNKNOWN);
    assert_int_equal(layer_kind_of_cut_type("Nothing", NULL), LAYER_UNKNOWN);
    assert_int_equal(layer_kind_of_cut_type("zzz", NULL), LAYER_UNKNOWN);
    assert_int_equal(layer_kind_of_cut_type("", NULL), LAYER_UNKNOWN);
}

/* PyTorch's derivatives.yaml: relu, tanh, sigmoid are differentiated by their result, the others by their input. */
TEST(test_what_activations_save)
{
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        assert_int_equal(activation_saves_output(i),
                         i == ACTIVATION_RELU || i == ACTIVATION_TANH || i == ACTIVATION_SIGMOID);
}
