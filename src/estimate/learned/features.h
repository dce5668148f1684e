/* The features of a program that the trained corrections use: how the replays under several rules for cuDNN's workspace
 * differ. Also where the memory is, and the geometry of the convolutions. The same code prints them for training
 * (bench/features.c) and computes them for an answer. */
#ifndef CARMA_ESTIMATE_FEATURES_H
#define CARMA_ESTIMATE_FEATURES_H

#include "estimate/profile.h"
#include "estimate/program/program.h"
#include "estimate/program/replay.h"

/* The replays. One byte more or less in a workspace can cost or save a whole segment, of the real allocator too. So the
 * base, which the correction corrects, is the middle one of the first three: they fit the measured runs about
 * equally. */
enum features_replay {
    REPLAY_MAIN,                /* workspace_rule_default() */
    REPLAY_SIMPLE,              /* the same without its classes for many channels */
    REPLAY_DATA,                /* as main, but Winograd's for every gradient of an input that it can do */
    REPLAY_BASES,               /* their number */
    REPLAY_NONE = REPLAY_BASES, /* no workspaces */
    REPLAY_COUNT
};

/* In this order in the trees (their table holds a hash of the names). Sizes are relative to the base: the memory that
 * its replay reserves and the context of the machine that the trees were trained on. The base is no more than fits the
 * GPU. */
#define FEATURES(X)                                                                                                    \
    X(MAIN) /* ln of the replays' reserved bytes and context over the base */                                          \
    X(SIMPLE)                                                                                                          \
    X(DATA)                                                                                                            \
    X(NONE)                                                                                                            \
    X(PEAK)    /* ln of the most that is allocated at once */                                                          \
    X(BASE)    /* ln of the base in MiB */                                                                             \
    X(FILLING) /* ln of the base's replay over the memory that fits, and REPLAY_NONE's */                              \
    X(FILLING_NONE)                                                                                                    \
    X(OUT) /* 1: the base's replay, or REPLAY_NONE, is out of memory on this GPU */                                    \
    X(OUT_NONE)                                                                                                        \
    X(PARAMETERS) /* bytes over base */                                                                                \
    X(INPUT)                                                                                                           \
    X(ACTIVATIONS) /* outputs of all layers */                                                                         \
    X(BATCH)                                                                                                           \
    X(LAYERS)                                                                                                          \
    X(CONVOLUTIONS) /* counts */                                                                                       \
    X(NORMS)        /* per convolution */                                                                              \
    X(DROPOUTS)                                                                                                        \
    X(FLOPS)      /* ln of the forward pass's floating-point operations */                                             \
    X(OUTPUT_MAX) /* of the convolutions' forward passes: the largest output and the sum, over base */                 \
    X(OUTPUT_SUM)                                                                                                      \
    X(COPY_MAX) /* largest copies, Winograd workspace and weights, over base */                                        \
    X(WINOGRAD_MAX)                                                                                                    \
    X(WEIGHT_MAX)                                                                                                      \
    X(WINOGRAD_LAST) /* of the last convolution */                                                                     \
    X(CHANNELS_MAX)  /* output channels */                                                                             \
    X(CHANNELS_MIN)                                                                                                    \
    X(CHANNELS_MEAN)                                                                                                   \
    X(SUM_MAX) /* input and output channels together */                                                                \
    X(SUM_MIN)                                                                                                         \
    X(GROWTH_MAX)  /* output over input channels, all but the first */                                                 \
    X(LARGEST_OUT) /* the convolution with the largest output: its channels and height */                              \
    X(LARGEST_IN)                                                                                                      \
    X(LARGEST_HEIGHT)                                                                                                  \
    X(WINOGRAD_OUT) /* that with the largest Winograd workspace */                                                     \
    X(WINOGRAD_IN)                                                                                                     \
    X(WINOGRAD_HEIGHT)                                                                                                 \
    X(PIXELS_MAX) /* ln of batch * height * width of the largest output */                                             \
    X(ALIGNED_IN) /* share of the convolutions with channels that fit 16-byte accesses */                              \
    X(ALIGNED_OUT)                                                                                                     \
    X(ALIGNED_BOTH)                                                                                                    \
    X(ALIGNED_TWICE) /* to 32 bytes */                                                                                 \
    X(POINTWISE)     /* share of 1x1, of strided and of grouped ones */                                                \
    X(STRIDED)                                                                                                         \
    X(GROUPED)                                                                                                         \
    X(CLASS0) /* share of the output bytes by conv_workspace_class() */                                                \
    X(CLASS1)                                                                                                          \
    X(CLASS2)                                                                                                          \
    X(CLASS3)                                                                                                          \
    X(CLASS4)                                                                                                          \
    X(CLASS5)                                                                                                          \
    X(CLASS6)                                                                                                          \
    X(CLASS7)                                                                                                          \
    X(CLASS8)                                                                                                          \
    X(CLASS9)                                                                                                          \
    X(CLASS10)                                                                                                         \
    X(WINOGRAD2) /* largest Winograd workspace of the class, over base */                                              \
    X(WINOGRAD3)                                                                                                       \
    X(WINOGRAD4)                                                                                                       \
    X(WINOGRAD5)                                                                                                       \
    X(WINOGRAD6)                                                                                                       \
    X(WINOGRAD7)                                                                                                       \
    X(WINOGRAD8)                                                                                                       \
    X(WINOGRAD9)                                                                                                       \
    X(WINOGRAD10)

enum feature {
#define X(NAME) FEATURE_##NAME,
    FEATURES(X)
#undef X
        FEATURE_COUNT
};
extern const char *const feature_names[FEATURE_COUNT];

/* About the context of the runs that the trees learned from, part of the base on every machine. */
#define FEATURES_CONTEXT_BYTES (INT64_C(1690) << 20)

struct features {
    float values[FEATURE_COUNT];                /* all finite */
    struct replay_result replays[REPLAY_COUNT]; /* on a GPU without limit */
    enum features_replay base;                  /* which it is made of */
    double base_bytes;  /* the trees' answer is ln(need / base), with FEATURES_CONTEXT_BYTES as context */
    bool out_of_memory; /* the base's replay, on this GPU and on any smaller one */
};

/* Without convolutions only REPLAY_MAIN is replayed and the others are its copies. */
void features_compute(struct features *features, const struct program *program, const struct machine_profile *profile);

/* The machine's addition to the allocator's reserve: the context, with cuDNN where there are convolutions. */
int64_t features_context_bytes(const struct program *program, const struct machine_profile *profile);

#endif
