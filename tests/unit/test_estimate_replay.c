/* Programs, their replay and the rules for workspaces. */
#include "unit.h"

#include "estimate_fixture.h"
#include "program_fixture.h"

static const struct workspace_rule no_workspace = {0};

static struct replay_result result;

static uint32_t take(int64_t bytes, enum memory_category category)
{
    return program_alloc(&program, (struct program_event){.bytes = bytes, .category = (uint8_t)category});
}

static void give(uint32_t tensor)
{
    program_free(&program, tensor, (struct program_event){0});
}

PROGRAM_TEST(labels_have_one_number_each)
{
    char text[16];

    assert_int_equal(program_label(&program, ""), 0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= 1000; i++) {
            snprintf(text, sizeof text, "layer %u", i);
            assert_int_equal(program_label(&program, text), i);
            assert_string_equal(program.labels[i], text);
        }
    }
    assert_int_equal(program.label_count, 1001);
    assert_int_equal(program_label(&program, ""), 0);
}

PROGRAM_TEST(peak_names_what_was_there_when_most_was_allocated)
{
    uint32_t weight = take(3 * MIB, MEMORY_PARAMETER); /* of 20 MiB */
    uint32_t activation = take(100 * MIB, MEMORY_ACTIVATION);
    give(activation);
    take(60 * MIB, MEMORY_GRADIENT);  /* 40 MiB of the 100 stay free */
    take(30 * MIB, MEMORY_OPTIMIZER); /* from them */
    take(41 * MIB, MEMORY_TEMPORARY); /* a segment of 42 */
    take(100, MEMORY_BUFFER);         /* and of 2: most is reserved */
    give(weight);
    take(5 * MIB, MEMORY_INPUT); /* most is allocated */
    result = replay_with(&program, no_workspace, 0);
    assert_int_equal(result.peak_reserved_bytes, (20 + 100 + 42 + 2) * MIB);
    assert_int_equal(result.peak_event, 8);
    assert_int_equal(result.at_peak[MEMORY_PARAMETER], 0);
    assert_int_equal(result.at_peak[MEMORY_ACTIVATION], 0);
    assert_int_equal(result.at_peak[MEMORY_GRADIENT], 60 * MIB);
    assert_int_equal(result.at_peak[MEMORY_OPTIMIZER], 30 * MIB);
    assert_int_equal(result.at_peak[MEMORY_TEMPORARY], 41 * MIB);
    assert_int_equal(result.at_peak[MEMORY_BUFFER], 100);
    assert_int_equal(result.at_peak[MEMORY_INPUT], 5 * MIB);
    /* A rest of up to 1 MiB stays with a large block. */
    assert_int_equal(result.peak_allocated_bytes, (3 + 60 + 30 + 42) * MIB + 512 + 2 * MIB);
    assert_false(result.out_of_memory);
}

PROGRAM_TEST(full_gpu_gives_cached_segments_back)
{
    give(take(64 * MIB, MEMORY_ACTIVATION));
    give(take(80 * MIB, MEMORY_ACTIVATION));
    take(90 * MIB, MEMORY_ACTIVATION);
    assert_int_equal(replay_with(&program, no_workspace, 0).peak_reserved_bytes, 234 * MIB);
    result = replay_with(&program, no_workspace, 200 * MIB);
    assert_int_equal(result.peak_reserved_bytes, 144 * MIB);
    assert_int_equal(result.segments_released, 2);
    assert_false(result.out_of_memory);
    assert_false(replay_with(&program, no_workspace, 90 * MIB).out_of_memory);
    result = replay_with(&program, no_workspace, 90 * MIB - 1);
    assert_true(result.out_of_memory);
    assert_int_equal(result.peak_reserved_bytes, 90 * MIB); /* more than there is: the amount that it would have
                                                               needed */
}

static struct program_conv conv_of(int64_t batch, int64_t in, int64_t out, int32_t size)
{
    return (struct program_conv){.element_bytes = 4,
                                 .rank = 2,
                                 .batch = batch,
                                 .in_channels = in,
                                 .out_channels = out,
                                 .groups = 1,
                                 .in = {size, size},
                                 .out = {size, size},
                                 .kernel = {3, 3},
                                 .stride = {1, 1},
                                 .padding = {1, 1},
                                 .dilation = {1, 1}};
}

/* Free segments go back, those with a block in use stay; the peak is the reserve before that. */
TEST(emptied_cache_gives_free_segments_back)
{
    for (int empties = 0; empties < 2; empties++) {
        program_init(&program);
        uint32_t whole = take(100 * MIB, MEMORY_ACTIVATION);
        uint32_t part = take(60 * MIB, MEMORY_ACTIVATION);
        give(part);
        take(20 * MIB, MEMORY_PARAMETER); /* from the 60 */
        give(whole);
        if (empties)
            program_empty_cache(&program, (struct program_event){0});
        take(40 * MIB, MEMORY_ACTIVATION); /* the rest of the 60 */
        take(70 * MIB, MEMORY_ACTIVATION); /* from the 100, or a segment of its own */
        take(80 * MIB, MEMORY_ACTIVATION);
        result = replay_with(&program, no_workspace, 0);
        assert_int_equal(result.peak_reserved_bytes, empties ? (60 + 70 + 80) * MIB : (100 + 60 + 80) * MIB);
        assert_int_equal(result.segments_released, 0); /* which counts only forced ones */
        program_release(&program);
    }
}

TEST(winograd_follows_its_formula)
{
    struct program_conv conv = conv_of(8, 3, 10, 15);

    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_NONE), 0);
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD), 4 * 36 * (8 * 4 * 4 * (3 + 10) + 3 * 10));
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD_SMALL), 4 * 16 * (8 * 8 * 8 * (3 + 10) + 3 * 10));
    conv.stride[1] = 2;
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD), 0);
    conv.stride[1] = 1;
    conv.kernel[0] = 5;
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD), 0);
    conv = conv_of(8, 12, 12, 15);
    conv.groups = 3;
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD), 0);
    conv.groups = 12; /* depthwise */
    assert_int_equal(conv_workspace_bytes(&conv, WORKSPACE_COPY), 0);
}

PROGRAM_TEST(workspace_comes_and_goes)
{
    struct program_conv conv = conv_of(16, 64, 64, 32);
    int64_t large = conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD);
    int64_t small = conv_workspace_bytes(&conv, WORKSPACE_WINOGRAD_SMALL);

    program_conv(&program, &conv, (struct program_event){.step = 3});
    conv.pass = CONV_BACKWARD_WEIGHT;
    program_conv(&program, &conv, (struct program_event){0});
    assert_int_equal(program.convs[0].step, 3);
    result = replay_with(&program, rule_of(WORKSPACE_WINOGRAD, WORKSPACE_WINOGRAD_SMALL, WORKSPACE_NONE), 0);
    assert_int_equal(result.peak_reserved_bytes, (large + 2 * MIB - 1) / (2 * MIB) * (2 * MIB));
    assert_int_equal(result.at_peak[MEMORY_WORKSPACE], large);
    assert_int_equal(result.peak_event, 0);
    result = replay_with(&program, rule_of(WORKSPACE_NONE, WORKSPACE_WINOGRAD, WORKSPACE_WINOGRAD_SMALL), 0);
    assert_int_equal(result.at_peak[MEMORY_WORKSPACE], small);
    assert_int_equal(result.peak_event, 1);
}

/* Possible contents of another program's capture. */
PROGRAM_TEST(nonsense_is_left_out)
{
    struct program_conv conv = conv_of(INT64_MAX, INT64_MAX, INT64_MAX, INT32_MAX);

    give(0); /* there is none: an empty program needs nothing */
    assert_int_equal(program.event_count, 0);
    result = replay_with(&program, no_workspace, 0);
    assert_true(result.peak_reserved_bytes == 0 && result.peak_allocated_bytes == 0);
    uint32_t tensor = take(512, MEMORY_BUFFER);
    give(tensor);
    give(tensor); /* once is enough */
    give(UINT32_MAX);
    take(-1, MEMORY_BUFFER);
    take(0, 200);
    assert_int_equal(replay_with(&program, no_workspace, 0).peak_reserved_bytes, 2 * MIB);
    conv.rank = 4;
    program_conv(&program, &conv, (struct program_event){0});
    conv.rank = 3;
    conv.pass = 3;
    program_conv(&program, &conv, (struct program_event){0});
    assert_int_equal(program.conv_count, 0);
    conv.pass = CONV_FORWARD;
    program_conv(&program, &conv, (struct program_event){0});
    for (int i = 0; i < 20; i++)
        take(INT64_MAX, MEMORY_ACTIVATION);
    assert_int_equal(program.events[program.event_count - 1].bytes, PROGRAM_MAX_BYTES);
    result = replay_with(&program, rule_of(WORKSPACE_COPY, WORKSPACE_COPY, WORKSPACE_COPY), 0);
    assert_true(result.out_of_memory); /* beyond all addresses */
    assert_true(result.peak_reserved_bytes > 3 * PROGRAM_MAX_BYTES);
}

PROGRAM_TEST(largest_tensor_takes_no_small_block)
{
    for (int i = 0; i < 40; i++) /* each leaves 2 MiB of its segment free: more blocks of one size than a bin holds */
        take(34 * MIB + 512, MEMORY_PARAMETER);
    take(PROGRAM_MAX_BYTES, MEMORY_INPUT);
    result = replay_with(&program, no_workspace, 0);
    assert_int_equal(result.peak_reserved_bytes, 40 * 36 * MIB + PROGRAM_MAX_BYTES);
    assert_int_equal(result.peak_allocated_bytes, 40 * (34 * MIB + 512) + PROGRAM_MAX_BYTES);
}
