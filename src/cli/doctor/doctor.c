#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/show/term.h"

#define READ_LIMIT_BYTES ((size_t)1 << 20)
#define TEXT_COLUMN      22 /* where the findings begin */
#define NARROWEST        20 /* columns for it, however narrow the terminal */

void doctor_init(struct doctor *doctor, struct cli *cli)
{
    *doctor = (struct doctor){.cli = cli, .root = ""};
    config_init_default(&doctor->config);
}

void doctor_release(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].found);
        free(doctor->findings[i].remedy);
    }
    free(doctor->findings);
    json_decref(doctor->status);
    config_release(&doctor->config);
}

void doctor_find(struct doctor *doctor, const char *check, enum doctor_mark mark, const char *remedy,
                 const char *format, ...)
{
    CLEANUP(free_ptr) char *text = NULL;
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    array_reserve(doctor->findings, doctor->capacity, doctor->count + 1);
    doctor->findings[doctor->count++] = (struct doctor_finding){
        .check = check, .mark = mark, .found = term_escape(text), .remedy = remedy ? term_escape(remedy) : NULL};
}

char *doctor_path(const struct doctor *doctor, const char *path)
{
    return xasprintf("%s%s", doctor->root, path);
}

char *doctor_read(const struct doctor *doctor, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *whole = doctor_path(doctor, path);
    char *text = NULL;
    size_t length;

    return file_read(whole, READ_LIMIT_BYTES, &text, &length, err) ? NULL : text;
}

const char *doctor_mark_name(enum doctor_mark mark)
{
    static const char *const names[] = {"ok", "warn", "fail", "skip"};

    return names[mark];
}

size_t doctor_count(const struct doctor *doctor, enum doctor_mark mark)
{
    size_t count = 0;

    for (size_t i = 0; i < doctor->count; i++)
        count += doctor->findings[i].mark == mark;
    return count;
}

/* ---- For people ---- */

/* How many bytes of the text make a line of at most `width` columns: up to a blank. Of a longer word, as much as
 * fits. */
static size_t line_length(const char *text, size_t width)
{
    size_t columns = 0, at = 0, blank = 0;

    while (text[at]) {
        if (text[at] == ' ')
            blank = at;
        if (columns == width)
            return blank ? blank : at;
        columns++;
        do
            at++;
        while (((unsigned char)text[at] & 0xc0) == 0x80); /* the rest of a character of UTF-8 */
    }
    return at;
}

/* The first line stands behind the text that is in the line already; the others are indented. */
static void wrap(const char *text, int indent, int width, struct strbuf *out)
{
    size_t room = width - indent > NARROWEST ? (size_t)(width - indent) : NARROWEST;

    for (bool first = true; *text; first = false) {
        size_t length = line_length(text, room);
        if (!first)
            strbuf_printf(out, "%*s", indent, "");
        strbuf_append(out, text, length);
        strbuf_puts(out, "\n");
        text += length;
        text += strspn(text, " ");
    }
}

static void format_finding(const struct doctor_finding *finding, int width, bool colour, struct strbuf *out)
{
    static const enum term_style styles[] = {STYLE_GREEN, STYLE_YELLOW, STYLE_RED, STYLE_DIM};
    const char *mark = doctor_mark_name(finding->mark);

    if (colour)
        strbuf_printf(out, "%s%-4s%s", term_style_start(styles[finding->mark]), mark, TERM_STYLE_END);
    else
        strbuf_printf(out, "%-4s", mark);
    strbuf_printf(out, "  %-*s", TEXT_COLUMN - 6, finding->check);
    wrap(*finding->found ? finding->found : "-", TEXT_COLUMN, width, out);
    if (finding->remedy) {
        strbuf_printf(out, "%*s-> ", TEXT_COLUMN, "");
        wrap(finding->remedy, TEXT_COLUMN + 3, width, out);
    }
}

void doctor_format(const struct doctor *doctor, int width, bool colour, struct strbuf *out)
{
    size_t fails = doctor_count(doctor, DOCTOR_FAIL), warns = doctor_count(doctor, DOCTOR_WARN),
           skips = doctor_count(doctor, DOCTOR_SKIP);

    for (size_t i = 0; i < doctor->count; i++)
        format_finding(&doctor->findings[i], width, colour, out);
    strbuf_printf(out, "\n%zu %s, %zu %s", fails, fails == 1 ? "check fails" : "checks fail", warns,
                  warns == 1 ? "warns" : "warn");
    if (skips)
        strbuf_printf(out, ", %zu %s not made", skips, skips == 1 ? "was" : "were");
    strbuf_puts(out, "\n");
}

json_t *doctor_json(const struct doctor *doctor)
{
    json_t *checks = json_array();

    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        json_array_append_new(checks, json_pack("{s:s, s:s, s:s, s:s?}", "check", finding->check, "mark",
                                                doctor_mark_name(finding->mark), "found", finding->found, "remedy",
                                                finding->remedy));
    }
    return json_pack("{s:b, s:o}", "ok", doctor_count(doctor, DOCTOR_FAIL) == 0, "checks", checks);
}
