/* Operator traces: their content, at which batch size, and refusals. */
#include "capture_fixture.h"

#define HEAD                                                                                                           \
    "carma-capture 1\n"                                                                                                \
    "torch 2.10.0\n"                                                                                                   \
    "mapping cuda\n"                                                                                                   \
    "model Net\n"
#define TRAINING                                                                                                       \
    "optimizer adam\n"                                                                                                 \
    "precision fp32\n"                                                                                                 \
    "parameters 4096\n"                                                                                                \
    "flops 100+200x\n"                                                                                                 \
    "elements 77\n"                                                                                                    \
    "counts 1 2 3 4 5 6 7\n"
#define TABLES                                                                                                         \
    "labels 2\n"                                                                                                       \
    "conv1\n"                                                                                                          \
    "head.fc\n"                                                                                                        \
    "convs 2\n"                                                                                                        \
    "f 4 0 1x 3 64 1 224,200 112,100 7,5 2,2 3,2 1,1\n"                                                                \
    "w 2 1 3+2x 8 16 4 9 18 3 2 0 1\n"
#define EVENTS                                                                                                         \
    "events 7 3\n"                                                                                                     \
    "step 0 setup\n"                                                                                                   \
    "@1 p4096\n"                                                                                                       \
    "step 1 forward\n"                                                                                                 \
    "a512+1000x c0 @2 t10x -2\n"                                                                                       \
    "step 2 backward\n"                                                                                                \
    "@0 c1 -0\n"                                                                                                       \
    "end\n"
#define GOOD HEAD "batch 8 scales\n" TRAINING TABLES EVENTS

static int read_text(const char *text, int64_t batch_size)
{
    capture_release(&capture);
    memset(&capture, 0xa5, sizeof capture); /* nothing of which may stay */
    return capture_read(&capture, "net.capture", text, strlen(text), batch_size, &trouble);
}

CAPTURE_TEST(says_what_was_recorded)
{
    const struct program *program = &capture.program;

    assert_int_equal(read_text(GOOD, 0), 0);
    assert_string_equal(capture.torch, "2.10.0");
    assert_string_equal(capture.mapping, "cuda");
    assert_string_equal(capture.model, "Net");
    assert_int_equal(capture.batch_size, 8);
    assert_true(capture.scales && capture.optimizer_known && capture.optimizer == OPTIMIZER_ADAM);
    assert_int_equal(capture.precision, PRECISION_FP32);
    assert_int_equal(program->parameter_bytes, 4096);
    assert_int_equal(program->flops, 1700);
    assert_int_equal(program->activation_elements, 77);
    assert_int_equal(program->layers * 1000000 + program->convolutions * 100000 + program->linears * 10000 +
                         program->norms * 1000 + program->dropouts * 100 + program->activations * 10 +
                         program->attentions,
                     1234567);
    assert_int_equal(program->batch_size, 8);
    assert_int_equal(program->tensor_count, 3);
    assert_int_equal(program->event_count, 7);
}

CAPTURE_TEST(doubts_are_kept)
{
    assert_int_equal(read_text(GOOD, 0), 0);
    assert_int_equal(capture.doubt_permille, 0);
    assert_int_equal(read_text(HEAD "batch 8 scales\n" TRAINING "doubts 250 steps differ\n" TABLES EVENTS, 0), 0);
    assert_int_equal(capture.doubt_permille, 250);
    assert_string_equal(capture.doubts, "steps differ");
    assert_int_equal(read_text(HEAD "batch 8\n" TRAINING "doubts 1001 much\n" TABLES EVENTS, 0), -EINVAL);
}

CAPTURE_TEST(events_are_in_their_place)
{
    static const struct program_event expected[] = {
        {PROGRAM_ALLOC, MEMORY_PARAMETER, PHASE_SETUP, 0, 0, 1, 4096},
        {PROGRAM_ALLOC, MEMORY_ACTIVATION, PHASE_FORWARD, 1, 1, 1, 512 + 8000},
        {PROGRAM_CONV, MEMORY_WORKSPACE, PHASE_FORWARD, 1, 0, 1, 0},
        {PROGRAM_ALLOC, MEMORY_TEMPORARY, PHASE_FORWARD, 1, 2, 2, 80},
        {PROGRAM_FREE, 0, PHASE_FORWARD, 1, 2, 2, 0},
        {PROGRAM_CONV, MEMORY_WORKSPACE, PHASE_BACKWARD, 2, 1, 0, 0},
        {PROGRAM_FREE, 0, PHASE_BACKWARD, 2, 0, 0, 0},
    };

    assert_int_equal(read_text(GOOD, 0), 0);
    assert_int_equal(capture.program.event_count, array_size(expected));
    for (size_t i = 0; i < array_size(expected); i++) {
        const struct program_event *event = &capture.program.events[i], *want = &expected[i];
        assert_int_equal(event->op, want->op);
        if (event->op != PROGRAM_FREE)
            assert_int_equal(event->category, want->category);
        assert_int_equal(event->phase, want->phase);
        assert_int_equal(event->step, want->step);
        assert_int_equal(event->tensor, want->tensor);
        assert_int_equal(event->label, want->label);
        assert_int_equal(event->bytes, want->bytes);
    }
    assert_string_equal(capture.program.labels[1], "conv1");
    assert_string_equal(capture.program.labels[2], "head.fc");
}

CAPTURE_TEST(convolutions_have_their_geometry)
{
    assert_int_equal(read_text(GOOD, 0), 0);
    assert_int_equal(capture.program.conv_count, 2);
    const struct program_conv *conv = &capture.program.convs[0];
    assert_true(conv->pass == CONV_FORWARD && conv->element_bytes == 4 && !conv->transposed);
    assert_true(conv->rank == 2 && conv->step == 1 && conv->batch == 8);
    assert_true(conv->in_channels == 3 && conv->out_channels == 64 && conv->groups == 1);
    assert_int_equal(conv->in[0] * 1000 + conv->in[1], 224200);
    assert_int_equal(conv->out[0] * 1000 + conv->out[1], 112100);
    assert_int_equal(conv->kernel[0] * 10 + conv->kernel[1], 75);
    assert_int_equal(conv->stride[0] * 10 + conv->stride[1], 22);
    assert_int_equal(conv->padding[0] * 10 + conv->padding[1], 32);
    assert_int_equal(conv->dilation[0] * 10 + conv->dilation[1], 11);
    conv = &capture.program.convs[1];
    assert_true(conv->pass == CONV_BACKWARD_WEIGHT && conv->element_bytes == 2 && conv->transposed);
    assert_true(conv->rank == 1 && conv->step == 2 && conv->batch == 3 + 2 * 8 && conv->groups == 4);
    assert_int_equal(conv->in[0] * 100 + conv->out[0], 918);
}

CAPTURE_TEST(any_batch_size_where_it_scales)
{
    assert_int_equal(read_text(GOOD, 100), 0);
    assert_int_equal(capture.batch_size, 100);
    assert_int_equal(capture.program.batch_size, 100);
    assert_int_equal(capture.program.events[1].bytes, 512 + 100000);
    assert_int_equal(capture.program.events[0].bytes, 4096);
    assert_int_equal(capture.program.convs[0].batch, 100);
    assert_int_equal(capture.program.flops, 20100);

    assert_int_equal(read_text(HEAD "batch 8\n", 100), -EINVAL);
    assert_string_equal(trouble.text,
                        "net.capture:5: recorded for batch size 8 alone, not for 100: record it with that one");
    assert_int_equal(read_text(HEAD "batch 8\n" TRAINING TABLES EVENTS, 8), -EINVAL);
    assert_string_equal(trouble.text,
                        "net.capture:9: '100+200x' is not possible: this capture does not scale with the batch size");
}

CAPTURE_TEST(its_trainings_are_named)
{
    char text[sizeof GOOD + 64];

    snprintf(text, sizeof text, "%sbatch 8 scales\noptimizer lion\nprecision half\n%s", HEAD,
             strstr(GOOD, "parameters 4096"));
    assert_int_equal(read_text(text, 0), 0);
    assert_false(capture.optimizer_known);
    assert_int_equal(capture.precision, PRECISION_AMP);
}

/* GOOD with its first `old` replaced by `new` is refused on that line with that text. */
static void refused(const char *old, const char *new, unsigned line, const char *expected)
{
    char text[sizeof GOOD + 256], message[600];
    const char *at = strstr(GOOD, old);

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, new, at + strlen(old));
    assert_int_equal(read_text(text, 0), -EINVAL);
    snprintf(message, sizeof message, "net.capture:%u: %s", line, expected);
    assert_string_equal(trouble.text, message);
    assert_null(capture.program.events);
    assert_null(capture.program.labels);
}

TEST(contradictions_are_refused)
{
    refused(" -2\n", " -3\n", 22, "tensor 3 is freed before it is allocated");
    refused("-2\n", "-2 -2\n", 22, "tensor 2 is freed twice");
    refused("@2", "@3", 22, "there is no label 3");
    refused("c0", "c2", 22, "there is no convolution 2");
    refused("t10x", "t10x t1", 22, "more tensors than the 3 announced");
    refused("-0\n", "-0 c1\n", 25, "7 events and 3 tensors are announced, there are 8 and 3");
    refused(" -0", "", 25, "7 events and 3 tensors are announced, there are 6 and 3");
    refused("end\n", "end\nend\n", 25, "something follows the line 'end'");
    refused("labels 2", "labels 3", 16, "'convs' is expected here");
    refused("labels 2", "labels 1000000", 12, "labels: more than the file has lines");
    refused("convs 2", "convs 3", 18, "a convolution begins with f, d or w");
    refused("events 7 3", "events 7 4000000", 18, "events: more tensors than the file has bytes");
    refused("9 18 3 2 0 1", "9 18 3,3 2 0 1", 17, "a convolution of 1 dimensions has one with 2");
    refused("9 18 3 2 0 1", "9 18 0 2 0 1", 17, "a convolution's size, kernel, stride and dilation are at least 1");
    refused("224,200", "1,1,1,1", 16, "a convolution has at most 3 dimensions");
    refused("3 64 1", "3 0 1", 16, "a convolution's channels, groups and element size are at least 1");
}

TEST(broken_files_are_refused)
{
    refused("end\n", "", 25, "the file is cut short here: its last line is 'end'; record it again");
    refused("end\n", "en", 25, "the file is cut short here: its last line is 'end'; record it again");
    refused("carma-capture 1", "carma-capture 2", 1, "version 2 of the format: this carma reads version 1");
    refused("carma-capture 1", "{}", 1, "'carma-capture' is expected here");
    refused("model Net", "model N\x1b[2J", 4, "column 8 is not printable ASCII");
    refused("mapping cuda", "mapping: cuda", 3, "'mapping' is expected here");
    refused("batch 8", "batch 0", 5, "batch: at least 1");
    refused("batch 8 scales", "batch 8 scale", 5, "'scale' is not expected on this line");
    refused("precision fp32", "precision int8", 7, "precision 'int8' is not one of fp32, tf32, amp, half");
    refused("counts 1 2 3 4 5 6 7", "counts 1 2 3 4 5 6", 11, "the line is too short");
    refused("step 2 backward", "step 2 back", 23, "a phase is setup, forward, backward or optimizer");
    refused("p4096", "q4096", 20, "'q' begins no event");
    refused("p4096", "p", 20, "'' is not a size: BASE, SLOPEx or BASE+SLOPEx");
    refused("conv1\n", "\n", 13, "an empty label");
}

TEST(sizes_do_not_overflow)
{
    refused("p4096", "p1099511627777", 20, "'1099511627777' is not a size: BASE, SLOPEx or BASE+SLOPEx");
    refused("p4096", "p137438953473x", 20, "'137438953473x' at batch size 8 is more than 1099511627776");
    refused("flops 100+200x", "flops 9223372036854775807x", 9,
            "'9223372036854775807x' at batch size 8 is more than 9223372036854775807");
    refused("flops 100+200x", "flops 9223372036854775807+1x", 9,
            "'9223372036854775807+1x' at batch size 8 is more than 9223372036854775807");
}

/* Written by python/carma (python/tests/test_capture.py writes it again). */
CAPTURE_TEST(golden_is_read)
{
    CLEANUP(free_ptr) char *text = file_text(CARMA_GOLDEN "/model.capture");

    assert_int_equal(capture_read(&capture, "model.capture", text, strlen(text), 32, &trouble), 0);
    assert_int_equal(capture.batch_size, 32);
    assert_int_equal(capture.program.convolutions, 2);
    assert_int_equal(capture.program.linears, 1);
}
