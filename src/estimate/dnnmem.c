/* DNNMem (Gao et al., "Estimating GPU Memory Consumption of Deep Learning Models", ESEC/FSE 2020). It goes through the
 * operators of the model's graph in their order, forward and then backward. Each has the static sizes of its tensors:
 * weights and their gradients, outputs and their gradients. A tensor takes memory from its operator until the last that
 * reads it; for a trained model that is the operator's own backward pass. Living tensors go through the framework's
 * allocator, and the most that this reserves is added to the CUDA context.
 *
 * In ours each layer of a summary is an operator, a tensor has 4 bytes for each element, and the allocator is the
 * replay's. The paper asks cuDNN for the workspace of each convolution; before a GPU is there it is left out. `replay`
 * knows more of PyTorch: the tensors that autograd really keeps, its temporaries, autocast, the optimizer's states, and
 * cuDNN's workspace by measurements. */
#include <errno.h>

#include "base/memory.h"
#include "estimate/counts.h"

#define ELEMENT_BYTES 4.0

struct graph {
    const struct layer_list *list;
    double batch;
    struct program program;
    struct program_event at;
    uint32_t *outputs, *gradients; /* tensors by layer, owned; NONE */
};

enum { NONE = UINT32_MAX };

static uint32_t take(struct graph *graph, double elements, enum memory_category category)
{
    struct program_event event = graph->at;

    event.bytes =
        elements * ELEMENT_BYTES < (double)PROGRAM_MAX_BYTES ? (int64_t)(elements * ELEMENT_BYTES) : PROGRAM_MAX_BYTES;
    event.category = category;
    return program_alloc(&graph->program, event);
}

static void give(struct graph *graph, uint32_t *tensor)
{
    if (*tensor != NONE)
        program_free(&graph->program, *tensor, graph->at);
    *tensor = NONE;
}

/* `copies` elements for each trained parameter. */
static void take_for_parameters(struct graph *graph, int copies, enum memory_category category)
{
    for (size_t i = 0; i < graph->list->count; i++)
        for (int k = 0; k < copies && !graph->list->items[i].container && graph->list->items[i].parameters > 0; k++)
            take(graph, (double)graph->list->items[i].parameters, category);
}

static double output_elements(const struct graph *graph, size_t layer)
{
    return graph->batch * (double)layer_elements(&graph->list->items[layer]);
}

static bool has_output(const struct graph *graph, size_t layer)
{
    const struct layer *it = &graph->list->items[layer];

    return !it->container && it->shape_known && !it->in_place && it->kind != LAYER_RESHAPE &&
           it->kind != LAYER_IDENTITY && it->kind != LAYER_PARAMETER;
}

static void forward(struct graph *graph)
{
    graph->at.phase = PHASE_FORWARD;
    for (size_t i = 0; i < graph->list->count; i++)
        if (has_output(graph, i))
            graph->outputs[i] = take(graph, output_elements(graph, i), MEMORY_ACTIVATION);
}

static void take_gradient(struct graph *graph, size_t layer)
{
    if (has_output(graph, layer) && graph->gradients[layer] == NONE)
        graph->gradients[layer] = take(graph, output_elements(graph, layer), MEMORY_TEMPORARY);
}

static void backward(struct graph *graph, bool first)
{
    graph->at.phase = PHASE_BACKWARD;
    for (size_t i = graph->list->count; i-- > 0;) {
        const struct layer *layer = &graph->list->items[i];
        if (layer->container)
            continue;
        take_gradient(graph, i);
        if (first && layer->parameters > 0)
            take(graph, (double)layer->parameters, MEMORY_GRADIENT);
        for (uint32_t k = 0; k < layer->input_count; k++)
            if (layer->inputs[k] >= 0)
                take_gradient(graph, (size_t)layer->inputs[k]);
        give(graph, &graph->gradients[i]);
        give(graph, &graph->outputs[i]);
    }
}

static void train(struct graph *graph, enum optimizer optimizer)
{
    static const int states[OPTIMIZER_COUNT] = {
        [OPTIMIZER_MOMENTUM] = 1, [OPTIMIZER_ADAM] = 2, [OPTIMIZER_ADAMW] = 2, [OPTIMIZER_ADAMW_FUSED] = 2};
    double input = graph->batch;

    take_for_parameters(graph, 1, MEMORY_PARAMETER);
    for (int i = 0; i < graph->list->input_rank; i++)
        input *= (double)graph->list->input[i];
    take(graph, input, MEMORY_INPUT);
    for (uint8_t step = 1; step <= 2; step++) {
        graph->at.step = step;
        forward(graph);
        backward(graph, step == 1);
        graph->at.phase = PHASE_OPTIMIZER;
        if (step == 1)
            take_for_parameters(graph, states[optimizer], MEMORY_OPTIMIZER);
    }
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct graph graph = {.list = question->layers, .batch = (double)question->training.batch_size};
    struct replay_options options = {.rule = workspace_rule_by_pass(WORKSPACE_NONE, WORKSPACE_NONE, WORKSPACE_NONE)};
    struct replay_result result;
    struct layer_counts counts;
    int rc;

    if (!graph.list)
        return error_set(err, ENOTSUP, "dnnmem needs the operators with their shapes: give the model's summary");
    if ((rc = layer_counts_of(question, &counts, err)))
        return rc;
    program_init(&graph.program);
    graph.outputs = xcalloc(graph.list->count, sizeof *graph.outputs);
    graph.gradients = xcalloc(graph.list->count, sizeof *graph.gradients);
    for (size_t i = 0; i < graph.list->count; i++)
        graph.outputs[i] = graph.gradients[i] = NONE;
    train(&graph, question->training.optimizer);
    program_replay(&graph.program, &options, &result);
    rc = estimate_from_formula("dnnmem", (double)result.peak_reserved_bytes + (double)question->profile->context_bytes,
                               estimate, err);
    free(graph.outputs);
    free(graph.gradients);
    program_release(&graph.program);
    return rc;
}

const struct estimator estimator_dnnmem = {
    "dnnmem", "static sizes of the operators' tensors through the allocator (Gao et al., 2020)", answer};
