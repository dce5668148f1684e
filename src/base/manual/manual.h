/* Manual pages, in the macros of man(7), from the tables that programs parse their command lines by. */
#ifndef CARMA_BASE_MANUAL_MANUAL_H
#define CARMA_BASE_MANUAL_MANUAL_H

#include <argp.h>
#include <stdio.h>

/* A program's or a command's page. */
struct manual {
    const char *name; /* of the page: "carma-submit" */
    unsigned section;
    const char *summary;    /* one line */
    const char *invocation; /* as it is typed: "carma submit" */
    const struct argp *argp;
    const struct argp_option *more; /* options beside those of the table; NULL: none */
    const char *see_also;           /* "carma(1), carmad(8)" */
};

void manual_write(FILE *out, const struct manual *manual);

/* The pieces, for pages of another kind. Texts are plain; an empty line begins a new paragraph, and lines that begin
 * with a blank keep their form. */
void manual_begin(FILE *out, const char *name, unsigned section, const char *summary);
void manual_heading(FILE *out, const char *title);
void manual_text(FILE *out, const char *text);
void manual_item(FILE *out, const char *term, const char *text);

#endif
