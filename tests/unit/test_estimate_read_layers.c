/* The layers in a summary's rows: those that were not called, repeated, unknown or frozen; the batch and the input. */
#include "summary_fixture.h"

#define RULE "============================\n"
static const char head[] = RULE "%sOutput Shape    Param #\n" RULE,
                  foot[] = RULE "Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n" RULE;

SUMMARY_TEST(test_warns_of_each_unknown_type_once)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_printf(&text, head, "Layer (type)    ");
    for (int i = 0; i < 40; i++)
        strbuf_printf(&text, "Odd%d            [4, 3]          --\n", i % 10);
    strbuf_puts(&text, foot);
    read_ok("m.txt", text.text, text.length);
    assert_int_equal(summary.layers.unknown, 40);
    assert_int_equal(summary.warning_count, 10);
    assert_has(summary.warnings[0], "m.txt:4: layer type 'Odd0' is not known: only its shape and parameters count");
    assert_has(summary.warnings[7], "m.txt:11: layer type 'Odd7' is not known: only its shape and parameters count");
}

SUMMARY_TEST(test_long_names_keep_their_end)
{
    static const char *const rows[] = {"Model (model)", "├─Part (a_long_name_of_a_part_of_a_model)",
                                       "│    └─List (another_name_that_is_not_short_either)", "│    │    └─Linear (0)"};
    static const int marks[] = {0, 4, 6, 8}; /* bytes beyond the columns that they take */
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_printf(&text, head, "Layer (type (var_name))                                 ");
    for (size_t i = 0; i < array_size(rows); i++)
        strbuf_printf(&text, "%-*s[4, 3]          --\n", 56 + marks[i], rows[i]);
    strbuf_puts(&text, foot);
    read_ok("m.txt", text.text, text.length);
    assert_int_equal(summary.layers.count, 4);
    assert_string_equal(summary.layers.items[1].name, "a_long_name_of_a_part_of_a_model");
    assert_int_equal(strlen(summary.layers.items[3].name), LAYER_NAME_SIZE - 1);
    assert_string_equal(strrchr(summary.layers.items[3].name, '_'), "_either.0");
}

static const char uncalled[] = "=================================================\n"
                               "Layer (type:depth-idx)   Output Shape   Param #\n"
                               "=================================================\n"
                               "Model                    [2, 3]         --\n"
                               "├─Linear: 1-1            [2, 3]         12\n"
                               "├─PReLU: 1-2             --             1\n"
                               "=================================================\n"
                               "Total params: 13\nTrainable params: 13\nNon-trainable params: 0\n"
                               "Total mult-adds (M): 0.00\n"
                               "=================================================\n"
                               "Input size (MB): 0.00\nForward/backward pass size (MB): 0.00\n"
                               "Params size (MB): 0.00\nEstimated Total Size (MB): 0.00\n";

/* A module that was not called with the rest has no output: only its parameters are there. */
SUMMARY_TEST(test_uncalled_modules)
{
    char *text =
             replaced("torchinfo-1.8.0-plain.txt", "[4, 10]                   330", "--                        330"),
         *less;

    read_own(text);
    size_t count = summary.layers.count;
    assert_int_equal(summary.layers.items[count - 1].kind, LAYER_PARAMETER);
    assert_int_equal(summary.layers.items[count - 1].parameters, 330);
    assert_int_equal(summary.layers.shapeless, 0);
    less = replaced("torchinfo-1.8.0-plain.txt", "[4, 32]                   --", "--                        --");
    read_own(less);
    assert_int_equal(summary.layers.count, count - 1);
    assert_int_equal(summary.layers.shapeless, 0);
    read_ok("m.txt", uncalled, strlen(uncalled));
    assert_int_equal(summary.layers.count, 3);
    assert_int_equal(summary.layers.items[2].kind, LAYER_PARAMETER);
    assert_int_equal(summary.layers.items[2].activation, ACTIVATION_NONE);
}

/* torch's attention where its parameters are not shown has those of four projections; once, if it is called twice. */
SUMMARY_TEST(test_attention_without_parameters)
{
    char *text =
        replaced("torchinfo-1.6.6-attentive.txt", "├─Sequential (mlp)",
                 "├─MultiheadAttention (attention)         [2, 17, 32]               (recursive)\n├─Sequential (mlp)");

    read_own(text);
    assert_int_equal(summary.layers.items[3].kind, LAYER_ATTENTION);
    assert_int_equal(summary.layers.items[3].parameters, 4 * 32 * 33);
    assert_int_equal(summary.layers.items[5].kind, LAYER_ATTENTION);
    assert_int_equal(summary.layers.items[5].parameters, 0);
    assert_int_equal(summary.layers.items[5].heads, 0);
    assert_int_equal(summary.warning_count, 1);
}

/* Of 4 samples: behind the steps of a series, times 16 windows, not there at all, alone. */
static const struct {
    const char *shape;
    int rank;
    int64_t dims[LAYER_MAX_RANK];
} where_the_batch_is[] = {
    {"[4, 7]", 1, {7}},
    {"[17, 4, 32]", 2, {17, 32}},
    {"[64, 49, 96]", 3, {16, 49, 96}},
    {"[5, 3]", 2, {5, 3}},
    {"[4]", 1, {1}},
    {"[]", 1, {1}},
    {"[4, 2, 3, 4, 5, 6, 7]", 5, {6, 4, 5, 6, 7}},
    {"[[4, 7], [4, 9]]", 1, {7}},
};

EACH_ROW(SUMMARY_TEST, test_where_the_batch_is, where_the_batch_is)
{
    char *text = xasprintf("============================\nLayer (type)    Output Shape    Param #\n"
                           "============================\nModel           [4, 1]          --\n"
                           "├─ReLU          %s  --\n============================\n"
                           "Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n"
                           "============================\n",
                           row->shape);
    read_own(text);
    const struct layer *layer = &summary.layers.items[1];
    assert_int_equal(summary.layers.batch_size, 4);
    assert_true(layer->shape_known);
    assert_int_equal(layer->rank, row->rank);
    assert_memory_equal(layer->shape, row->dims, (size_t)row->rank * sizeof(int64_t));
}

/* Modules used twice below the depth shown: the rows say more than the total. */
SUMMARY_TEST(test_more_rows_than_total)
{
    char *text =
        replaced("torchinfo-1.8.0-depth.txt", "13,290\nTrainable params: 13,290", "13,000\nTrainable params: 13,000");

    read_own(text);
    assert_string_equal(summary.warnings[0], "m.txt:15: the rows have 13290 parameters in all, the total says 13000");
    text =
        replaced("torchinfo-1.8.0-depth.txt", "13,290\nTrainable params: 13,290", "14,000\nTrainable params: 14,000");
    assert_refused(text, strlen(text), "the rows have 13290 parameters in all, the total says 14000");
    free(text);
}

SUMMARY_TEST(test_no_rows)
{
    static const char text[] =
        "----------------\n Layer (type) Output Shape Param #\n================\n================\n"
        "Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n"
        "Input size (MB): 0.00\nForward/backward pass size (MB): 0.00\n"
        "Params size (MB): 0.00\nEstimated Total Size (MB): 0.00\n";

    assert_refused(text, sizeof text - 1, "the torchsummary summary has no layers");
}

/* Freezing from the first layer on is found by the count; anything else is told. */
SUMMARY_TEST(test_frozen_by_the_totals)
{
    char *text = replaced("torchsummary-perceptron.txt", "Trainable params: 4,643\nNon-trainable params: 0",
                          "Trainable params: 1,427\nNon-trainable params: 3,216");

    read_own(text);
    assert_true(summary.layers.items[0].frozen && summary.layers.items[1].frozen);
    assert_false(summary.layers.items[4].frozen || summary.layers.items[2].frozen);
    assert_int_equal(summary.warning_count, 1); /* of Swish2 */
    text = replaced("torchsummary-perceptron.txt", "Trainable params: 4,643\nNon-trainable params: 0",
                    "Trainable params: 4,393\nNon-trainable params: 250");
    read_own(text);
    assert_int_equal(summary.warning_count, 2);
    assert_non_null(strstr(summary.warnings[0], "250 parameters are not trained, but not which"));
    assert_false(summary.layers.items[0].frozen);
}
