/* A manual page and its options from a table. */
#include "unit.h"

#include "base/manual/manual.h"

static char *filter(int key, const char *text, void *input)
{
    (void)input;
    return key == ARGP_KEY_HELP_POST_DOC ? xasprintf("%s\n'quoted' and .dotted\n.so /etc/passwd", text)
                                         : (char *)(uintptr_t)text;
}

TEST(test_page)
{
    static const struct argp_option inner[] = {{"inside", 0x100, "N", OPTION_ARG_OPTIONAL, "a child's", 0}, {0}};
    static const struct argp child = {.options = inner};
    static const struct argp_child children[] = {{&child, 0, NULL, 0}, {0}};
    static const struct argp_option options[] = {
        {NULL, 0, NULL, 0, "What is done:", 1},
        {"gpu-memory", 'm', "SIZE", 0, "back\\slash - and hyphen", 1},
        {"secret", 0x101, NULL, OPTION_HIDDEN, "not told", 1},
        {"plain", 0x102, NULL, 0, "'begins with a quote", 1},
        {0},
    };
    static const struct argp argp = {.options = options,
                                     .children = children,
                                     .help_filter = filter,
                                     .args_doc = "FILE...\n-- COMMAND",
                                     .doc = ".does this\n\nand that\vNotes:"};
    static const char expected[] =
        ".TH \"CARMA\\-X\" 8 \"\" \"carma " CARMA_VERSION "\" \"System Administration\"\n"
        ".nh\n.ad l\n.SH NAME\ncarma\\-x \\- do x\n"
        ".SH \"SYNOPSIS\"\n.B carma x\n[OPTION...] FILE...\n.br\n.B carma x\n[OPTION...] \\-\\- COMMAND\n.br\n"
        ".SH \"DESCRIPTION\"\n\\&.does this\n.PP\nand that\n"
        ".SH \"OPTIONS\"\n.SS What is done\n"
        ".TP\n.B \\-m, \\-\\-gpu\\-memory=SIZE\nback\\eslash \\- and hyphen\n"
        ".TP\n.B \\-\\-plain\n\\&'begins with a quote\n"
        ".TP\n.B \\-\\-inside[=N]\na child's\n"
        ".SH \"NOTES\"\nNotes:\n\\&'quoted' and .dotted\n\\&.so /etc/passwd\n"
        ".SH \"EXIT STATUS\"\n";
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    manual_write(out, &(struct manual){.name = "carma-x",
                                       .section = 8,
                                       .summary = "do x",
                                       .invocation = "carma x",
                                       .argp = &argp,
                                       .see_also = "carma(1)"});
    fclose(out);
    text[strlen(expected)] = '\0';
    assert_string_equal(text, expected);
}

TEST(test_text)
{
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    manual_text(out, "one\n two\n three\nfour\n five");
    fclose(out);
    assert_string_equal(text, "one\n.PP\n.nf\n two\n three\n.fi\nfour\n.PP\n.nf\n five\n.fi\n");
}
