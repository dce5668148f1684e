/* Summaries of every format, as tests/golden/summaries says. `test_estimate_read print FILE`: a new NAME.layers. */
#include "summary_fixture.h"
#include "summary_text.h"

SUMMARY_TEST(test_golden)
{
    glob_t files;

    fixtures(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *name = base_name(files.gl_pathv[i]);
        char *golden = xasprintf("%.*s.layers", (int)(strlen(name) - 4), name), *expected;
        CLEANUP(strbuf_release) struct strbuf out = {0};
        size_t length;

        expected = load(golden, &length);
        read_fixture(name);
        put_summary(&out, &summary);
        if (strcmp(out.text, expected) != 0)
            fail_msg("%s reads as\n%s", name, out.text);
        free(expected);
        free(golden);
    }
    globfree(&files);
}

/* Layers and bare parameters have the totals' sums, with any text around them. */
static const struct {
    const char *name;
    int64_t parameters;
} parameters_add_up[] = {
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

EACH_ROW(SUMMARY_TEST, test_parameters_add_up, parameters_add_up)
{
    int64_t sum = 0;
    read_fixture(row->name);
    for (size_t j = 0; j < summary.layers.count; j++)
        sum += summary.layers.items[j].container ? 0 : summary.layers.items[j].parameters;
    if (sum != row->parameters)
        fail_msg("%s: %lld parameters", row->name, (long long)sum);
}

/* The leaves of one model are the same layers in every format that shows as much. */
static void assert_same_leaves(const char *left_name, const char *right_name, bool shapes)
{
    size_t i = 0, j = 0, compared = 0;

    read_fixture(left_name);
    struct summary left = summary;
    summary = (struct summary){0};
    read_fixture(right_name);
    struct summary right = summary;
    summary = (struct summary){0};
    for (;;) {
        while (i < left.layers.count && (left.layers.items[i].container || left.layers.items[i].kind == LAYER_IDENTITY))
            i++;
        while (j < right.layers.count &&
               (right.layers.items[j].container || right.layers.items[j].kind == LAYER_IDENTITY))
            j++;
        if (i == left.layers.count || j == right.layers.count)
            break;
        const struct layer *a = &left.layers.items[i++];
        const struct layer *b = &right.layers.items[j++];
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

SUMMARY_TEST(test_same_model_in_several_formats)
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

/* Text around a summary does not matter, nor line ends, colours, or an indent. */
static const char *const surroundings[] = {"torchsummary-batch.txt", "torchinfo-1.8.0-words.txt", "keras3-words.txt",
                                           "keras2-sequential.txt", "tree-annotated.txt"};

EACH_ROW(SUMMARY_TEST, test_surroundings, surroundings)
{
    CLEANUP(strbuf_release) struct strbuf plain = {0}, changed = {0}, dressed = {0};
    size_t length;
    CLEANUP(free_ptr) char *text = load(*row, &length);

    strbuf_puts(&dressed,
                "\xef\xbb\xbf$ python train.py\nArguments(\nseed=(1),\n)\r\n\x1b[1mUsing cuda\x1b[0m (A100)\r\n\r\n");
    for (size_t j = 0; j < length; j++) {
        if (j == 0 || text[j - 1] == '\n')
            strbuf_puts(&dressed, "    \x1b[38;5;34m");
        strbuf_append(&dressed, text[j] == '\n' ? "\r\n" : text + j, text[j] == '\n' ? 2 : 1);
    }
    strbuf_puts(&dressed, "epoch 1: loss 0.3 (Conv2d)\n");
    read_ok("m.txt", text, length);
    put_summary(&plain, &summary);
    read_ok("m.txt", dressed.text, dressed.length);
    put_summary(&changed, &summary);
    assert_string_equal(plain.text, changed.text);
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

static const struct {
    const char *name;
    bool (*drops)(const char *line);
} without_rules[] = {{"torchsummary-convolutions.txt", is_dashes},
                     {"keras2-sequential.txt", is_underscores_or_blank},
                     {"keras2-old-sequential.txt", is_underscores_or_blank}};

EACH_ROW(SUMMARY_TEST, test_without_rules, without_rules)
{
    CLEANUP(strbuf_release) struct strbuf whole = {0}, less = {0};
    char *text = without(row->name, row->drops);
    read_own(text);
    put_summary(&less, &summary);
    read_fixture(row->name);
    put_summary(&whole, &summary);
    assert_string_equal(less.text, whole.text);
}

static int print(const char *path)
{
    struct strbuf out = {0};
    size_t length;
    char *text;

    if (file_read(path, SUMMARY_MAX_BYTES, &text, &length, &trouble) ||
        summary_read(&summary, strrchr(path, '/') ? base_name(path) : path, text, length, &trouble)) {
        fprintf(stderr, "%s\n", trouble.text);
        return 1;
    }
    put_summary(&out, &summary);
    fputs(out.text, stdout);
    strbuf_release(&out);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "print") == 0)
        return print(argv[2]);
    return unit_tests_run("tests", NULL, NULL);
}
