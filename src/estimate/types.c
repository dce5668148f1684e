/* The meaning of type names of PyTorch, timm, transformers and Keras. */
#include <string.h>

#include "base/memory.h"
#include "estimate/layers.h"

struct type {
    const char *name; /* its letters and digits, in lower case */
    uint8_t kind, activation;
};

/* In order of name. An activation that is not in enum activation is represented by one with a backward pass that keeps
 * the same tensors. */
static const struct type types[] = {
    {"activityregularization", LAYER_IDENTITY, ACTIVATION_NONE},
    {"adaptiveavgpool1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"adaptiveavgpool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"adaptiveavgpool3d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"adaptivemaxpool1d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"adaptivemaxpool2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"adaptivemaxpool3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"add", LAYER_ADD, ACTIVATION_NONE},
    {"addv2", LAYER_ADD, ACTIVATION_NONE},
    {"alphadropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"any", LAYER_IDENTITY, ACTIVATION_NONE},
    {"average", LAYER_ADD, ACTIVATION_NONE},
    {"averagepooling1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"averagepooling2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"averagepooling3d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"avgpool1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"avgpool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"avgpool2dsame", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"avgpool3d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"batchnorm", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"batchnorm1d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"batchnorm2d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"batchnorm3d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"batchnormact2d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"batchnormalization", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"bidirectional", LAYER_RECURRENT, ACTIVATION_NONE},
    {"bilinear", LAYER_LINEAR, ACTIVATION_NONE},
    {"blurpool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"broadcastto", LAYER_RESHAPE, ACTIVATION_NONE},
    {"cast", LAYER_IDENTITY, ACTIVATION_NONE},
    {"celu", LAYER_ACTIVATION, ACTIVATION_ELU},
    {"channelshuffle", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"circularpad1d", LAYER_PADDING, ACTIVATION_NONE},
    {"circularpad2d", LAYER_PADDING, ACTIVATION_NONE},
    {"circularpad3d", LAYER_PADDING, ACTIVATION_NONE},
    {"clippedgelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"concat", LAYER_CONCAT, ACTIVATION_NONE},
    {"concatenate", LAYER_CONCAT, ACTIVATION_NONE},
    {"condconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"constantpad1d", LAYER_PADDING, ACTIVATION_NONE},
    {"constantpad2d", LAYER_PADDING, ACTIVATION_NONE},
    {"constantpad3d", LAYER_PADDING, ACTIVATION_NONE},
    {"conv1d", LAYER_CONV, ACTIVATION_NONE},
    {"conv1dtranspose", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"conv2d", LAYER_CONV, ACTIVATION_NONE},
    {"conv2dalign", LAYER_CONV, ACTIVATION_NONE},
    {"conv2dsame", LAYER_CONV, ACTIVATION_NONE},
    {"conv2dtranspose", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"conv3d", LAYER_CONV, ACTIVATION_NONE},
    {"conv3dtranspose", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"convlstm1d", LAYER_RECURRENT, ACTIVATION_NONE},
    {"convlstm2d", LAYER_RECURRENT, ACTIVATION_NONE},
    {"convlstm3d", LAYER_RECURRENT, ACTIVATION_NONE},
    {"convolution1d", LAYER_CONV, ACTIVATION_NONE},
    {"convolution2d", LAYER_CONV, ACTIVATION_NONE},
    {"convolution3d", LAYER_CONV, ACTIVATION_NONE},
    {"convtranspose1d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"convtranspose2d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"convtranspose3d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"cropping1d", LAYER_RESHAPE, ACTIVATION_NONE},
    {"cropping2d", LAYER_RESHAPE, ACTIVATION_NONE},
    {"cropping3d", LAYER_RESHAPE, ACTIVATION_NONE},
    {"crossmaplrn2d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"cudnngru", LAYER_RECURRENT, ACTIVATION_NONE},
    {"cudnnlstm", LAYER_RECURRENT, ACTIVATION_NONE},
    {"deformconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"dense", LAYER_LINEAR, ACTIVATION_NONE},
    {"depthwiseconv1d", LAYER_CONV, ACTIVATION_NONE},
    {"depthwiseconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"dequantstub", LAYER_IDENTITY, ACTIVATION_NONE},
    {"divide", LAYER_ADD, ACTIVATION_NONE},
    {"dot", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"dropblock2d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"dropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"dropout1d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"dropout2d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"dropout3d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"droppath", LAYER_DROPOUT, ACTIVATION_NONE},
    {"einsum", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"einsumdense", LAYER_LINEAR, ACTIVATION_NONE},
    {"elu", LAYER_ACTIVATION, ACTIVATION_ELU},
    {"embedding", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"embeddingbag", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"expanddims", LAYER_RESHAPE, ACTIVATION_NONE},
    {"fastadaptiveavgpool", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"fastadaptiveavgpool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"fastgelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"featurealphadropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"flatten", LAYER_RESHAPE, ACTIVATION_NONE},
    {"floatfunctional", LAYER_ADD, ACTIVATION_NONE},
    {"fold", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"fractionalmaxpool2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"fractionalmaxpool3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"frozenbatchnorm2d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"fusedlayernorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"fusedrmsnorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"gaussiandropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"gaussiannoise", LAYER_DROPOUT, ACTIVATION_NONE},
    {"gelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"geluactivation", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"gelutanh", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"getitem", LAYER_RESHAPE, ACTIVATION_NONE},
    {"globalaveragepooling1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalaveragepooling2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalaveragepooling3d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalavgpool1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalavgpool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalavgpool3d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"globalmaxpool1d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"globalmaxpool2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"globalmaxpool3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"globalmaxpooling1d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"globalmaxpooling2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"globalmaxpooling3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"glu", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"groupedqueryattention", LAYER_ATTENTION, ACTIVATION_NONE},
    {"groupnorm", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"groupnorm1", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"groupnormact", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"groupnormalization", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"groupqueryattention", LAYER_ATTENTION, ACTIVATION_NONE},
    {"gru", LAYER_RECURRENT, ACTIVATION_NONE},
    {"grucell", LAYER_RECURRENT, ACTIVATION_NONE},
    {"hardmish", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"hardshrink", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"hardsigmoid", LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID},
    {"hardsigmoidjit", LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID},
    {"hardsigmoidme", LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID},
    {"hardsilu", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"hardswish", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"hardswishjit", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"hardswishme", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"hardtanh", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"hsigmoid", LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID},
    {"hswish", LAYER_ACTIVATION, ACTIVATION_HARDSWISH},
    {"identity", LAYER_IDENTITY, ACTIVATION_NONE},
    {"inplaceabn", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"input", LAYER_INPUT, ACTIVATION_NONE},
    {"inputlayer", LAYER_INPUT, ACTIVATION_NONE},
    {"instancenorm1d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"instancenorm2d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"instancenorm3d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"instancenormalization", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"layernorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernorm2d", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernorm2dfp32", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernormact", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernormact2d", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernormalization", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernormexp2d", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layernormfp32", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"layerscale", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"layerscale2d", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"lazybatchnorm1d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"lazybatchnorm2d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"lazybatchnorm3d", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"lazyconv1d", LAYER_CONV, ACTIVATION_NONE},
    {"lazyconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"lazyconv3d", LAYER_CONV, ACTIVATION_NONE},
    {"lazyconvtranspose1d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"lazyconvtranspose2d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"lazyconvtranspose3d", LAYER_CONV_TRANSPOSE, ACTIVATION_NONE},
    {"lazyinstancenorm1d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"lazyinstancenorm2d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"lazyinstancenorm3d", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"lazylinear", LAYER_LINEAR, ACTIVATION_NONE},
    {"leakyrelu", LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU},
    {"linear", LAYER_LINEAR, ACTIVATION_NONE},
    {"localresponsenorm", LAYER_GROUP_NORM, ACTIVATION_NONE},
    {"logsigmoid", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"logsoftmax", LAYER_SOFTMAX, ACTIVATION_NONE},
    {"lppool1d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"lppool2d", LAYER_AVG_POOL, ACTIVATION_NONE},
    {"lstm", LAYER_RECURRENT, ACTIVATION_NONE},
    {"lstmcell", LAYER_RECURRENT, ACTIVATION_NONE},
    {"masking", LAYER_IDENTITY, ACTIVATION_NONE},
    {"matmul", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"maximum", LAYER_ADD, ACTIVATION_NONE},
    {"maxpool1d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpool2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpool2dsame", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpool3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpooling1d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpooling2d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxpooling3d", LAYER_MAX_POOL, ACTIVATION_NONE},
    {"maxunpool1d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"maxunpool2d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"maxunpool3d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"memoryefficientswish", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"minimum", LAYER_ADD, ACTIVATION_NONE},
    {"mish", LAYER_ACTIVATION, ACTIVATION_MISH},
    {"mishme", LAYER_ACTIVATION, ACTIVATION_MISH},
    {"multiheadattention", LAYER_ATTENTION, ACTIVATION_NONE},
    {"multiply", LAYER_MULTIPLY, ACTIVATION_NONE},
    {"newgelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"nondynamicallyquantizablelinear", LAYER_LINEAR, ACTIVATION_NONE},
    {"normalization", LAYER_ADD, ACTIVATION_NONE},
    {"normlinear", LAYER_LINEAR, ACTIVATION_NONE},
    {"notequal", LAYER_IDENTITY, ACTIVATION_NONE},
    {"pad", LAYER_PADDING, ACTIVATION_NONE},
    {"parameter", LAYER_PARAMETER, ACTIVATION_NONE},
    {"parameterdict", LAYER_PARAMETER, ACTIVATION_NONE},
    {"parameterlist", LAYER_PARAMETER, ACTIVATION_NONE},
    {"patchdropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"permute", LAYER_RESHAPE, ACTIVATION_NONE},
    {"pixelshuffle", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"pixelunshuffle", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"positionembedding", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"prelu", LAYER_ACTIVATION, ACTIVATION_PRELU},
    {"pytorchgelutanh", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"quantstub", LAYER_IDENTITY, ACTIVATION_NONE},
    {"quickgelu", LAYER_ACTIVATION, ACTIVATION_GELU},
    {"rearrange", LAYER_RESHAPE, ACTIVATION_NONE},
    {"reflectionpad1d", LAYER_PADDING, ACTIVATION_NONE},
    {"reflectionpad2d", LAYER_PADDING, ACTIVATION_NONE},
    {"reflectionpad3d", LAYER_PADDING, ACTIVATION_NONE},
    {"relu", LAYER_ACTIVATION, ACTIVATION_RELU},
    {"relu6", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"repeatvector", LAYER_RESHAPE, ACTIVATION_NONE},
    {"replicationpad1d", LAYER_PADDING, ACTIVATION_NONE},
    {"replicationpad2d", LAYER_PADDING, ACTIVATION_NONE},
    {"replicationpad3d", LAYER_PADDING, ACTIVATION_NONE},
    {"rescaling", LAYER_ADD, ACTIVATION_NONE},
    {"reshape", LAYER_RESHAPE, ACTIVATION_NONE},
    {"resizing", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"rmsnorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"rmsnorm2d", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"rmsnormalization", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"rnn", LAYER_RECURRENT, ACTIVATION_NONE},
    {"rnncell", LAYER_RECURRENT, ACTIVATION_NONE},
    {"rotaryembedding", LAYER_IDENTITY, ACTIVATION_NONE},
    {"rrelu", LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU},
    {"scaledstdconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"scaledstdconv2dsame", LAYER_CONV, ACTIVATION_NONE},
    {"selu", LAYER_ACTIVATION, ACTIVATION_SELU},
    {"separableconv1d", LAYER_CONV, ACTIVATION_NONE},
    {"separableconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"shiftedwindowattention", LAYER_ATTENTION, ACTIVATION_NONE},
    {"shiftedwindowattentionv2", LAYER_ATTENTION, ACTIVATION_NONE},
    {"sigmoid", LAYER_ACTIVATION, ACTIVATION_SIGMOID},
    {"silu", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"simplenorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"simplernn", LAYER_RECURRENT, ACTIVATION_NONE},
    {"simplernncell", LAYER_RECURRENT, ACTIVATION_NONE},
    {"slicingoplambda", LAYER_RESHAPE, ACTIVATION_NONE},
    {"softmax", LAYER_SOFTMAX, ACTIVATION_NONE},
    {"softmax2d", LAYER_SOFTMAX, ACTIVATION_NONE},
    {"softmin", LAYER_SOFTMAX, ACTIVATION_NONE},
    {"softplus", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"softshrink", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"softsign", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"spatialdropout1d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"spatialdropout2d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"spatialdropout3d", LAYER_DROPOUT, ACTIVATION_NONE},
    {"squaredrelu", LAYER_ACTIVATION, ACTIVATION_RELU},
    {"squeeze", LAYER_RESHAPE, ACTIVATION_NONE},
    {"stack", LAYER_CONCAT, ACTIVATION_NONE},
    {"stdconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"stdconv2dsame", LAYER_CONV, ACTIVATION_NONE},
    {"stochasticdepth", LAYER_DROPOUT, ACTIVATION_NONE},
    {"stopgradient", LAYER_IDENTITY, ACTIVATION_NONE},
    {"subtract", LAYER_ADD, ACTIVATION_NONE},
    {"swiglu", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"swish", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"swishjit", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"swishme", LAYER_ACTIVATION, ACTIVATION_SILU},
    {"syncbatchnorm", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"syncbatchnormact", LAYER_BATCH_NORM, ACTIVATION_NONE},
    {"tanh", LAYER_ACTIVATION, ACTIVATION_TANH},
    {"tanhshrink", LAYER_ACTIVATION, ACTIVATION_SOFTPLUS},
    {"threshold", LAYER_ACTIVATION, ACTIVATION_RELU6},
    {"thresholdedrelu", LAYER_ACTIVATION, ACTIVATION_RELU},
    {"tokenandpositionembedding", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"transpose", LAYER_RESHAPE, ACTIVATION_NONE},
    {"unflatten", LAYER_RESHAPE, ACTIVATION_NONE},
    {"unfold", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"unitnormalization", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"upsample", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"upsampling1d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"upsampling2d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"upsampling3d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"upsamplingbilinear2d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"upsamplingnearest2d", LAYER_UPSAMPLE, ACTIVATION_NONE},
    {"view", LAYER_RESHAPE, ACTIVATION_NONE},
    {"wsconv2d", LAYER_CONV, ACTIVATION_NONE},
    {"zeropad1d", LAYER_PADDING, ACTIVATION_NONE},
    {"zeropad2d", LAYER_PADDING, ACTIVATION_NONE},
    {"zeropad3d", LAYER_PADDING, ACTIVATION_NONE},
    {"zeropadding1d", LAYER_PADDING, ACTIVATION_NONE},
    {"zeropadding2d", LAYER_PADDING, ACTIVATION_NONE},
    {"zeropadding3d", LAYER_PADDING, ACTIVATION_NONE},
};

/* Variants of model makers that differ by a prefix: "LlamaRMSNorm", "BartLearnedPositionalEmbedding". */
static const struct type endings[] = {
    {"dropout", LAYER_DROPOUT, ACTIVATION_NONE},
    {"droppath", LAYER_DROPOUT, ACTIVATION_NONE},
    {"layernorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"positionalembedding", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"positionembedding", LAYER_EMBEDDING, ACTIVATION_NONE},
    {"rmsnorm", LAYER_LAYER_NORM, ACTIVATION_NONE},
    {"rotaryembedding", LAYER_IDENTITY, ACTIVATION_NONE},
    {"scaledwordembedding", LAYER_EMBEDDING, ACTIVATION_NONE},
};

/* False where it is longer than any name here. */
static bool simplify(const char *type, char simple[static LAYER_NAME_SIZE])
{
    size_t length = 0;

    for (; *type; type++) {
        bool upper = *type >= 'A' && *type <= 'Z';
        if (!upper && (*type < 'a' || *type > 'z') && (*type < '0' || *type > '9'))
            continue;
        if (length + 1 >= LAYER_NAME_SIZE)
            return false;
        simple[length++] = (char)(upper ? *type - 'A' + 'a' : *type);
    }
    simple[length] = '\0';
    return length > 0;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);

    return length >= wanted && memcmp(text + length - wanted, ending, wanted) == 0;
}

static const struct type *find(const char *simple)
{
    size_t low = 0, high = array_size(types);

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(simple, types[middle].name);
        if (order == 0)
            return &types[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static const struct type *find_variant(char simple[static LAYER_NAME_SIZE])
{
    static const char activation[] = "activation";

    for (size_t i = 0; i < array_size(endings); i++)
        if (ends_with(simple, endings[i].name))
            return &endings[i];
    /* transformers: "NewGELUActivation" */
    if (ends_with(simple, activation)) {
        const struct type *type;
        simple[strlen(simple) - strlen(activation)] = '\0';
        type = find(simple);
        if (type && (type->kind == LAYER_ACTIVATION || type->kind == LAYER_SOFTMAX))
            return type;
    }
    return NULL;
}

enum layer_kind layer_kind_of_type(const char *type, enum activation *activation)
{
    char simple[LAYER_NAME_SIZE];
    const struct type *found = NULL;

    if (activation)
        *activation = ACTIVATION_NONE;
    /* transformers' linear layer; PyTorch's convolution has a small d */
    if (strcmp(type, "Conv1D") == 0)
        return LAYER_CONV1D_LINEAR;
    if (simplify(type, simple)) {
        found = find(simple);
        if (!found)
            found = find_variant(simple);
    }
    if (!found)
        return LAYER_UNKNOWN;
    if (activation)
        *activation = found->activation;
    return found->kind;
}

enum layer_kind layer_kind_of_cut_type(const char *beginning, enum activation *activation)
{
    char simple[LAYER_NAME_SIZE];
    size_t length, first = 0, high = array_size(types);

    if (activation)
        *activation = ACTIVATION_NONE;
    if (!simplify(beginning, simple))
        return LAYER_UNKNOWN;
    length = strlen(simple);
    while (first < high) {
        size_t middle = (first + high) / 2;
        if (strcmp(types[middle].name, simple) < 0)
            first = middle + 1;
        else
            high = middle;
    }
    if (first == array_size(types) || strncmp(types[first].name, simple, length) != 0)
        return LAYER_UNKNOWN;
    for (size_t i = first; i < array_size(types) && strncmp(types[i].name, simple, length) == 0; i++)
        if (types[i].kind != types[first].kind || types[i].activation != types[first].activation)
            return LAYER_UNKNOWN;
    if (activation)
        *activation = types[first].activation;
    return types[first].kind;
}
