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
    {"tree-annotated.txt", "), 608 params", "), 607 params",
     "m.txt:23: Sequential has 607 params, but the layers in it have 608"},
    {"tree-annotated.txt", "2,368 params", "2,369 params",
     "m.txt:2: Conv2d has 2369 params, but by its arguments 2368"},
    {"tree-bert.txt", "(0-1): 2 x", "(0-2): 2 x", "2 modules, numbered 0 to 2"},
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
    {"tree-bert.txt", "(0-1): 2 x", "(0-99998): 99999 x", "more than 100000 layers"},
    {"tree-bert.txt", "(0-1): 2 x", "(0): 0 x", "0 copies of a module"},
    {"tree-bert.txt", "(0-1): 2 x", "(0): 9999999999999999999 x", "is not a module"},
    {"tree-odds.txt", "(11): Swish2()", "(11): 17", "'17' is not a module"},
    {"tree-convolutions.txt", "kernel_size=(7, 7)", "kernel_size=(2147483647, 70)", "Conv2d has more than"},
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

    assert_refused("", 0, "m.txt:1: no model summary: print it with torchsummary, torchinfo, Keras'");
    assert_refused("\n\nhello\n", 8, "m.txt:1: no model summary");
    assert_refused("import torch\nprint(model)\n", 26, "m.txt:1: no model summary");
    assert_refused("TrainingArguments(\nadam_beta1=0.9,\n)\n", 36, "m.txt:1: no model summary");
    assert_refused(binary, sizeof binary - 1, "m.txt:2: a zero byte");
    memset(large, 'x', size);
    assert_refused(large, size, "m.txt:1: a model summary has at most 8 MiB");
}

/* As deep and as many as allowed, and one more. */
SUMMARY_TEST(test_limits)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};

    strbuf_puts(&text, "Model(\n");
    for (int i = 0; i < 250; i++)
        strbuf_printf(&text, "(%d): Sequential(\n", i);
    assert_refused(text.text, text.length, "m.txt:201: modules nested more than 200 deep");
    strbuf_clear(&text);
    strbuf_puts(&text, "Model(\n");
    for (int i = 0; i < 100000; i++)
        strbuf_puts(&text, "(0): ReLU()\n");
    assert_refused(text.text, text.length, "m.txt:100001: more than 100000 layers");
    strbuf_clear(&text);
    strbuf_puts(&text, "Model(\n(0-99998): 99999 x ReLU()\n)\n");
    read_ok("m.txt", text.text, text.length);
    assert_int_equal(summary.layers.count, 100000);
    assert_string_equal(summary.layers.items[99999].name, "99998");
    strbuf_clear(&text);
    strbuf_puts(&text, "Model(\n(0): Sequential(\n(0-999): 1000 x ReLU()\n)\n(1-100): 100 x Sequential(\n"
                       "(0-999): 1000 x ReLU()\n)\n)\n");
    assert_refused(text.text, text.length, "m.txt:7: more than 100000 layers");
    strbuf_clear(&text);
    strbuf_puts(&text, "Model(\n");
    for (int i = 0; i < 3; i++)
        strbuf_printf(&text, "(%d): Embedding(1000000, 1000000)\n", i);
    strbuf_puts(&text, ")\n");
    assert_refused(text.text, text.length, "more than 1099511627776 parameters");
}
