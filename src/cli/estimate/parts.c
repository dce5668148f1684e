/* The parts of an estimate's bytes: the categories of the replay at its peak, the saved activations by layer. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/estimate/estimate.h"
#include "estimate/program/lower.h"

#define LAYERS_SHOWN 10

static void add(struct estimate_parts *parts, const char *name, int64_t bytes, bool layer)
{
    array_reserve(parts->items, parts->capacity, parts->count + 1);
    parts->items[parts->count++] = (struct estimate_part){.name = xstrdup(name), .bytes = bytes, .layer = layer};
}

void estimate_parts_release(struct estimate_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        free(parts->items[i].name);
    free(parts->items);
    *parts = (struct estimate_parts){0};
}

struct share {
    size_t number; /* of its label: in the order of execution */
    int64_t bytes;
};

static int larger_first(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->number < y->number ? -1 : 1;
}

/* The layer's name in the user's summary: "1-3 (LSTM)"; torchsummary's "Conv2d-1" has its type in the name. */
static char *layer_title(const struct layer_list *layers, const char *label)
{
    if (!*label)
        return xstrdup("(of no layer)");
    for (size_t i = 0; layers && i < layers->count; i++) {
        const struct layer *layer = &layers->items[i];
        if (strcmp(layer->name, label) == 0 && *layer->type && strncmp(label, layer->type, strlen(layer->type)) != 0)
            return xasprintf("%s (%s)", label, layer->type);
    }
    return xstrdup(label);
}

/* The saved activations that are allocated at the peak, summed by label. */
static void add_layers(struct estimate_parts *parts, const struct program *program, uint32_t peak_event,
                       const struct layer_list *layers)
{
    static const char *const phases[PHASE_COUNT] = {
        [PHASE_SETUP] = "before the first step",
        [PHASE_FORWARD] = "in the forward pass",
        [PHASE_BACKWARD] = "in the backward pass",
        [PHASE_OPTIMIZER] = "in the optimizer's step",
    };
    CLEANUP(free_ptr) struct share *shares = xcalloc(program->label_count + 1, sizeof *shares);
    CLEANUP(free_ptr) uint32_t *born = xcalloc((size_t)program->tensor_count + 1, sizeof *born);
    int64_t others = 0;
    size_t count = 0;

    if (peak_event < program->event_count)
        parts->when = phases[program->events[peak_event].phase];
    for (size_t i = 0; i < program->label_count; i++)
        shares[i].number = i;
    for (uint32_t i = 0; i <= peak_event && i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->op == PROGRAM_ALLOC) {
            born[event->tensor] = i;
            shares[event->label].bytes += event->category == MEMORY_ACTIVATION ? event->bytes : 0;
        } else if (event->op == PROGRAM_FREE) {
            const struct program_event *birth = &program->events[born[event->tensor]];
            shares[birth->label].bytes -= birth->category == MEMORY_ACTIVATION ? birth->bytes : 0;
        }
    }
    qsort(shares, program->label_count, sizeof *shares, larger_first);
    while (count < program->label_count && shares[count].bytes > 0)
        count++;
    for (size_t i = 0; i < count; i++) {
        CLEANUP(free_ptr) char *title = NULL;
        if (i >= LAYERS_SHOWN) {
            others += shares[i].bytes;
            continue;
        }
        title = layer_title(layers, program->labels[shares[i].number]);
        add(parts, title, shares[i].bytes, true);
    }
    if (count > LAYERS_SHOWN) {
        CLEANUP(free_ptr) char *name = xasprintf("%zu others", count - LAYERS_SHOWN);
        add(parts, name, others, true);
    }
}

static void add_activations(struct estimate_parts *parts, const struct estimate_input *input,
                            const struct estimate *estimate)
{
    struct program program;
    struct error err;

    add(parts, "saved activations", estimate->parts[MEMORY_ACTIVATION], false);
    if (input->has_capture) {
        add_layers(parts, &input->capture.program, estimate->peak_event, NULL);
        return;
    }
    if (program_lower(&program, &input->summary.layers, &input->question.training, &err) == 0)
        add_layers(parts, &program, estimate->peak_event, &input->summary.layers);
    program_release(&program);
}

void estimate_parts_of(struct estimate_parts *parts, const struct estimate_input *input,
                       const struct estimate_answer *answer)
{
    static const struct {
        enum memory_category category;
        const char *name;
    } before[] = {{MEMORY_PARAMETER, "parameters"}, {MEMORY_GRADIENT, "gradients"}, {MEMORY_OPTIMIZER, "optimizer"}},
      after[] = {{MEMORY_INPUT, "input"},
                 {MEMORY_BUFFER, "buffers"},
                 {MEMORY_TEMPORARY, "temporary"},
                 {MEMORY_WORKSPACE, "workspace"}};
    const struct estimate *e = &answer->estimate;

    *parts = (struct estimate_parts){0};
    if (!e->has_parts)
        return;
    for (size_t i = 0; i < array_size(before); i++)
        add(parts, before[i].name, e->parts[before[i].category], false);
    add_activations(parts, input, e);
    for (size_t i = 0; i < array_size(after); i++)
        add(parts, after[i].name, e->parts[after[i].category], false);
    add(parts, "fragmentation", e->fragmentation_bytes, false);
    add(parts, "context and libraries", e->context_bytes, false);
    add(parts, "correction", e->correction_bytes, false);
    add(parts, "margin", e->bytes - e->median_bytes, false);
}
