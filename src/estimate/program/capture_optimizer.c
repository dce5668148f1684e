/* A recorded training with another optimizer than it was recorded with. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "estimate/program/capture.h"
#include "estimate/program/lowering.h"

struct rewrite {
    const struct program *from;
    struct program to;
    struct tape tape;  /* writes the other optimizer's steps into `to` */
    uint32_t *numbers; /* owned; by tensor of `from`: its number in `to`, or LEFT_OUT */
    int32_t steps;     /* done so far */
};

#define LEFT_OUT UINT32_MAX

static int compare_bytes(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

/* The sizes of the first step's gradients, in ascending order. */
static int64_t *gradients_of(const struct program *program, size_t *count)
{
    int64_t *bytes = xcalloc((size_t)program->tensor_count + 1, sizeof *bytes);
    uint8_t step = 0;

    *count = 0;
    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        if (event->op != PROGRAM_ALLOC || event->category != MEMORY_GRADIENT || (*count && event->step != step))
            continue;
        step = event->step;
        bytes[(*count)++] = event->bytes;
    }
    if (*count)
        qsort(bytes, *count, sizeof *bytes, compare_bytes);
    return bytes;
}

/* The first of `count` ascending numbers that is not smaller. */
static size_t find(const int64_t *bytes, size_t count, int64_t wanted)
{
    size_t low = 0;

    while (count) {
        size_t half = count / 2;
        if (bytes[low + half] < wanted) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static void add_parameter(struct tape *tape, const struct program_event *event)
{
    array_reserve(tape->parameters, tape->parameter_capacity, tape->parameter_count + 1);
    tape->parameters[tape->parameter_count++] =
        (struct tape_parameter){.label = event->label, .elements = (event->bytes + FULL_BYTES - 1) / FULL_BYTES};
}

/* Parameters in their order, as far as there are gradients of their size: which of several of one size is frozen, a
 * recording does not say, and it makes no difference. */
static void find_trained(struct rewrite *rewrite)
{
    size_t count;
    CLEANUP(free_ptr) int64_t *gradients = gradients_of(rewrite->from, &count);
    CLEANUP(free_ptr) size_t *taken = xcalloc(count + 1, sizeof *taken); /* by the first gradient of the size */

    for (size_t i = 0; i < rewrite->from->event_count && count; i++) {
        const struct program_event *event = &rewrite->from->events[i];
        size_t first;
        if (event->op != PROGRAM_ALLOC || event->category != MEMORY_PARAMETER)
            continue;
        first = find(gradients, count, event->bytes);
        if (first == count || first + taken[first] >= count || gradients[first + taken[first]] != event->bytes)
            continue;
        taken[first]++;
        add_parameter(&rewrite->tape, event);
    }
}

static void copy_event(struct rewrite *rewrite, const struct program_event *event)
{
    switch (event->op) {
    case PROGRAM_ALLOC:
        rewrite->numbers[event->tensor] =
            event->phase == PHASE_OPTIMIZER ? LEFT_OUT : program_alloc(&rewrite->to, *event);
        break;
    case PROGRAM_FREE:
        if (rewrite->numbers[event->tensor] != LEFT_OUT)
            program_free(&rewrite->to, rewrite->numbers[event->tensor], *event);
        break;
    default:
        program_conv(&rewrite->to, &rewrite->from->convs[event->tensor], *event);
    }
}

/* Steps count upwards; the optimizer's is the last of each, before whatever follows. */
static int copy_events(struct rewrite *rewrite, enum optimizer optimizer, bool weight_decay, struct error *err)
{
    const struct program *from = rewrite->from;

    for (size_t i = 0; i <= from->event_count; i++) {
        const struct program_event *event = i < from->event_count ? &from->events[i] : NULL;
        struct program_event *at = &rewrite->tape.at;
        if (at->step > rewrite->steps && (!event || event->step > at->step || event->phase == PHASE_SETUP)) {
            optimizer_step(&rewrite->tape, optimizer, weight_decay, rewrite->steps == 0);
            rewrite->steps = at->step;
            if (rewrite->to.event_count > PROGRAM_MAX_EVENTS)
                return error_set(err, EINVAL, "with %s the training has more than %d events: too large a model",
                                 optimizer_name(optimizer), PROGRAM_MAX_EVENTS);
        }
        if (!event)
            break;
        if (event->step > at->step)
            at->step = event->step;
        copy_event(rewrite, event);
    }
    return 0;
}

static void copy_head(struct rewrite *rewrite)
{
    const struct program *from = rewrite->from;
    struct program *to = &rewrite->to;

    program_init(to);
    for (size_t i = 1; i < from->label_count; i++)
        program_label(to, from->labels[i]);
    to->batch_size = from->batch_size;
    to->parameter_bytes = from->parameter_bytes;
    to->flops = from->flops;
    to->layers = from->layers;
    to->convolutions = from->convolutions;
    to->linears = from->linears;
    to->norms = from->norms;
    to->dropouts = from->dropouts;
    to->activations = from->activations;
    to->attentions = from->attentions;
    to->activation_elements = from->activation_elements;
}

int capture_set_optimizer(struct capture *capture, enum optimizer optimizer, bool weight_decay, struct error *err)
{
    struct rewrite rewrite = {.from = &capture->program};
    int rc;

    if (capture->optimizer_known && capture->optimizer == optimizer && !weight_decay)
        return 0;
    if (optimizer == OPTIMIZER_ADAFACTOR)
        return error_set(
            err, ENOTSUP,
            "adafactor's states depend on shapes, which a capture does not have: record it with adafactor");
    copy_head(&rewrite);
    tape_init(&rewrite.tape, &rewrite.to);
    find_trained(&rewrite);
    rewrite.numbers = xcalloc((size_t)rewrite.from->tensor_count + 1, sizeof *rewrite.numbers);
    if (rewrite.tape.parameter_count)
        rc = copy_events(&rewrite, optimizer, weight_decay, err);
    else
        rc = error_set(err, ENOTSUP, "the capture has no gradients: there is nothing for an optimizer to do");
    tape_release(&rewrite.tape);
    free(rewrite.numbers);
    if (rc) {
        program_release(&rewrite.to);
        return rc;
    }
    program_release(&capture->program);
    capture->program = rewrite.to;
    capture->optimizer = optimizer;
    capture->optimizer_known = true;
    return 0;
}
