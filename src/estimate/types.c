/* The meaning of type names of PyTorch, timm, transformers and Keras. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/layers.h"

/* Names have their letters and digits, in lower case; in `types`, a space stands on either side of each. An activation
 * that is not in enum activation is represented by one with a backward pass that keeps the same tensors. */
struct type {
    uint8_t kind, activation;
    const char *names;
};

static const struct type types[] = {
    {LAYER_ADD, ACTIVATION_NONE,
     " add addv2 average divide floatfunctional maximum minimum normalization rescaling subtract "},
    {LAYER_ATTENTION, ACTIVATION_NONE,
     " groupedqueryattention groupqueryattention multiheadattention shiftedwindowattention "
     "shiftedwindowattentionv2 "},
    {LAYER_AVG_POOL, ACTIVATION_NONE,
     " adaptiveavgpool1d adaptiveavgpool2d adaptiveavgpool3d averagepooling1d averagepooling2d "
     "averagepooling3d avgpool1d avgpool2d avgpool2dsame avgpool3d blurpool2d fastadaptiveavgpool "
     "fastadaptiveavgpool2d globalaveragepooling1d globalaveragepooling2d globalaveragepooling3d "
     "globalavgpool1d globalavgpool2d globalavgpool3d lppool1d lppool2d "},
    {LAYER_BATCH_NORM, ACTIVATION_NONE,
     " batchnorm batchnorm1d batchnorm2d batchnorm3d batchnormact2d batchnormalization frozenbatchnorm2d "
     "inplaceabn lazybatchnorm1d lazybatchnorm2d lazybatchnorm3d syncbatchnorm syncbatchnormact "},
    {LAYER_CONCAT, ACTIVATION_NONE, " concat concatenate stack "},
    {LAYER_CONV, ACTIVATION_NONE,
     " condconv2d conv1d conv2d conv2dalign conv2dsame conv3d convolution1d convolution2d convolution3d "
     "deformconv2d depthwiseconv1d depthwiseconv2d lazyconv1d lazyconv2d lazyconv3d scaledstdconv2d "
     "scaledstdconv2dsame separableconv1d separableconv2d stdconv2d stdconv2dsame wsconv2d "},
    {LAYER_CONV_TRANSPOSE, ACTIVATION_NONE,
     " conv1dtranspose conv2dtranspose conv3dtranspose convtranspose1d convtranspose2d convtranspose3d "
     "lazyconvtranspose1d lazyconvtranspose2d lazyconvtranspose3d "},
    {LAYER_DROPOUT, ACTIVATION_NONE,
     " alphadropout dropblock2d dropout dropout1d dropout2d dropout3d droppath featurealphadropout "
     "gaussiandropout gaussiannoise patchdropout spatialdropout1d spatialdropout2d spatialdropout3d "
     "stochasticdepth "},
    {LAYER_EMBEDDING, ACTIVATION_NONE, " embedding embeddingbag positionembedding tokenandpositionembedding "},
    {LAYER_GROUP_NORM, ACTIVATION_NONE,
     " crossmaplrn2d groupnorm groupnorm1 groupnormact groupnormalization instancenorm1d instancenorm2d "
     "instancenorm3d instancenormalization lazyinstancenorm1d lazyinstancenorm2d lazyinstancenorm3d "
     "localresponsenorm "},
    {LAYER_IDENTITY, ACTIVATION_NONE,
     " activityregularization any cast dequantstub identity masking notequal quantstub rotaryembedding "
     "stopgradient "},
    {LAYER_INPUT, ACTIVATION_NONE, " input inputlayer "},
    {LAYER_LAYER_NORM, ACTIVATION_NONE,
     " fusedlayernorm fusedrmsnorm layernorm layernorm2d layernorm2dfp32 layernormact layernormact2d "
     "layernormalization layernormexp2d layernormfp32 rmsnorm rmsnorm2d rmsnormalization simplenorm "
     "unitnormalization "},
    {LAYER_LINEAR, ACTIVATION_NONE,
     " bilinear dense einsumdense lazylinear linear nondynamicallyquantizablelinear normlinear "},
    {LAYER_MAX_POOL, ACTIVATION_NONE,
     " adaptivemaxpool1d adaptivemaxpool2d adaptivemaxpool3d fractionalmaxpool2d fractionalmaxpool3d "
     "globalmaxpool1d globalmaxpool2d globalmaxpool3d globalmaxpooling1d globalmaxpooling2d "
     "globalmaxpooling3d maxpool1d maxpool2d maxpool2dsame maxpool3d maxpooling1d maxpooling2d maxpooling3d "},
    {LAYER_MULTIPLY, ACTIVATION_NONE, " dot einsum layerscale layerscale2d matmul multiply "},
    {LAYER_PADDING, ACTIVATION_NONE,
     " circularpad1d circularpad2d circularpad3d constantpad1d constantpad2d constantpad3d pad reflectionpad1d "
     "reflectionpad2d reflectionpad3d replicationpad1d replicationpad2d replicationpad3d zeropad1d zeropad2d "
     "zeropad3d zeropadding1d zeropadding2d zeropadding3d "},
    {LAYER_PARAMETER, ACTIVATION_NONE, " parameter parameterdict parameterlist "},
    {LAYER_RECURRENT, ACTIVATION_NONE,
     " bidirectional convlstm1d convlstm2d convlstm3d cudnngru cudnnlstm gru grucell lstm lstmcell rnn rnncell "
     "simplernn simplernncell "},
    {LAYER_RESHAPE, ACTIVATION_NONE,
     " broadcastto cropping1d cropping2d cropping3d expanddims flatten getitem permute rearrange repeatvector "
     "reshape slicingoplambda squeeze transpose unflatten view "},
    {LAYER_SOFTMAX, ACTIVATION_NONE, " logsoftmax softmax softmax2d softmin "},
    {LAYER_UPSAMPLE, ACTIVATION_NONE,
     " channelshuffle fold maxunpool1d maxunpool2d maxunpool3d pixelshuffle pixelunshuffle resizing unfold "
     "upsample upsampling1d upsampling2d upsampling3d upsamplingbilinear2d upsamplingnearest2d "},
    {LAYER_ACTIVATION, ACTIVATION_ELU, " celu elu "},
    {LAYER_ACTIVATION, ACTIVATION_GELU,
     " clippedgelu fastgelu gelu geluactivation gelutanh newgelu pytorchgelutanh quickgelu "},
    {LAYER_ACTIVATION, ACTIVATION_HARDSIGMOID, " hardsigmoid hardsigmoidjit hardsigmoidme hsigmoid "},
    {LAYER_ACTIVATION, ACTIVATION_HARDSWISH, " hardmish hardsilu hardswish hardswishjit hardswishme hswish "},
    {LAYER_ACTIVATION, ACTIVATION_LEAKY_RELU, " leakyrelu rrelu "},
    {LAYER_ACTIVATION, ACTIVATION_MISH, " mish mishme "},
    {LAYER_ACTIVATION, ACTIVATION_PRELU, " prelu "},
    {LAYER_ACTIVATION, ACTIVATION_RELU, " relu squaredrelu thresholdedrelu "},
    {LAYER_ACTIVATION, ACTIVATION_RELU6, " hardshrink hardtanh relu6 softshrink threshold "},
    {LAYER_ACTIVATION, ACTIVATION_SELU, " selu "},
    {LAYER_ACTIVATION, ACTIVATION_SIGMOID, " sigmoid "},
    {LAYER_ACTIVATION, ACTIVATION_SILU, " glu memoryefficientswish silu swiglu swish swishjit swishme "},
    {LAYER_ACTIVATION, ACTIVATION_SOFTPLUS, " logsigmoid softplus softsign tanhshrink "},
    {LAYER_ACTIVATION, ACTIVATION_TANH, " tanh "},
};

/* Variants of model makers that differ by a prefix: "LlamaRMSNorm", "BartLearnedPositionalEmbedding". */
static const struct type endings[] = {
    {LAYER_DROPOUT, ACTIVATION_NONE, "dropout"},
    {LAYER_DROPOUT, ACTIVATION_NONE, "droppath"},
    {LAYER_LAYER_NORM, ACTIVATION_NONE, "layernorm"},
    {LAYER_EMBEDDING, ACTIVATION_NONE, "positionalembedding"},
    {LAYER_EMBEDDING, ACTIVATION_NONE, "positionembedding"},
    {LAYER_LAYER_NORM, ACTIVATION_NONE, "rmsnorm"},
    {LAYER_IDENTITY, ACTIVATION_NONE, "rotaryembedding"},
    {LAYER_EMBEDDING, ACTIVATION_NONE, "scaledwordembedding"},
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

static const struct type *find(const char *simple)
{
    char name[LAYER_NAME_SIZE + 2];

    snprintf(name, sizeof name, " %s ", simple);
    for (size_t i = 0; i < array_size(types); i++)
        if (strstr(types[i].names, name))
            return &types[i];
    return NULL;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);

    return length >= wanted && memcmp(text + length - wanted, ending, wanted) == 0;
}

static const struct type *find_variant(char simple[static LAYER_NAME_SIZE])
{
    static const char activation[] = "activation";

    for (size_t i = 0; i < array_size(endings); i++)
        if (ends_with(simple, endings[i].names))
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

/* All names that begin so must mean the same. */
enum layer_kind layer_kind_of_cut_type(const char *beginning, enum activation *activation)
{
    char simple[LAYER_NAME_SIZE], start[LAYER_NAME_SIZE + 1];
    const struct type *found = NULL;

    if (activation)
        *activation = ACTIVATION_NONE;
    if (!simplify(beginning, simple))
        return LAYER_UNKNOWN;
    snprintf(start, sizeof start, " %s", simple);
    for (size_t i = 0; i < array_size(types); i++) {
        if (!strstr(types[i].names, start))
            continue;
        if (found)
            return LAYER_UNKNOWN;
        found = &types[i];
    }
    if (found && activation)
        *activation = found->activation;
    return found ? found->kind : LAYER_UNKNOWN;
}
