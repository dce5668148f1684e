#include "base/manual/manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"

/* One piece of a line; characters that roff would interpret are escaped. A hyphen that is typed must stay one. */
static void put(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
    }
}

static void put_line(FILE *out, const char *text, size_t length)
{
    if (length && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    put(out, text, length);
    fputc('\n', out);
}

void manual_text(FILE *out, const char *text)
{
    bool verbatim = false;

    while (*text) {
        size_t length = strcspn(text, "\n");

        if (verbatim != (*text == ' ')) {
            verbatim = !verbatim;
            fputs(verbatim ? ".PP\n.nf\n" : ".fi\n", out);
        }
        if (length == 0)
            fputs(".PP\n", out);
        else
            put_line(out, text, length);
        text += length + (text[length] == '\n');
    }
    if (verbatim)
        fputs(".fi\n", out);
}

void manual_begin(FILE *out, const char *name, unsigned section, const char *summary)
{
    static const char *const titles[] = {[1] = "User Commands", [5] = "File Formats", [8] = "System Administration"};

    fputs(".TH \"", out);
    for (const char *at = name; *at; at++) {
        char upper = (char)toupper((unsigned char)*at);
        put(out, &upper, 1);
    }
    fprintf(out, "\" %u \"\" \"carma " CARMA_VERSION "\" \"%s\"\n.nh\n.ad l\n.SH NAME\n", section, titles[section]);
    put(out, name, strlen(name));
    fputs(" \\- ", out);
    put_line(out, summary, strlen(summary));
}

void manual_heading(FILE *out, const char *title)
{
    fprintf(out, ".SH \"%s\"\n", title);
}

void manual_item(FILE *out, const char *term, const char *text)
{
    fputs(".TP\n.B ", out);
    put(out, term, strlen(term));
    fputc('\n', out);
    put_line(out, text, strlen(text));
}

/* `carma submit [OPTION...] FILE...`, a line for each form that the table names. */
static void synopsis(FILE *out, const struct manual *manual)
{
    const char *form = manual->argp->args_doc ? manual->argp->args_doc : "";

    manual_heading(out, "SYNOPSIS");
    do {
        size_t length = strcspn(form, "\n");

        fputs(".B ", out);
        put(out, manual->invocation, strlen(manual->invocation));
        fputs("\n[OPTION...] ", out);
        put(out, form, length);
        fputs("\n.br\n", out);
        form += length + (form[length] == '\n');
    } while (*form);
}

static void print_option(const struct argp_option *option, void *user)
{
    FILE *out = user;
    const char *open = option->flags & OPTION_ARG_OPTIONAL ? "[=" : "=", *close = *open == '[' ? "]" : "";

    if (!option->name) {
        if (option->doc) {
            fputs(".SS ", out);
            put_line(out, option->doc, strcspn(option->doc, ":"));
        }
        return;
    }
    fputs(".TP\n.B ", out);
    if (argp_has_letter(option))
        fprintf(out, "\\-%c, ", option->key);
    fputs("\\-\\-", out);
    put(out, option->name, strlen(option->name));
    if (option->arg) {
        fputs(open, out);
        put(out, option->arg, strlen(option->arg));
        fputs(close, out);
    }
    fputc('\n', out);
    if (option->doc)
        put_line(out, option->doc, strlen(option->doc));
}

void manual_write(FILE *out, const struct manual *manual)
{
    const struct argp more = {.options = manual->more};
    CLEANUP(free_ptr) char *before = xstrdup(manual->argp->doc ? manual->argp->doc : "");
    CLEANUP(free_ptr) char *after = argp_text_after(manual->argp);

    before[strcspn(before, "\v")] = '\0';
    manual_begin(out, manual->name, manual->section, manual->summary);
    synopsis(out, manual);
    manual_heading(out, "DESCRIPTION");
    manual_text(out, before);
    manual_heading(out, "OPTIONS");
    argp_each_option(manual->argp, print_option, out);
    argp_each_option(&more, print_option, out);
    if (after) {
        manual_heading(out, "NOTES");
        manual_text(out, after);
    }
    manual_heading(out, "EXIT STATUS");
    manual_text(out, "0: done; 1: failed; 2: wrong usage. Messages go to standard error, one line each.");
    manual_heading(out, "SEE ALSO");
    manual_text(out, manual->see_also);
    fputc('\n', out);
}
