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

/* Text around a summary does not matter, nor line ends, colours, or an indent. */
static const char *const surroundings[] = {"torchsummary-batch.txt", "torchinfo-1.8.0-words.txt", "keras3-words.txt",
                                           "keras2-sequential.txt"};

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
