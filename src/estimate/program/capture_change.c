/* A recorded training that was another: its optimizer, its loader, and how cuDNN chooses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "estimate/program/capture.h"
#include "estimate/program/lowering.h"

struct rewrite {
    const struct capture_changes *changes;
    const struct program *from;
    struct program to;
    struct tape tape;  /* writes the other optimizer's steps into `to` */
    uint32_t *numbers; /* owned; by tensor of `from`: its number in `to`, or LEFT_OUT */
    uint8_t *first;    /* owned; by number of a convolution: it is the first of its kind */
    int32_t steps;     /* done so far */
    bool ahead;        /* further images are there */
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
    tape->parameters[tape->parameter_count++] = (struct tape_parameter){
        .label = event->label, .element_bytes = FULL_BYTES, .elements = (event->bytes + FULL_BYTES - 1) / FULL_BYTES};
}

/* Parameters in their order, as far as there are gradients of their size. A recording does not say which of several of
 * one size is frozen, and it makes no difference. */
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

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_kinds(const struct program_conv *a, const struct program_conv *b)
{
    const int64_t of_a[] = {a->pass,  a->transposed,  a->element_bytes, a->rank,
                            a->batch, a->in_channels, a->out_channels,  a->groups};
    const int64_t of_b[] = {b->pass,  b->transposed,  b->element_bytes, b->rank,
                            b->batch, b->in_channels, b->out_channels,  b->groups};
    const int32_t *const sizes_a[] = {a->in, a->out, a->kernel, a->stride, a->padding, a->dilation};
    const int32_t *const sizes_b[] = {b->in, b->out, b->kernel, b->stride, b->padding, b->dilation};
    int order = 0;

    for (size_t i = 0; i < array_size(of_a) && !order; i++)
        order = compare_numbers(of_a[i], of_b[i]);
    for (size_t i = 0; i < array_size(sizes_a) && !order; i++)
        order = memcmp(sizes_a[i], sizes_b[i], sizeof a->in);
    return order;
}

/* By kind, then by place: they lie in one array. */
static int compare_convs(const void *left, const void *right)
{
    const struct program_conv *a = *(const struct program_conv *const *)left,
                              *b = *(const struct program_conv *const *)right;
    int order = compare_kinds(a, b);

    return order ? order : (a > b) - (a < b);
}

/* By number of the program's convolutions: whether it is the first of its kind. Depthwise ones are not cuDNN's. */
static uint8_t *first_of_kinds(const struct program *program)
{
    size_t count = program->conv_count;
    CLEANUP(free_ptr) const struct program_conv **convs = xcalloc(count + 1, sizeof *convs);
    uint8_t *first = xcalloc(count + 1, sizeof *first);

    for (size_t i = 0; i < count; i++)
        convs[i] = &program->convs[i];
    if (count)
        qsort(convs, count, sizeof *convs, compare_convs);
    for (size_t i = 0; i < count; i++) {
        const struct program_conv *conv = convs[i];
        bool depthwise = conv->groups > 1 && conv->groups == conv->in_channels;
        first[conv - program->convs] = !depthwise && (i == 0 || compare_kinds(convs[i - 1], conv) != 0);
    }
    return first;
}

/* The images come first in a step; fp32 of bytes. */
static void bring_ahead(struct rewrite *rewrite, const struct program_event *images)
{
    struct program_event event = {.category = MEMORY_INPUT, .phase = PHASE_SETUP, .bytes = images->bytes};

    program_alloc(&rewrite->to, event);
    program_alloc(&rewrite->to, event);
    event.bytes = images->bytes / FULL_BYTES;
    program_alloc(&rewrite->to, event);
}

static void copy_event(struct rewrite *rewrite, const struct program_event *event)
{
    bool leave_out = event->phase == PHASE_OPTIMIZER && rewrite->tape.parameter_count;

    switch (event->op) {
    case PROGRAM_ALLOC:
        if (rewrite->changes->prefetch && event->step && !rewrite->ahead) {
            bring_ahead(rewrite, event);
            rewrite->ahead = true;
        }
        rewrite->numbers[event->tensor] = leave_out ? LEFT_OUT : program_alloc(&rewrite->to, *event);
        break;
    case PROGRAM_FREE:
        if (rewrite->numbers[event->tensor] != LEFT_OUT)
            program_free(&rewrite->to, rewrite->numbers[event->tensor], *event);
        break;
    case PROGRAM_CONV:
        program_conv(&rewrite->to, &rewrite->from->convs[event->tensor], *event);
        if (rewrite->changes->cudnn_benchmark && rewrite->first[event->tensor])
            program_empty_cache(&rewrite->to, *event);
        break;
    default:
        program_empty_cache(&rewrite->to, *event);
    }
}

/* Steps count upwards; the optimizer's is the last of each, before later events. */
static int copy_events(struct rewrite *rewrite, struct error *err)
{
    const struct capture_changes *changes = rewrite->changes;
    const struct program *from = rewrite->from;

    for (size_t i = 0; i <= from->event_count; i++) {
        const struct program_event *event = i < from->event_count ? &from->events[i] : NULL;
        struct program_event *at = &rewrite->tape.at;
        if (at->step > rewrite->steps && (!event || event->step > at->step || event->phase == PHASE_SETUP)) {
            if (rewrite->tape.parameter_count)
                optimizer_step(&rewrite->tape, changes->optimizer, changes->weight_decay, rewrite->steps == 0);
            rewrite->steps = at->step;
        }
        if (rewrite->to.event_count > PROGRAM_MAX_EVENTS)
            return error_set(err, EINVAL, "with %s the training has more than %d events: too large a model",
                             optimizer_name(changes->optimizer), PROGRAM_MAX_EVENTS);
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

/* The change of the optimizer; the tape has no parameters where its steps stay as recorded. */
static int prepare_optimizer(struct rewrite *rewrite, const struct capture *capture, struct error *err)
{
    const struct capture_changes *changes = rewrite->changes;

    if (capture->optimizer_known && capture->optimizer == changes->optimizer && !changes->weight_decay)
        return 0;
    if (changes->optimizer == OPTIMIZER_ADAFACTOR)
        return error_set(
            err, ENOTSUP,
            "adafactor's states depend on shapes, which a capture does not have: record it with adafactor");
    find_trained(rewrite);
    if (!rewrite->tape.parameter_count)
        return error_set(err, ENOTSUP, "the capture has no gradients: there is nothing for an optimizer to do");
    return 0;
}

int capture_change(struct capture *capture, const struct capture_changes *changes, struct error *err)
{
    struct rewrite rewrite = {.from = &capture->program, .changes = changes};
    int rc;

    copy_head(&rewrite);
    tape_init(&rewrite.tape, &rewrite.to);
    rc = prepare_optimizer(&rewrite, capture, err);
    if (rc == 0) {
        rewrite.numbers = xcalloc((size_t)rewrite.from->tensor_count + 1, sizeof *rewrite.numbers);
        rewrite.first = first_of_kinds(rewrite.from);
        rc = copy_events(&rewrite, err);
    }
    tape_release(&rewrite.tape);
    free(rewrite.numbers);
    free(rewrite.first);
    if (rc) {
        program_release(&rewrite.to);
        return rc;
    }
    program_release(&capture->program);
    capture->program = rewrite.to;
    capture->optimizer = changes->optimizer;
    capture->optimizer_known = true;
    return 0;
}
