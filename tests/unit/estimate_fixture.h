/* Builds layer lists and programs for the tests of lowering and replay. */
#ifndef CARMA_TESTS_ESTIMATE_FIXTURE_H
#define CARMA_TESTS_ESTIMATE_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "estimate/program/lower.h"
#include "estimate/program/replay.h"
#include "estimate/program/workspace.h"

struct model {
    struct layer_list list;
    struct training training;
    struct program program;
};

/* A model that takes `width` numbers per sample. */
static inline void model_init(struct model *model, int64_t width, int64_t batch_size)
{
    *model = (struct model){0};
    layer_list_init(&model->list);
    model->list.input[0] = width;
    model->list.input_rank = 1;
    model->list.connected = true;
    training_default(&model->training);
    model->training.batch_size = batch_size;
    model->training.optimizer = OPTIMIZER_SGD;
    program_init(&model->program);
}

static inline void model_release(struct model *model)
{
    program_release(&model->program);
    layer_list_release(&model->list);
}

/* With an output of one dimension, and the layer before as its input (where `from` < -1). */
static inline struct layer *model_add(struct model *model, enum layer_kind kind, int64_t width, int64_t parameters,
                                      int32_t from)
{
    struct layer *layer = layer_list_add(&model->list, kind);
    int32_t before = (int32_t)model->list.count - 2;

    layer->shape[0] = width;
    layer->rank = 1;
    layer->shape_known = true;
    layer->parameters = parameters;
    snprintf(layer->name, sizeof layer->name, "%s-%d", layer_kind_name(kind), before + 1);
    while (from < -1 && before >= 0 && model->list.items[before].container)
        before--;
    layer_add_input(layer, from < -1 ? before : from);
    return layer;
}

#define BEFORE (-2)

/* Replaces the program. */
static inline int model_lower_or(struct model *model, struct error *err)
{
    program_release(&model->program);
    return program_lower(&model->program, &model->list, &model->training, err);
}

static inline int model_lower(struct model *model)
{
    return model_lower_or(model, NULL);
}

/* Bytes taken in a step (-1: in any) for a layer (NULL: all) in a phase and category. */
static inline int64_t taken(const struct model *model, int step, const char *label, enum program_phase phase,
                            enum memory_category category)
{
    const struct program *program = &model->program;
    int64_t bytes = 0;

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->op == PROGRAM_ALLOC && (step < 0 || event->step == step) && event->phase == phase &&
            event->category == category && (!label || strcmp(program->labels[event->label], label) == 0))
            bytes += event->bytes;
    }
    return bytes;
}

/* One algorithm for each pass. */
static inline struct workspace_rule rule_of(enum workspace_algorithm forward, enum workspace_algorithm backward_data,
                                            enum workspace_algorithm backward_weight)
{
    struct workspace_rule rule;
    size_t each = sizeof rule.algorithm / 3;

    memset((uint8_t *)rule.algorithm, (int)forward, each);
    memset((uint8_t *)rule.algorithm + each, (int)backward_data, each);
    memset((uint8_t *)rule.algorithm + 2 * each, (int)backward_weight, each);
    return rule;
}

static inline struct replay_result replay_with(const struct program *program, struct workspace_rule rule, int64_t limit)
{
    struct replay_result result;

    program_replay(program, &(struct replay_options){rule, limit}, &result);
    return result;
}

#endif
