#include "estimate/summary/read_footer.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

static const char *const count_names[FOOTER_COUNT_COUNT] = {
    [FOOTER_TOTAL] = "Total params",
    [FOOTER_TRAINABLE] = "Trainable params",
    [FOOTER_NON_TRAINABLE] = "Non-trainable params",
    [FOOTER_OPTIMIZER] = "Optimizer params",
};

static const char *const size_names[FOOTER_SIZE_COUNT] = {
    [FOOTER_INPUT] = "Input size",
    [FOOTER_PASS] = "Forward/backward pass size",
    [FOOTER_PARAMETERS] = "Params size",
    [FOOTER_SUM] = "Estimated Total Size",
};

/* A number with `unit` before it: half of its last digit may have been rounded away. */
static bool read_value(struct slice text, double unit, struct footer_value *value)
{
    size_t point = slice_find_char(text, '.');

    if (!parse_decimal(text, &value->value))
        return false;
    value->value *= unit;
    if (unit == 1 && point == text.length)
        return true; /* a count */
    value->slack = 0.5 * unit;
    for (size_t i = point + 1; i < text.length; i++)
        value->slack /= 10;
    value->slack += value->value * 1e-9; /* of this arithmetic itself */
    return true;
}

/* "M", "Units.MEGABYTES", "MB" in parentheses; 0: none that is known. */
static double read_unit(struct slice text, double megabyte)
{
    const double kilobyte = megabyte == 1e6 ? 1e3 : 1024;
    const struct {
        const char *name;
        double unit;
    } units[] = {
        {"M", 1e6},
        {"Units.MEGABYTES", 1e6},
        {"G", 1e9},
        {"Units.GIGABYTES", 1e9},
        {"T", 1e12},
        {"Units.TERABYTES", 1e12},
        {"B", 1},
        {"kB", kilobyte},
        {"KB", kilobyte},
        {"MB", megabyte},
        {"GB", megabyte * kilobyte},
        {"TB", megabyte * megabyte},
    };

    for (size_t i = 0; i < array_size(units); i++)
        if (slice_is(text, units[i].name))
            return units[i].unit;
    return 0;
}

/* The text behind a line's name: "[ (UNIT)]: NUMBER[ (SIZE)]". */
static int read_rest(const struct reader *reader, struct slice rest, double megabyte, struct footer_value *value)
{
    char quoted[QUOTE_SIZE];
    double unit = 1;
    size_t end;

    rest = slice_trim(rest);
    if (slice_starts(rest, "(")) {
        end = slice_find_char(rest, ')');
        unit = end < rest.length ? read_unit((struct slice){rest.text + 1, end - 1}, megabyte) : 0;
        if (unit == 0)
            return reader_error(reader, "'%s' has no unit known here (kB, MB, GB, M, G, T)",
                                quote(quoted, reader->line));
        rest = slice_from(rest, end + 1);
    }
    if (!slice_starts(rest, ":"))
        return 0;
    rest = slice_trim(slice_from(rest, 1));
    end = slice_find(rest, " (");
    if (value->line > 0)
        return reader_error(reader, "'%s' is there twice, here and in line %u", quote(quoted, slice_trim(reader->line)),
                            value->line);
    if (!read_value(slice_to(rest, end), unit, value))
        return reader_error(reader, "'%s' is not a number", quote(quoted, rest));
    value->line = reader->number;
    return 1;
}

int footer_read_line(struct footer *footer, const struct reader *reader, double megabyte)
{
    struct slice line = slice_trim(reader->line);

    for (int i = 0; i < FOOTER_COUNT_COUNT; i++)
        if (slice_starts(line, count_names[i]))
            return read_rest(reader, slice_from(line, strlen(count_names[i])), megabyte, &footer->counts[i]);
    for (int i = 0; i < FOOTER_SIZE_COUNT; i++)
        if (slice_starts(line, size_names[i]))
            return read_rest(reader, slice_from(line, strlen(size_names[i])), megabyte, &footer->sizes[i]);
    if (slice_starts(line, "Total mult-adds"))
        return read_rest(reader, slice_from(line, strlen("Total mult-adds")), megabyte, &footer->operations);
    return 0;
}

static bool add_up(const struct footer_value *sum, const struct footer_value *parts, int count)
{
    double value = 0, slack = sum->slack;

    for (int i = 0; i < count; i++) {
        value += parts[i].value;
        slack += parts[i].slack;
    }
    return fabs(value - sum->value) <= slack;
}

int footer_check(const struct footer *footer, const struct reader *reader)
{
    const struct footer_value *counts = footer->counts, *sizes = footer->sizes;

    if (counts[FOOTER_TOTAL].line && counts[FOOTER_TRAINABLE].line && counts[FOOTER_NON_TRAINABLE].line &&
        !add_up(&counts[FOOTER_TOTAL], &counts[FOOTER_TRAINABLE], 3))
        return reader_contradiction(
            reader, counts[FOOTER_TOTAL].line,
            "the totals contradict each other: %.0f params are not %.0f trainable and %.0f others",
            counts[FOOTER_TOTAL].value, counts[FOOTER_TRAINABLE].value,
            counts[FOOTER_NON_TRAINABLE].value + counts[FOOTER_OPTIMIZER].value);
    if (sizes[FOOTER_SUM].line && !add_up(&sizes[FOOTER_SUM], &sizes[FOOTER_INPUT], 3))
        return reader_contradiction(reader, sizes[FOOTER_SUM].line,
                                    "the sizes contradict each other: their sum is not the estimated total size");
    return 0;
}

int footer_check_rows(const struct footer *footer, const struct reader *reader, int64_t parameters)
{
    const struct footer_value *total = &footer->counts[FOOTER_TOTAL];
    const double value = total->value - footer->counts[FOOTER_OPTIMIZER].value;

    if (total->line && fabs((double)parameters - value) > total->slack)
        return reader_contradiction(
            reader, total->line, "the rows have %lld parameters in all, the total says %.0f: has a part been left out?",
            (long long)parameters, value);
    return 0;
}

static void settle_frozen(struct reader *reader, int64_t frozen)
{
    struct layer_list *list = reader->list;
    int64_t sum = 0;
    size_t end = 0;

    for (; end < list->count && sum < frozen; end++)
        if (!list->items[end].container)
            sum += list->items[end].parameters;
    if (sum != frozen) {
        reader_warn(reader, reader->number, "%lld parameters are not trained, but not which: taken as trained",
                    (long long)frozen);
        return;
    }
    for (size_t i = 0; i < end; i++)
        list->items[i].frozen = list->items[i].parameters > 0;
}

void footer_apply(const struct footer *footer, struct reader *reader, int64_t buffers)
{
    const struct footer_value *counts = footer->counts;
    struct layer_list *list = reader->list;
    int64_t frozen = 0, others = (int64_t)counts[FOOTER_NON_TRAINABLE].value - buffers;

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].frozen && !list->items[i].container)
            frozen += list->items[i].parameters;
    if (counts[FOOTER_TOTAL].line)
        list->total_parameters = (int64_t)(counts[FOOTER_TOTAL].value - counts[FOOTER_OPTIMIZER].value);
    if (counts[FOOTER_TRAINABLE].line)
        list->trainable_parameters = (int64_t)counts[FOOTER_TRAINABLE].value;
    if (frozen == 0 && others > 0)
        settle_frozen(reader, others);
}
