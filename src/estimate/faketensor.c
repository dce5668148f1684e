/* The memory that PyTorch's fake tensors give (thesis section 5.3.2): the most bytes that a training step's tensors
 * have at once. Each is as large as its elements, in forward and backward. It counts neither context, libraries and
 * allocator, nor the memory from before the step: parameters, buffers and the optimizer's states.
 *
 * The published `faketensor_mb` of real_models.csv turns out to be this: it grows with the batch size by the tensors
 * saved for backward. The remainder for an empty batch is the classifier's gradient (4.9 MiB of EfficientNet-B0, 7.8 of
 * ResNet-50), not the parameters. VGG-16's shows that a gradient is there twice while it is accumulated (its largest
 * has 392 MiB). An observer of fake tensors holds references to them, so autograd copies a tensor that it would else
 * have taken over. With that the figures of 18 CNNs are met within 2%. Inception's three, published for images of 224 x
 * 224, are met within 11%: its summary does not list the pooling that is a function. */
#include <errno.h>

#include "base/memory.h"
#include "estimate/counts.h"

static bool counts(uint8_t category)
{
    return category != MEMORY_PARAMETER && category != MEMORY_BUFFER && category != MEMORY_OPTIMIZER &&
           category != MEMORY_WORKSPACE;
}

static double peak_of(const struct program *program)
{
    CLEANUP(free_ptr) int64_t *bytes = xcalloc((size_t)program->tensor_count + 1, sizeof *bytes);
    double now = 0, peak = 0;

    for (size_t i = 0; i < program->event_count; i++) {
        const struct program_event *event = &program->events[i];
        double copy = 0;
        if (event->op == PROGRAM_ALLOC && counts(event->category)) {
            bytes[event->tensor] = event->bytes;
            now += (double)event->bytes;
            copy = event->category == MEMORY_GRADIENT ? (double)event->bytes : 0;
        } else if (event->op == PROGRAM_FREE) {
            now -= (double)bytes[event->tensor];
            bytes[event->tensor] = 0;
        }
        if ((event->phase == PHASE_FORWARD || event->phase == PHASE_BACKWARD) && now + copy > peak)
            peak = now + copy;
    }
    return peak;
}

static int answer(const struct estimate_question *question, struct estimate *estimate, struct error *err)
{
    struct program program;
    int rc;

    if (question->capture)
        return estimate_from_formula("faketensor", peak_of(&question->capture->program), estimate, err);
    if (!question->layers)
        return error_set(err, ENOTSUP, "faketensor needs the model: give a capture or its summary");
    rc = program_lower(&program, question->layers, &question->training, err);
    if (rc == 0)
        rc = estimate_from_formula("faketensor", peak_of(&program), estimate, err);
    program_release(&program);
    return rc;
}

const struct estimator estimator_faketensor = {
    "faketensor", "the step's tensors alone, without context, parameters and allocator (PyTorch's fake tensors)",
    answer};
