/* An estimate for people. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/estimate/estimate.h"
#include "cli/show/table.h"
#include "cli/show/term.h"

static void print_memory(const struct estimate_answer *answer, int32_t quantile_permille)
{
    const struct estimate *e = &answer->estimate;
    char bytes[UNITS_TEXT], median[UNITS_TEXT], low[UNITS_TEXT];

    printf("Memory       %s%s", e->lower_bound ? "at least " : "", format_bytes(e->bytes, bytes));
    if (e->median_bytes != e->bytes)
        printf(" at quantile %.3g; median %s", quantile_permille / 1000.0, format_bytes(e->median_bytes, median));
    if (answer->low_bytes < e->bytes)
        printf(", range %s to %s", format_bytes(answer->low_bytes, low), bytes);
    putchar('\n');
}

static void print_activity(const struct estimate *estimate)
{
    if (estimate->smact_permille < 0) {
        puts("SM activity  not known");
        return;
    }
    printf("SM activity  %.0f%% while alone on the GPU", estimate->smact_permille / 10.0);
    if (estimate->smocc_permille >= 0)
        printf(", occupancy %.0f%%", estimate->smocc_permille / 10.0);
    putchar('\n');
}

/* "52.2", "1240" */
static void print_model(const struct estimate_input *input)
{
    const struct training *training = &input->question.training;
    CLEANUP(free_ptr) char *from = term_escape(input->from);

    if (!input->from)
        return;
    printf("Model        %s", from);
    if (input->configured)
        printf(", %s", input->capture.model);
    else if (input->has_capture)
        printf(", captured with PyTorch %s", input->capture.torch);
    else
        printf(", %s", summary_format_name(input->summary.format));
    printf("; batch size %" PRId64 ", %s, %s\n", training->batch_size, optimizer_name(training->optimizer),
           precision_name(training->precision));
}

void estimate_print(const struct estimate_input *input, const struct estimate_answer *answer)
{
    const struct machine_profile *profile = &input->profile;
    char memory[UNITS_TEXT];

    print_memory(answer, input->question.quantile_permille);
    print_activity(&answer->estimate);
    print_model(input);
    printf("GPU          %s (%s): %s %s that jobs can have\n", profile->gpu, profile->name,
           answer->estimate.exceeds_gpu   ? "does not fit into the"
           : answer->estimate.lower_bound ? "may or may not fit into the"
                                          : "fits into the",
           format_bytes(profile->memory_bytes, memory));
    printf("Source       %s, confidence %.2f\n", answer->estimate.source,
           answer->estimate.confidence_permille / 1000.0);
}

static void put_bytes(struct table *table, int64_t bytes)
{
    char text[UNITS_TEXT];

    table_cell(table, STYLE_NONE, "%s", format_bytes(bytes, text));
}

static void put_remarks(struct table *table, const struct estimate_answer *answer)
{
    const struct estimate *e = &answer->estimate;
    CLEANUP(strbuf_release) struct strbuf text = {0};

    if (answer->estimator == &estimator_auto)
        strbuf_printf(&text, "by %s", e->source);
    if (e->exceeds_gpu)
        strbuf_printf(&text, "%smore than the GPU has", text.length ? "; " : "");
    if (*e->warning)
        strbuf_printf(&text, "%s%s", text.length ? "; " : "", e->warning);
    table_cell(table, STYLE_NONE, "%s", text.length ? text.text : "");
}

static void put_answer(struct table *table, const struct estimate_answer *answer)
{
    const struct estimate *e = &answer->estimate;

    if (!answer->known) {
        table_cell(table, STYLE_DIM, "-");
        table_cell(table, STYLE_DIM, "-");
        table_cell(table, STYLE_DIM, "-");
        table_cell(table, STYLE_DIM, "-");
        table_cell(table, STYLE_DIM, "%s", answer->why_not.text);
        return;
    }
    put_bytes(table, e->bytes);
    put_bytes(table, e->median_bytes);
    if (e->smact_permille < 0)
        table_cell(table, STYLE_DIM, "-");
    else
        table_cell(table, STYLE_NONE, "%.0f%%", e->smact_permille / 10.0);
    table_cell(table, STYLE_NONE, "%.2f", e->confidence_permille / 1000.0);
    put_remarks(table, answer);
}

void estimate_print_all(const struct estimate_input *input, const struct estimate_answer *answers, size_t count)
{
    static const struct table_column columns[] = {
        {"ESTIMATOR", false, 0, 0}, {"MEMORY", true, 0, 0},     {"MEDIAN", true, 0, 2},
        {"SM ACT", true, 0, 3},     {"CONFIDENCE", true, 0, 4}, {"", false, 20, 1, true},
    };
    struct table *table = table_new(columns, array_size(columns));

    print_model(input);
    printf("GPU          %s (%s)\n\n", input->profile.gpu, input->profile.name);
    for (size_t i = 0; i < count; i++) {
        table_cell(table, STYLE_NONE, "%s", answers[i].estimator->name);
        put_answer(table, &answers[i]);
    }
    table_print(table);
}

#define BAR_WIDTH 32

void estimate_print_parts(const struct estimate_parts *parts)
{
    static const struct table_column columns[] = {
        {"WHAT", false, 24, 0}, {"SIZE", true, 0, 0}, {"SHARE", true, 0, 2}, {"", false, 0, 1}};
    struct table *table = table_new(columns, array_size(columns));
    int64_t total = 0;

    for (size_t i = 0; i < parts->count; i++)
        total += parts->items[i].layer ? 0 : parts->items[i].bytes;
    for (size_t i = 0; i < parts->count; i++) {
        const struct estimate_part *part = &parts->items[i];
        CLEANUP(free_ptr) char *name = term_escape(part->name);
        CLEANUP(free_ptr) char *bar = term_bar((double)part->bytes, (double)total, BAR_WIDTH);
        enum term_style style = part->layer ? STYLE_DIM : STYLE_NONE;
        char size[UNITS_TEXT];
        table_cell(table, style, "%s%s", part->layer ? "  " : "", name);
        if (part->bytes < 0)
            table_cell(table, style, "-%s", format_bytes(-part->bytes, size));
        else
            table_cell(table, style, "%s", format_bytes(part->bytes, size));
        table_cell(table, style, "%.1f%%", total ? 100.0 * (double)part->bytes / (double)total : 0);
        table_cell(table, part->layer ? STYLE_DIM : STYLE_BLUE, "%s", bar);
    }
    printf("\nAt the peak, %s\n", parts->when ? parts->when : "with all that is allocated then");
    table_print(table);
}
