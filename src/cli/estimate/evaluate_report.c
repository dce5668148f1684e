#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/estimate/evaluate.h"
#include "cli/show/table.h"
#include "cli/show/term.h"

/* The figures of struct metrics that are fractions. */
static const struct figure {
    const char *name, *text;
    size_t offset;
} figures[] = {
    {"bin_accuracy", "best guess in the right bin", offsetof(struct metrics, bin_accuracy)},
    {"bin_below", "in a bin that is too low", offsetof(struct metrics, bin_below)},
    {"mae_mib", "mean error", offsetof(struct metrics, mae_mib)},
    {"mape", "mean error of the measured", offsetof(struct metrics, mape)},
    {"median_ape", "median of these", offsetof(struct metrics, median_ape)},
    {"worst_ape", "worst of these", offsetof(struct metrics, worst_ape)},
    {"precision", "of bins, weighted by their rows", offsetof(struct metrics, precision)},
    {"recall", "of bins, weighted by their rows", offsetof(struct metrics, recall)},
    {"f1", "of bins, weighted by their rows", offsetof(struct metrics, f1)},
    {"underestimate_rate", "answer at the quantile too low", offsetof(struct metrics, underestimate_rate)},
    {"mean_overestimate", "answer at the quantile above the measured", offsetof(struct metrics, mean_overestimate)},
};

static double figure_value(const struct metrics *metrics, const struct figure *figure)
{
    return *(const double *)(const void *)((const char *)metrics + figure->offset);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *evaluate_json(const struct evaluate_options *wanted, const struct dataset *dataset,
                      const struct evaluation *evaluation)
{
    json_t *report = json_object();
    CLEANUP(free_ptr) char *name = term_escape(wanted->dataset);

    json_object_set_new(report, "dataset", json_string(name));
    json_object_set_new(report, "estimator", json_string(wanted->estimator->name));
    json_object_set_new(report, "quantile", json_real(wanted->quantile_permille / 1000.0));
    json_object_set_new(report, "bins_gb", json_real(wanted->bins_gb));
    json_object_set_new(report, "folds", json_boolean(wanted->folds));
    json_object_set_new(report, "in_sample", json_boolean(evaluation->in_sample));
    json_object_set_new(report, "rows", json_integer((json_int_t)evaluation->metrics.rows));
    json_object_set_new(report, "out_of_memory", json_integer((json_int_t)evaluation->metrics.out_of_memory));
    json_object_set_new(report, "unanswered", json_integer((json_int_t)evaluation->unanswered));
    json_object_set_new(report, "left_out", json_integer((json_int_t)dataset->left_out));
    for (size_t i = 0; i < array_size(figures); i++)
        json_object_set_new(report, figures[i].name, number(figure_value(&evaluation->metrics, &figures[i])));
    if (evaluation->published_rows)
        json_object_set_new(report, "published",
                            json_pack("{s:I, s:o, s:o}", "rows", (json_int_t)evaluation->published_rows, "mape",
                                      number(evaluation->published_mape), "worst_ape",
                                      number(evaluation->published_worst_ape)));
    if (evaluation->smact_rows)
        json_object_set_new(report, "sm_activity",
                            json_pack("{s:I, s:o, s:o, s:b}", "rows", (json_int_t)evaluation->smact_rows, "r2",
                                      number(evaluation->smact_r2), "mae", number(evaluation->smact_mae), "in_sample",
                                      evaluation->smact_in_sample));
    return report;
}

static void put_figures(const struct evaluation *evaluation, struct table *table)
{
    for (size_t i = 0; i < array_size(figures); i++) {
        double value = figure_value(&evaluation->metrics, &figures[i]);
        table_cell(table, STYLE_NONE, "%s", figures[i].name);
        if (!isfinite(value))
            table_cell(table, STYLE_NONE, "-");
        else if (figures[i].offset == offsetof(struct metrics, mae_mib))
            table_cell(table, STYLE_NONE, "%.1f MiB", value);
        else
            table_cell(table, STYLE_NONE, "%.2f%%", 100 * value);
        table_cell(table, STYLE_DIM, "%s", figures[i].text);
    }
}

static void put_remarks(const struct evaluate_options *wanted, const struct dataset *dataset,
                        const struct evaluation *evaluation, struct strbuf *out)
{
    if (evaluation->in_sample)
        strbuf_puts(out, "In sample: models were asked about rows that they were trained on; --folds asks others.\n");
    else if (wanted->folds)
        strbuf_puts(out, "Cross-validated: no row was seen by the models that were asked about it.\n");
    if (dataset->left_out)
        strbuf_printf(out, "Left out: %zu rows without a measurement on this machine or without a capture.\n",
                      dataset->left_out);
    if (evaluation->unanswered)
        strbuf_printf(out, "Without an answer: %zu rows. The first: %s\n", evaluation->unanswered,
                      evaluation->why_unanswered);
    if (evaluation->published_rows)
        strbuf_printf(out, "Against the published %s of %zu rows: mean difference %.2f%%, worst %.2f%%.\n",
                      wanted->estimator->name, evaluation->published_rows, 100 * evaluation->published_mape,
                      100 * evaluation->published_worst_ape);
    if (evaluation->smact_rows)
        strbuf_printf(out, "SM activity of %zu rows: R2 %.3f, mean error %.3f%s.\n", evaluation->smact_rows,
                      evaluation->smact_r2, evaluation->smact_mae, evaluation->smact_in_sample ? " (in sample)" : "");
}

void evaluate_format(const struct evaluate_options *wanted, const struct dataset *dataset,
                     const struct evaluation *evaluation, int width, bool colour, struct strbuf *out)
{
    static const struct table_column columns[] = {{"FIGURE", false, 0, 0}, {"VALUE", true, 0, 0}, {"", false, 0, 1}};
    struct table *table = table_new(columns, array_size(columns));
    CLEANUP(free_ptr) char *name = term_escape(wanted->dataset);

    strbuf_printf(out, "%s on %s: %zu rows, %zu of them out of memory; bins of %g GB, quantile %g\n\n",
                  wanted->estimator->name, name, evaluation->metrics.rows, evaluation->metrics.out_of_memory,
                  wanted->bins_gb, wanted->quantile_permille / 1000.0);
    put_figures(evaluation, table);
    table_format(table, width, colour, out);
    table_free(table);
    strbuf_puts(out, "\n");
    put_remarks(wanted, dataset, evaluation, out);
}

static void put_mib(struct strbuf *out, bool known, int64_t bytes)
{
    if (known)
        strbuf_printf(out, ",%.3f", (double)bytes / (double)MIB);
    else
        strbuf_puts(out, ",");
}

static void put_fraction(struct strbuf *out, int32_t permille)
{
    if (permille >= 0)
        strbuf_printf(out, ",%g", permille / 1000.0);
    else
        strbuf_puts(out, ",");
}

void evaluate_format_rows(const struct evaluation *evaluation, struct strbuf *out)
{
    strbuf_puts(out, "name,group,key,fold,seen,out_of_memory,measured_mib,median_mib,quantile_mib,source,"
                     "confidence,sm_activity,sm_activity_estimate,horus_mib,faketensor_mib,gpumemnet_mib\n");
    for (size_t i = 0; i < evaluation->count; i++) {
        const struct evaluation_row *asked = &evaluation->rows[i];
        const struct dataset_row *row = asked->row;
        CLEANUP(free_ptr) char *name = term_escape(row->name);
        CLEANUP(free_ptr) char *group = term_escape(row->group);

        strbuf_printf(out, "%s,%s,%016llx,%d,%d,%d", name, group, (unsigned long long)row->key, dataset_fold(row),
                      asked->seen, row->out_of_memory);
        put_mib(out, true, row->measured_bytes);
        put_mib(out, asked->answered, asked->estimate.median_bytes);
        put_mib(out, asked->answered, asked->estimate.bytes);
        strbuf_printf(out, ",%s", asked->answered ? asked->estimate.source : "");
        put_fraction(out, asked->answered ? asked->estimate.confidence_permille : -1);
        put_fraction(out, row->smact_permille);
        put_fraction(out, asked->answered ? asked->estimate.smact_permille : -1);
        for (size_t p = 0; p < array_size(row->published); p++)
            put_mib(out, row->published[p] >= 0, row->published[p]);
        strbuf_puts(out, "\n");
    }
}
