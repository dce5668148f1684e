/* Summaries of every format: read as tests/golden/summaries says; truncated, contradictory and hostile ones refused in
 * one line. `test_estimate_read print FILE` prints what NAME.layers of a new fixture has to say: read it before use. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "summary_text.h"

#define MAX_FILE ((size_t)1 << 20)

static char *load(const char *name, size_t *length)
{
    char *path = xasprintf("%s/%s", CARMA_SUMMARIES, name), *text;
    struct error err;

    if (file_read(path, MAX_FILE, &text, length, &err))
        fail_msg("%s", err.text);
    free(path);
    return text;
}

static void read_ok(struct summary *summary, const char *name, const char *text, size_t length)
{
    struct error err;

    if (summary_read(summary, name, text, length, &err))
        fail_msg("%s", err.text);
}

static void read_fixture(struct summary *summary, const char *name)
{
    size_t length;
    char *text = load(name, &length);

    read_ok(summary, name, text, length);
    free(text);
}

static void assert_refused(const char *text, size_t length, const char *expected)
{
    struct summary summary;
    struct error err = {{0}};

    if (summary_read(&summary, "m.txt", text, length, &err) != -EINVAL)
        fail_msg("accepted, instead of: %s", expected);
    assert_null(summary.layers.items);
    assert_int_equal(strncmp(err.text, "m.txt:", 6), 0);
    assert_null(strchr(err.text, '\n'));
    if (!strstr(err.text, expected))
        fail_msg("'%s' instead of '%s'", err.text, expected);
}

/* The file's text with `from` replaced, which must be there once or more: its first occurrence. */
static char *replaced(const char *name, const char *from, const char *to)
{
    size_t length, before;
    char *text = load(name, &length), *changed;

    if (!strstr(text, from))
        fail_msg("%s has no '%s'", name, from);
    before = (size_t)(strstr(text, from) - text);
    changed = xasprintf("%.*s%s%s", (int)before, text, to, text + before + strlen(from));
    free(text);
    return changed;
}

static void fixtures(glob_t *files)
{
    assert_int_equal(glob(CARMA_SUMMARIES "/*.txt", 0, NULL, files), 0);
    assert_true(files->gl_pathc > 40);
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

static void test_golden(void **state)
{
    glob_t files;

    fixtures(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *name = base_name(files.gl_pathv[i]);
        char *golden = xasprintf("%.*s.layers", (int)(strlen(name) - 4), name), *expected;
        struct strbuf out = {0};
        struct summary summary;
        size_t length;

        expected = load(golden, &length);
        read_fixture(&summary, name);
        put_summary(&out, &summary);
        if (strcmp(out.text, expected) != 0)
            fail_msg("%s reads as\n%s", name, out.text);
        summary_release(&summary);
        strbuf_release(&out);
        free(expected);
        free(golden);
    }
    globfree(&files);
}

/* Layers and bare parameters have the totals' sums, with any text around them. */
static void test_parameters_add_up(void **state)
{
    static const struct {
        const char *name;
        int64_t parameters;
    } known[] = {
        {"torchsummary-resnet101.txt", 44549160},
        {"torchinfo-1.8.0-plain.txt", 13290},
        {"torchinfo-1.8.0-attentive.txt", 15397},
        {"torchinfo-1.8.0-verbose.txt", 15397},
        {"torchinfo-1.8.0-depth.txt", 13290},
        {"torchinfo-1.8.0-no-input.txt", 13290},
        {"tree-convolutions.txt", 13290},
        {"tree-annotated.txt", 13290},
        {"tree-annotated-attentive.txt", 15397},
        {"tree-gpt2-annotated.txt", 24888},
        {"tree-bert.txt", 13608},
    };

    for (size_t i = 0; i < array_size(known); i++) {
        struct summary summary;
        int64_t sum = 0;
        read_fixture(&summary, known[i].name);
        for (size_t j = 0; j < summary.layers.count; j++)
            sum += summary.layers.items[j].container ? 0 : summary.layers.items[j].parameters;
        if (sum != known[i].parameters)
            fail_msg("%s: %lld parameters", known[i].name, (long long)sum);
        summary_release(&summary);
    }
}

/* The leaves of one model are the same layers in every format that shows as much. */
static void assert_same_leaves(const char *left_name, const char *right_name, bool shapes)
{
    struct summary left, right;
    size_t i = 0, j = 0, compared = 0;

    read_fixture(&left, left_name);
    read_fixture(&right, right_name);
    for (;;) {
        const struct layer *a, *b;
        while (i < left.layers.count && (left.layers.items[i].container || left.layers.items[i].kind == LAYER_IDENTITY))
            i++;
        while (j < right.layers.count &&
               (right.layers.items[j].container || right.layers.items[j].kind == LAYER_IDENTITY))
            j++;
        if (i == left.layers.count || j == right.layers.count)
            break;
        a = &left.layers.items[i++];
        b = &right.layers.items[j++];
        assert_string_equal(a->type, b->type);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->parameters, b->parameters);
        assert_int_equal(a->frozen, b->frozen);
        if (shapes) {
            assert_int_equal(a->rank, b->rank);
            assert_memory_equal(a->shape, b->shape, a->rank * sizeof *a->shape);
        }
        compared++;
    }
    if (i < left.layers.count || j < right.layers.count || compared < 4)
        fail_msg("%s and %s: %zu alike, then %zu of %zu, %zu of %zu", left_name, right_name, compared, i,
                 left.layers.count, j, right.layers.count);
    summary_release(&left);
    summary_release(&right);
}

static void test_same_model_in_several_formats(void **state)
{
    assert_same_leaves("torchsummary-convolutions.txt", "torchinfo-1.8.0-plain.txt", true);
    assert_same_leaves("torchsummary-batch.txt", "torchinfo-1.8.0-every-column.txt", true);
    assert_same_leaves("torchinfo-1.5.2-plain.txt", "torchinfo-1.8.0-ascii.txt", true);
    assert_same_leaves("torchinfo-1.6.6-columns.txt", "torchinfo-next-columns.txt", true);
    assert_same_leaves("torchinfo-1.8.0-attentive.txt", "torchinfo-1.8.0-verbose.txt", true);
    assert_same_leaves("torchinfo-1.8.0-no-input.txt", "tree-convolutions.txt", false);
    assert_same_leaves("tree-convolutions.txt", "tree-annotated.txt", true);
    assert_same_leaves("keras3-optimizer.txt", "keras3-colours.txt", true);
    assert_same_leaves("keras3-optimizer.txt", "keras3-ascii.txt", true);
    assert_same_leaves("keras2-sequential.txt", "keras2-old-sequential.txt", true);
}

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

static void test_truncated_at_every_line(void **state)
{
    glob_t files;

    fixtures(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *name = base_name(files.gl_pathv[i]);
        size_t length, refused = 0;
        char *text = load(name, &length);

        for (size_t end = 0; end < length; end++) {
            struct summary summary;
            struct error err;
            char *part;
            if (end > 0 && text[end - 1] != '\n')
                continue;
            part = xmalloc(end + 1); /* its own block: a read past the end shows */
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
            free(part);
        }
        assert_true(refused > 2);
        free(text);
    }
    globfree(&files);
}

/* Any number of bytes: an answer, and nothing read outside. */
static void test_truncated_at_every_byte(void **state)
{
    static const char *const names[] = {"torchsummary-perceptron.txt", "torchinfo-1.8.0-words.txt", "keras2-odd.txt",
                                        "keras3-closed.txt", "tree-odds.txt"};

    for (size_t i = 0; i < array_size(names); i++) {
        size_t length;
        char *text = load(names[i], &length);
        for (size_t end = 0; end < length; end++) {
            struct summary summary;
            struct error err;
            char *part = xmalloc(end + 1);
            memcpy(part, text, end);
            part = xrealloc(part, end ? end : 1, 1);
            if (summary_read(&summary, "m.txt", part, end, &err) == 0)
                summary_release(&summary);
            free(part);
        }
        free(text);
    }
}

static void test_contradictions(void **state)
{
    static const struct {
        const char *name, *from, *to, *expected;
    } cases[] = {
        /* totals against rows */
        {"torchsummary-convolutions.txt", "2,368", "2,367", "m.txt:27: the rows have 13289 parameters in all"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, 32, 64]", "m.txt:32: the rows' outputs are"},
        {"torchsummary-convolutions.txt", "Params size (MB): 0.05", "Params size (MB): 0.50", "m.txt:34: the sizes"},
        {"torchsummary-convolutions.txt", "Trainable params: 13,290", "Trainable params: 13,289",
         "m.txt:27: the totals"},
        {"torchinfo-1.8.0-plain.txt", "2,368", "2,369", "the rows have 13291 parameters in all, the total says 13290"},
        {"torchinfo-1.8.0-attentive.txt", " 576", " --", "the rows have 14821 parameters in all, the total says 15397"},
        {"torchinfo-1.8.0-plain.txt", "Non-trainable params: 0", "Non-trainable params: 1", "the totals contradict"},
        {"keras3-functional.txt", "        216 ", "        217 ",
         "the rows have 547 parameters in all, the total says 546"},
        {"keras3-optimizer.txt", "Optimizer params: 3,574", "Optimizer params: 3,575", "the totals contradict"},
        {"keras2-functional.txt", "9000", "9001", "the rows have 9281 parameters in all, the total says 9280"},
        {"keras2-old-functional.txt", "9,232", "9,231", "the totals contradict"},
        {"tree-annotated.txt", "), 608 params", "), 607 params",
         "m.txt:23: Sequential has 607 params, but what is in it has 608"},
        {"tree-annotated.txt", "2,368 params", "2,369 params",
         "m.txt:2: Conv2d has 2369 params, but by its arguments 2368"},
        {"tree-bert.txt", "(0-1): 2 x", "(0-2): 2 x", "2 modules, numbered 0 to 2"},
        /* the same thing twice */
        {"torchsummary-convolutions.txt", "Non-trainable params: 0", "Trainable params: 13,290", "is there twice"},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        char *text = replaced(cases[i].name, cases[i].from, cases[i].to);
        assert_refused(text, strlen(text), cases[i].expected);
        free(text);
    }
}

static void test_hostile_lines(void **state)
{
    static const struct {
        const char *name, *from, *to, *expected;
    } cases[] = {
        {"torchsummary-convolutions.txt", "2,368", "99999999999999999999",
         "m.txt:4: '99999999999999999999' is not a number"},
        {"torchsummary-convolutions.txt", "2,368", "-5", "'-5' is not a number of parameters"},
        {"torchsummary-convolutions.txt", "2,368", "2,3\x01\x7f", "'2,3\?\?' is not a number"},
        {"torchsummary-convolutions.txt", "Conv2d-1 ", "Conv2d   ", "is not a row of torchsummary"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, 32, 32", "is not a row of torchsummary"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 16, -7, 32]",
         "'-7' is not a dimension of a tensor"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 9999999999]", "'9999999999' is not a dimension"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[-1, 2000000, 2000000]", "a tensor of more than"},
        {"torchsummary-convolutions.txt", "[-1, 16, 32, 32]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
         "more than 16 dim"},
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

    for (size_t i = 0; i < array_size(cases); i++) {
        char *text = replaced(cases[i].name, cases[i].from, cases[i].to);
        assert_refused(text, strlen(text), cases[i].expected);
        free(text);
    }
}

static void test_no_summary(void **state)
{
    static const char binary[] = "Layer\n\0 (type)";
    size_t size = SUMMARY_MAX_BYTES + 1;
    char *large = xmalloc(size);

    assert_refused("", 0, "m.txt:1: no model summary: print it with torchsummary, torchinfo, Keras'");
    assert_refused("\n\nhello\n", 8, "m.txt:1: no model summary");
    assert_refused("import torch\nprint(model)\n", 26, "m.txt:1: no model summary");
    assert_refused("TrainingArguments(\nadam_beta1=0.9,\n)\n", 36, "m.txt:1: no model summary");
    assert_refused(binary, sizeof binary - 1, "m.txt:2: a zero byte");
    memset(large, 'x', size);
    assert_refused(large, size, "m.txt:1: a model summary has at most 8 MiB");
    free(large);
}

/* Text around a summary does not matter, nor line ends, colours, or an indent. */
static void test_surroundings(void **state)
{
    static const char *const names[] = {"torchsummary-batch.txt", "torchinfo-1.8.0-words.txt", "keras3-words.txt",
                                        "keras2-sequential.txt", "tree-annotated.txt"};

    for (size_t i = 0; i < array_size(names); i++) {
        struct strbuf plain = {0}, changed = {0}, dressed = {0};
        struct summary summary;
        size_t length;
        char *text = load(names[i], &length);

        strbuf_puts(
            &dressed,
            "\xef\xbb\xbf$ python train.py\nArguments(\nseed=(1),\n)\r\n\x1b[1mUsing cuda\x1b[0m (A100)\r\n\r\n");
        for (size_t j = 0; j < length; j++) {
            if (j == 0 || text[j - 1] == '\n')
                strbuf_puts(&dressed, "    \x1b[38;5;34m");
            strbuf_append(&dressed, text[j] == '\n' ? "\r\n" : text + j, text[j] == '\n' ? 2 : 1);
        }
        strbuf_puts(&dressed, "epoch 1: loss 0.3 (Conv2d)\n");
        read_ok(&summary, "m.txt", text, length);
        put_summary(&plain, &summary);
        summary_release(&summary);
        read_ok(&summary, "m.txt", dressed.text, dressed.length);
        put_summary(&changed, &summary);
        summary_release(&summary);
        assert_string_equal(plain.text, changed.text);
        strbuf_release(&plain);
        strbuf_release(&changed);
        strbuf_release(&dressed);
        free(text);
    }
}

static void test_warns_of_each_unknown_type_once(void **state)
{
    struct strbuf text = {0};
    struct summary summary;

    strbuf_puts(&text, "Model(\n");
    for (int i = 0; i < 40; i++)
        strbuf_printf(&text, "  (%d): Odd%d()\n", i, i % 10);
    strbuf_puts(&text, ")\n");
    read_ok(&summary, "m.txt", text.text, text.length);
    assert_int_equal(summary.layers.unknown, 40);
    assert_int_equal(summary.warning_count, 11); /* the first says what print() does not show */
    assert_string_equal(summary.warnings[1],
                        "m.txt:2: layer type 'Odd0' is not known: only its shape and parameters count");
    assert_string_equal(summary.warnings[7],
                        "m.txt:8: layer type 'Odd6' is not known: only its shape and parameters count");
    summary_release(&summary);
    strbuf_release(&text);
}

/* As deep and as many as allowed, and one more. */
static void test_limits(void **state)
{
    struct strbuf text = {0};
    struct summary summary;

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
    read_ok(&summary, "m.txt", text.text, text.length);
    assert_int_equal(summary.layers.count, 100000);
    assert_string_equal(summary.layers.items[99999].name, "99998");
    summary_release(&summary);
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
    strbuf_release(&text);
}

static void test_long_names_keep_their_end(void **state)
{
    struct strbuf text = {0};
    struct summary summary;

    strbuf_puts(&text, "Model(\n  (a_long_name_of_a_part_of_a_model): Sequential(\n"
                       "    (another_name_that_is_not_short_either): ModuleList(\n"
                       "      (0-1): 2 x Linear(in_features=3, out_features=4, bias=True)\n    )\n  )\n)\n");
    read_ok(&summary, "m.txt", text.text, text.length);
    assert_int_equal(summary.layers.count, 5);
    assert_string_equal(summary.layers.items[1].name, "a_long_name_of_a_part_of_a_model");
    assert_int_equal(strlen(summary.layers.items[3].name), LAYER_NAME_SIZE - 1);
    assert_string_equal(strrchr(summary.layers.items[3].name, '_'), "_either.0");
    summary_release(&summary);
    strbuf_release(&text);
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
static void test_uncalled_modules(void **state)
{
    char *text =
             replaced("torchinfo-1.8.0-plain.txt", "[4, 10]                   330", "--                        330"),
         *less;
    struct summary summary;
    size_t count;

    read_ok(&summary, "m.txt", text, strlen(text));
    count = summary.layers.count;
    assert_int_equal(summary.layers.items[count - 1].kind, LAYER_PARAMETER);
    assert_int_equal(summary.layers.items[count - 1].parameters, 330);
    assert_int_equal(summary.layers.shapeless, 0);
    summary_release(&summary);
    free(text);
    less = replaced("torchinfo-1.8.0-plain.txt", "[4, 32]                   --", "--                        --");
    read_ok(&summary, "m.txt", less, strlen(less));
    assert_int_equal(summary.layers.count, count - 1);
    assert_int_equal(summary.layers.shapeless, 0);
    summary_release(&summary);
    free(less);
    read_ok(&summary, "m.txt", uncalled, strlen(uncalled));
    assert_int_equal(summary.layers.count, 3);
    assert_int_equal(summary.layers.items[2].kind, LAYER_PARAMETER);
    assert_int_equal(summary.layers.items[2].activation, ACTIVATION_NONE);
    summary_release(&summary);
}

/* torch's attention where its parameters are not shown has those of four projections; once, if it is called twice. */
static void test_attention_without_parameters(void **state)
{
    char *text =
        replaced("torchinfo-1.6.6-attentive.txt", "├─Sequential (mlp)",
                 "├─MultiheadAttention (attention)         [2, 17, 32]               (recursive)\n├─Sequential (mlp)");
    struct summary summary;

    read_ok(&summary, "m.txt", text, strlen(text));
    assert_int_equal(summary.layers.items[3].kind, LAYER_ATTENTION);
    assert_int_equal(summary.layers.items[3].parameters, 4 * 32 * 33);
    assert_int_equal(summary.layers.items[5].kind, LAYER_ATTENTION);
    assert_int_equal(summary.layers.items[5].parameters, 0);
    assert_int_equal(summary.layers.items[5].heads, 0);
    assert_int_equal(summary.warning_count, 1);
    summary_release(&summary);
    free(text);
}

/* Without the lines that `drops` says. */
static char *without(const char *name, bool (*drops)(const char *line))
{
    struct strbuf kept = {0};
    size_t length;
    char *text = load(name, &length), *rest = text;

    for (char *line = strsep(&rest, "\n"); line && rest; line = strsep(&rest, "\n"))
        if (!drops(line))
            strbuf_printf(&kept, "%s\n", line);
    free(text);
    return strbuf_steal(&kept);
}

static bool is_dashes(const char *line)
{
    return *line && line[strspn(line, "-")] == '\0';
}

static bool is_underscores_or_blank(const char *line)
{
    return line[strspn(line, "_ |")] == '\0';
}

static void test_without_rules(void **state)
{
    static const struct {
        const char *name;
        bool (*drops)(const char *line);
    } cases[] = {{"torchsummary-convolutions.txt", is_dashes},
                 {"keras2-sequential.txt", is_underscores_or_blank},
                 {"keras2-old-sequential.txt", is_underscores_or_blank}};

    for (size_t i = 0; i < array_size(cases); i++) {
        struct strbuf whole = {0}, less = {0};
        char *text = without(cases[i].name, cases[i].drops);
        struct summary summary;
        read_ok(&summary, "m.txt", text, strlen(text));
        put_summary(&less, &summary);
        summary_release(&summary);
        read_fixture(&summary, cases[i].name);
        put_summary(&whole, &summary);
        summary_release(&summary);
        assert_string_equal(less.text, whole.text);
        strbuf_release(&whole);
        strbuf_release(&less);
        free(text);
    }
}

/* Of 4 samples: behind the steps of a series, times 16 windows, not there at all, alone. */
static void test_where_the_batch_is(void **state)
{
    static const struct {
        const char *shape;
        int rank;
        int64_t dims[LAYER_MAX_RANK];
    } cases[] = {
        {"[4, 7]", 1, {7}},
        {"[17, 4, 32]", 2, {17, 32}},
        {"[64, 49, 96]", 3, {16, 49, 96}},
        {"[5, 3]", 2, {5, 3}},
        {"[4]", 1, {1}},
        {"[]", 1, {1}},
        {"[4, 2, 3, 4, 5, 6, 7]", 5, {6, 4, 5, 6, 7}},
        {"[[4, 7], [4, 9]]", 1, {7}},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        const struct layer *layer;
        struct summary summary;
        char *text = xasprintf("============================\nLayer (type)    Output Shape    Param #\n"
                               "============================\nModel           [4, 1]          --\n"
                               "├─ReLU          %s  --\n============================\n"
                               "Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n"
                               "============================\n",
                               cases[i].shape);
        read_ok(&summary, "m.txt", text, strlen(text));
        layer = &summary.layers.items[1];
        assert_int_equal(summary.layers.batch_size, 4);
        assert_true(layer->shape_known);
        assert_int_equal(layer->rank, cases[i].rank);
        assert_memory_equal(layer->shape, cases[i].dims, (size_t)cases[i].rank * sizeof(int64_t));
        summary_release(&summary);
        free(text);
    }
}

static void test_small_trees(void **state)
{
    static const char one[] = "Linear(in_features=3, out_features=4, bias=True)\n",
                      bare[] = "Model(\n  (prompts): ParameterList(\n"
                               "      (0): Parameter containing: [torch.float32 of size 3x4]\n"
                               "      (1): Parameter containing: [torch.float32 of size 5 (GPU 0)]\n  )\n"
                               "  (nothing): None\n)\n",
                      large[] = "Model(\n  (0): ParameterList(\n"
                                "    (0): Parameter containing: [torch.float32 of size 999999x9999999]\n  )\n)\n";
    struct summary summary;

    read_ok(&summary, "m.txt", one, sizeof one - 1);
    assert_int_equal(summary.layers.count, 1);
    assert_int_equal(summary.layers.items[0].parameters, 16);
    assert_int_equal(summary.layers.input[0], 3);
    assert_true(summary.layers.items[0].shape_known && summary.layers.input_rank == 1);
    summary_release(&summary);
    read_ok(&summary, "m.txt", bare, sizeof bare - 1);
    assert_int_equal(summary.layers.count, 4);
    assert_true(summary.layers.items[1].container);
    assert_int_equal(summary.layers.items[1].parameters, 17);
    assert_string_equal(summary.layers.items[3].name, "prompts.1");
    assert_int_equal(summary.layers.items[3].parameters, 5);
    summary_release(&summary);
    assert_refused(large, sizeof large - 1, "m.txt:3: a parameter whose size is out of range");
}

/* Modules used twice below the depth shown: the rows say more than the total. */
static void test_more_rows_than_total(void **state)
{
    char *text =
        replaced("torchinfo-1.8.0-depth.txt", "13,290\nTrainable params: 13,290", "13,000\nTrainable params: 13,000");
    struct summary summary;

    read_ok(&summary, "m.txt", text, strlen(text));
    assert_string_equal(summary.warnings[0], "m.txt:15: the rows have 13290 parameters in all, the total says 13000");
    summary_release(&summary);
    free(text);
    text =
        replaced("torchinfo-1.8.0-depth.txt", "13,290\nTrainable params: 13,290", "14,000\nTrainable params: 14,000");
    assert_refused(text, strlen(text), "the rows have 13290 parameters in all, the total says 14000");
    free(text);
}

static void test_no_rows(void **state)
{
    static const char text[] =
        "----------------\n Layer (type) Output Shape Param #\n================\n================\n"
        "Total params: 0\nTrainable params: 0\nNon-trainable params: 0\n"
        "Input size (MB): 0.00\nForward/backward pass size (MB): 0.00\n"
        "Params size (MB): 0.00\nEstimated Total Size (MB): 0.00\n";

    assert_refused(text, sizeof text - 1, "the torchsummary summary has no layers");
}

/* Freezing from the first layer on is found by the count; anything else is told. */
static void test_frozen_by_the_totals(void **state)
{
    char *text = replaced("torchsummary-perceptron.txt", "Trainable params: 4,643\nNon-trainable params: 0",
                          "Trainable params: 1,427\nNon-trainable params: 3,216");
    struct summary summary;

    read_ok(&summary, "m.txt", text, strlen(text));
    assert_true(summary.layers.items[0].frozen && summary.layers.items[1].frozen);
    assert_false(summary.layers.items[4].frozen || summary.layers.items[2].frozen);
    assert_int_equal(summary.warning_count, 1); /* of Swish2 */
    summary_release(&summary);
    free(text);
    text = replaced("torchsummary-perceptron.txt", "Trainable params: 4,643\nNon-trainable params: 0",
                    "Trainable params: 4,393\nNon-trainable params: 250");
    read_ok(&summary, "m.txt", text, strlen(text));
    assert_int_equal(summary.warning_count, 2);
    assert_non_null(strstr(summary.warnings[0], "250 parameters are not trained, but not which"));
    assert_false(summary.layers.items[0].frozen);
    summary_release(&summary);
    free(text);
}

/* The input's shape where only its size in MB is printed. */
static void test_input_by_its_size(void **state)
{
    static const struct {
        const char *name;
        int rank;
        int64_t dims[3];
    } cases[] = {
        {"torchsummary-resnet101.txt", 3, {3, 64, 64}},  {"torchsummary-attentive.txt", 3, {3, 32, 32}},
        {"torchsummary-batch.txt", 3, {3, 64, 64}},      {"torchsummary-perceptron.txt", 1, {64}},
        {"torchinfo-1.8.0-plain.txt", 3, {3, 64, 64}},   {"torchinfo-1.8.0-words.txt", 1, {12}},
        {"torchinfo-1.8.0-columns.txt", 3, {3, 64, 64}}, {"torchinfo-ancestor-columns.txt", 3, {3, 224, 224}},
    };

    for (size_t i = 0; i < array_size(cases); i++) {
        struct summary summary;
        read_fixture(&summary, cases[i].name);
        if (summary.layers.input_rank != cases[i].rank ||
            memcmp(summary.layers.input, cases[i].dims, (size_t)cases[i].rank * sizeof(int64_t)) != 0)
            fail_msg("%s: %lldx%lldx%lld", cases[i].name, (long long)summary.layers.input[0],
                     (long long)summary.layers.input[1], (long long)summary.layers.input[2]);
        assert_int_equal(summary.layers.input_is_index, strstr(cases[i].name, "words") != NULL);
        summary_release(&summary);
    }
}

static int print(const char *path)
{
    struct strbuf out = {0};
    struct summary summary;
    struct error err;
    size_t length;
    char *text;

    if (file_read(path, SUMMARY_MAX_BYTES, &text, &length, &err) ||
        summary_read(&summary, strrchr(path, '/') ? base_name(path) : path, text, length, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    put_summary(&out, &summary);
    fputs(out.text, stdout);
    strbuf_release(&out);
    summary_release(&summary);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_parameters_add_up),
        cmocka_unit_test(test_same_model_in_several_formats),
        cmocka_unit_test(test_truncated_at_every_line),
        cmocka_unit_test(test_truncated_at_every_byte),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_hostile_lines),
        cmocka_unit_test(test_no_summary),
        cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_warns_of_each_unknown_type_once),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_long_names_keep_their_end),
        cmocka_unit_test(test_uncalled_modules),
        cmocka_unit_test(test_without_rules),
        cmocka_unit_test(test_where_the_batch_is),
        cmocka_unit_test(test_small_trees),
        cmocka_unit_test(test_more_rows_than_total),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_attention_without_parameters),
        cmocka_unit_test(test_frozen_by_the_totals),
        cmocka_unit_test(test_input_by_its_size),
    };

    if (argc == 3 && strcmp(argv[1], "print") == 0)
        return print(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
