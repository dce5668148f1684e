/* Summaries that are truncated, contradictory, hostile or beyond the limits are refused in one line. */
#include "summary_fixture.h"

/* Only the rule that closes the file may be missing. */
static bool is_complete(const char *text, size_t length)
{
    static const char *const ends[] = {"Estimated Total Size", "Non-trainable params: ", "Optimizer params: "};
    const char *line = text + length - 1;

    while (line > text && line[-1] != '\n')
        line--;
    for (size_t i = 0; i < array_size(ends); i++)
        if (strncmp(line + strspn(line, " "), ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

TEST(test_truncated_at_every_line)
{
    glob_t files;

    fixtures(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *name = base_name(files.gl_pathv[i]);
        size_t length, refused = 0;
        CLEANUP(free_ptr) char *text = load(name, &length);

        for (size_t end = 0; end < length; end++) {
            struct error err;
            if (end > 0 && text[end - 1] != '\n')
                continue;
            CLEANUP(free_ptr) char *part = xmalloc(end + 1); /* its own block: a read past the end shows */
            memcpy(part, text, end);
            if (summary_read(&summary, name, part, end, &err) == 0) {
                if (strstr(text + end, "params") || !is_complete(text, end))
                    fail_msg("%s, cut after %zu bytes, is accepted", name, end);
                summary_release(&summary);
            } else {
                refused++;
                if (end > 0 && !strstr(err.text, "is truncated") && !strstr(err.text, "no model summary"))
                    fail_msg("%s, cut after %zu bytes: %s", name, end, err.text);
            }
        }
        assert_true(refused > 2);
    }
    globfree(&files);
}

static const struct {
    const char *name, *from, *to, *expected;
} changed_lines[] = {
    /* totals against rows */
    {"torchsummary-convolutions.txt", "2,368", "2,367", "m.txt:27: the rows have 13289 parameters in all"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, 32, 64]", "m.txt:32: the rows' outputs are"},
    {"torchsummary-convolutions.txt", "Params size (MB): 0.05", "Params size (MB): 0.50", "m.txt:34: the sizes"},
    {"torchsummary-convolutions.txt", "Trainable params: 13,290", "Trainable params: 13,289", "m.txt:27: the totals"},
    {"torchinfo-1.8.0-plain.txt", "2,368", "2,369", "the rows have 13291 parameters in all, the total says 13290"},
    {"torchinfo-1.8.0-attentive.txt", " 576", " --", "the rows have 14821 parameters in all, the total says 15397"},
    {"torchinfo-1.8.0-plain.txt", "Non-trainable params: 0", "Non-trainable params: 1", "the totals contradict"},
    {"keras3-functional.txt", "        216 ", "        217 ",
     "the rows have 547 parameters in all, the total says 546"},
    {"keras3-optimizer.txt", "Optimizer params: 3,574", "Optimizer params: 3,575", "the totals contradict"},
    {"keras2-functional.txt", "9000", "9001", "the rows have 9281 parameters in all, the total says 9280"},
    {"keras2-old-functional.txt", "9,232", "9,231", "the totals contradict"},
    /* the same thing twice */
    {"torchsummary-convolutions.txt", "Non-trainable params: 0", "Trainable params: 13,290", "is there twice"},
    /* hostile lines */
    {"torchsummary-convolutions.txt", "2,368", "99999999999999999999",
     "m.txt:4: '99999999999999999999' is not a number"},
    {"torchsummary-convolutions.txt", "2,368", "-5", "'-5' is not a number of parameters"},
    {"torchsummary-convolutions.txt", "2,368", "2,3\x01\x7f", "'2,3\?\?' is not a number"},
    {"torchsummary-convolutions.txt", "Conv2d-1 ", "Conv2d   ", "is not a row of torchsummary"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, 32, 32", "is not a row of torchsummary"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, -7, 32]", "'-7' is not a dimension of a tensor"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 9999999999]", "'9999999999' is not a dimension"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 2000000, 2000000]", "a tensor of more than"},
    {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "more than 16 dim"},
    {"torchsummary-convolutions.txt", "Total params: 13,290", "Total params: many", "'many' is not a number"},
    {"torchinfo-1.8.0-columns.txt", "(Units.MEGABYTES)", "(Units.YOTTABYTES)", "has no unit known here"},
    {"torchinfo-1.8.0-plain.txt", "├─Conv2d: 1-1", "├─      : 1-1", "is not a row of torchinfo"},
    {"torchinfo-1.8.0-plain.txt", "Output Shape              Param #", "Shape", "has no columns"},
    {"keras3-functional.txt", "│ (None, 32, 32, 3)     │", "│ (None, 32, 32, 3)      ", "a row of 3 cells where"},
    {"keras3-functional.txt", "┃ Output Shape", "┃ Result Shape", "is not a column of Keras"},
    {"keras3-functional.txt", "├─", "what?\n├─", "m.txt:6: the table is broken off"},
    {"keras3-functional.txt", "        216 ", "    2nd 216 ", "is not a number of parameters"},
    {"keras2-functional.txt", "Param #", "Weights", "no output shapes or no parameters"},
};

EACH_ROW(TEST, test_contradictions_and_hostile_lines, changed_lines)
{
    CLEANUP(free_ptr) char *text = replaced(row->name, row->from, row->to);
    assert_refused(text, strlen(text), row->expected);
}

TEST(test_no_summary)
{
    static const char binary[] = "Layer\n\0 (type)";
    size_t size = SUMMARY_MAX_BYTES + 1;
    CLEANUP(free_ptr) char *large = xmalloc(size);

    assert_refused("", 0, "m.txt:1: no model summary: print it with torchsummary, torchinfo or Keras'");
    assert_refused("\n\nhello\n", 8, "m.txt:1: no model summary");
    assert_refused("Model(\n  (0): ReLU()\n)\n", 23, "m.txt:1: no model summary");
    assert_refused(binary, sizeof binary - 1, "m.txt:2: a zero byte");
    memset(large, 'x', size);
    assert_refused(large, size, "m.txt:1: a model summary has at most 8 MiB");
}

/* As many as allowed, and one more. */
SUMMARY_TEST(test_limits)
{
    for (int count = LAYER_LIST_MAX; count <= LAYER_LIST_MAX + 1; count++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};

        strbuf_puts(&text, "----------------\n Layer (type) Output Shape Param #\n================\n");
        for (int i = 0; i < count; i++)
            strbuf_printf(&text, "ReLU-%d [-1, 0] 0\n", i + 1);
        strbuf_puts(&text, "================\nTotal params: 0\nTrainable params: 0\nNon-trainable params: 0\n"
                           "----------------\nInput size (MB): 0.00\nForward/backward pass size (MB): 0.00\n"
                           "Params size (MB): 0.00\nEstimated Total Size (MB): 0.00\n");
        if (count > LAYER_LIST_MAX) {
            assert_refused(text.text, text.length, "m.txt:100004: more than 100000 layers");
        } else {
            read_ok("m.txt", text.text, text.length);
            assert_int_equal(summary.layers.count, LAYER_LIST_MAX);
        }
    }
}
