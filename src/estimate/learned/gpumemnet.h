/* GPUMemNet (thesis 5.4.4): which class of memory a network's training falls into. Two kinds of classifier per family:
 * an ensemble of 13 small MLPs over summary features, and a transformer encoder. The encoder also takes the layers as
 * tuples. python/carma_train trains them; data/models/gpumemnet.md has their figures. */
#ifndef CARMA_ESTIMATE_GPUMEMNET_H
#define CARMA_ESTIMATE_GPUMEMNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "estimate/layers.h"

enum gpumemnet_family { GPUMEMNET_MLP, GPUMEMNET_CNN, GPUMEMNET_TRANSFORMER, GPUMEMNET_FAMILY_COUNT };
enum gpumemnet_kind { GPUMEMNET_ENSEMBLE, GPUMEMNET_ENCODER, GPUMEMNET_KIND_COUNT };
extern const char *const gpumemnet_family_names[GPUMEMNET_FAMILY_COUNT]; /* "mlp", "cnn", "transformer" */
extern const char *const gpumemnet_kind_names[GPUMEMNET_KIND_COUNT];     /* "ensemble", "encoder" */

enum gpumemnet_feature {
    GPUMEMNET_DEPTH, /* tuples */
    GPUMEMNET_LINEAR,
    GPUMEMNET_CONV,
    GPUMEMNET_NORM,
    GPUMEMNET_DROPOUT,
    GPUMEMNET_BATCH,       /* this and the sizes below: natural logarithms */
    GPUMEMNET_PARAMETERS,  /* of all tuples */
    GPUMEMNET_ACTIVATIONS, /* output elements per sample, of all tuples */
    GPUMEMNET_COS,         /* of the activation function that the network has most of: its place on a circle */
    GPUMEMNET_SIN,
    GPUMEMNET_ACTIVATIONS_BATCH,
    GPUMEMNET_FEATURE_COUNT
};

#define GPUMEMNET_TYPE_COUNT 17 /* of a tuple; gpumemnet_input.c lists them */

/* How many of them networks of this family can have: the first ones. */
size_t gpumemnet_type_count(enum gpumemnet_family family);

struct gpumemnet_tuple {
    double activations, parameters; /* elements, activations per sample */
    uint8_t type;
};

/* A network as the classifiers see it. */
struct gpumemnet_input {
    enum gpumemnet_family family;
    struct gpumemnet_tuple *tuples; /* owned */
    size_t count, capacity;
    double features[GPUMEMNET_FEATURE_COUNT];
    uint32_t unmanaged; /* layers of kinds, or with unknown shapes, that the training data do not have */
};

/* Inits *input. -ENOTSUP with one line where the family has no classifier, -EINVAL where batch_size < 1; *input is then
 * empty. */
int gpumemnet_input_read(struct gpumemnet_input *input, const struct layer_list *layers, int64_t batch_size,
                         struct error *err);
void gpumemnet_input_release(struct gpumemnet_input *input);

#define GPUMEMNET_MAX_CLASSES 16
#define GPUMEMNET_MAX_TUPLES  512 /* the encoder's time grows with their square; the data have 392 at most */

struct gpumemnet_classes {
    uint32_t count, best; /* best: the most probable one */
    float logits[GPUMEMNET_MAX_CLASSES], probabilities[GPUMEMNET_MAX_CLASSES];
    int64_t first, width_bytes; /* class c holds memory from (first + c) * width to (first + c + 1) * width */
    bool out_of_memory_last;    /* the last class: it did not fit the A100 40 GB of the training data */
    bool outside;               /* a feature lies outside the range of the training data */
};

/* Of the memory that runs of a class take; the class of out of memory has no upper end: both give its lower one. */
int64_t gpumemnet_class_upper_bytes(const struct gpumemnet_classes *classes, uint32_t index);
int64_t gpumemnet_class_centre_bytes(const struct gpumemnet_classes *classes, uint32_t index);

/* fold: -1, or 0 to 4: the model that has not seen the rows of that fold. -ENOTSUP: more tuples than the encoder takes.
 */
int gpumemnet_classify(const struct gpumemnet_input *input, enum gpumemnet_kind kind, int32_t fold,
                       struct gpumemnet_classes *classes, struct error *err);

/* The kind that gives the estimator's answer (data/models/gpumemnet.md says why). */
enum gpumemnet_kind gpumemnet_answering_kind(enum gpumemnet_family family);

#endif
