#include "trace/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "trace/gunzip.h"

/* Cuts the next line out of the text; NULL at the end. Binary data is refused here, so that no value that a message
 * repeats can hold a control character. */
static int next_line(struct csv *csv, char **line, struct error *err)
{
    size_t left = (size_t)(csv->end - csv->next), length;
    char *newline;

    *line = NULL;
    if (left == 0)
        return 0;
    csv->line++;
    newline = memchr(csv->next, '\n', left < CSV_MAX_LINE + 1 ? left : CSV_MAX_LINE + 1);
    if (!newline && left > CSV_MAX_LINE)
        return csv_error(csv, err, "the line is longer than %zu bytes: split the file into lines", CSV_MAX_LINE);
    length = newline ? (size_t)(newline - csv->next) : left;
    *line = csv->next;
    csv->next += newline ? length + 1 : length;
    (*line)[length] = '\0';
    if (length && (*line)[length - 1] == '\r')
        (*line)[--length] = '\0';
    if (length >= 2 && memcmp(*line + length - 2, "\r\"", 2) == 0) { /* some tools put a line's end inside its quotes */
        (*line)[length - 2] = '"';
        (*line)[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)(*line)[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return csv_error(csv, err, "byte 0x%02x at column %zu: this is not a text file", byte, i + 1);
    }
    return 1;
}

static bool is_data(const char *line)
{
    return line[strspn(line, " \t")] != '\0' && *line != '#';
}

/* Splits line in place. Returns how many fields, or -EINVAL. */
static int split(const struct csv *csv, char *line, char *fields[static CSV_MAX_COLUMNS], struct error *err)
{
    int count = 0;

    for (;;) {
        char *out;

        if (count == CSV_MAX_COLUMNS)
            return csv_error(csv, err, "more than %d columns: remove those that no format page names", CSV_MAX_COLUMNS);
        fields[count++] = out = line;
        if (*line == '"') {
            for (line++; *line != '"' || line[1] == '"'; line++) {
                if (!*line)
                    return csv_error(csv, err, "field %d opens a quote that the line does not close", count);
                line += *line == '"';
                *out++ = *line;
            }
            line++;
            if (*line && *line != ',')
                return csv_error(csv, err, "field %d goes on after its closing quote", count);
        } else {
            while (*line && *line != ',')
                line++;
            out = line;
        }
        if (!*line) {
            *out = '\0';
            return count;
        }
        line++;
        *out = '\0';
    }
}

/* The file's kind, by the marks that its header has. */
static size_t find_table(const struct csv_table *tables, size_t table_count, char *const *fields, int count)
{
    for (size_t table = 1; table < table_count; table++)
        for (int i = 0; i < count; i++)
            if (strcmp(tables[table].columns[tables[table].mark].name, fields[i]) == 0)
                return table;
    return 0;
}

static int map_columns(struct csv *csv, char *const *fields, int count, struct error *err)
{
    bool seen[CSV_MAX_COLUMNS] = {false};

    for (int i = 0; i < count; i++) {
        size_t column = 0;
        while (column < csv->column_count && strcmp(csv->columns[column].name, fields[i]) != 0)
            column++;
        if (column == csv->column_count)
            return csv_error(csv, err, "unknown column '%.40s': remove it or correct its name", fields[i]);
        if (seen[column])
            return csv_error(csv, err, "column '%s' occurs twice: remove one", fields[i]);
        seen[column] = true;
        csv->column_of[i] = column;
    }
    for (size_t column = 0; column < csv->column_count; column++)
        if (csv->columns[column].required && !seen[column])
            return csv_error(csv, err, "no column '%s': add it to the header and every row", csv->columns[column].name);
    csv->field_count = (size_t)count;
    return 0;
}

static int read_header(struct csv *csv, const struct csv_table *tables, size_t table_count, struct error *err)
{
    char *fields[CSV_MAX_COLUMNS], *line;
    int count;

    do {
        count = next_line(csv, &line, err);
        if (count < 0)
            return count;
        if (count == 0)
            return error_set(err, EINVAL, "%s: no header line: the first line names the columns, e.g. %s", csv->path,
                             tables[0].columns[0].name);
    } while (!is_data(line));
    count = split(csv, line, fields, err);
    if (count < 0)
        return count;
    csv->table = find_table(tables, table_count, fields, count);
    csv->columns = tables[csv->table].columns;
    csv->column_count = tables[csv->table].count;
    return map_columns(csv, fields, count, err);
}

/* Takes ownership of text. */
static int begin(struct csv *csv, const char *path, char *text, size_t length, const struct csv_table *tables,
                 size_t table_count, struct error *err)
{
    int rc;

    *csv = (struct csv){.path = path, .text = text};
    if (gunzip_is_packed(text, length)) {
        char *packed = steal_ptr(&csv->text);
        rc = gunzip(path, packed, length, CSV_MAX_TEXT, &csv->text, &length, err);
        free(packed);
        if (rc)
            return rc;
    }
    csv->next = csv->text;
    csv->end = csv->text + length;
    if (length >= 3 && memcmp(csv->text, "\xef\xbb\xbf", 3) == 0)
        csv->next += 3;
    rc = read_header(csv, tables, table_count, err);
    if (rc)
        csv_release(csv);
    return rc;
}

int csv_open(struct csv *csv, const char *path, const struct csv_table *tables, size_t table_count, struct error *err)
{
    char *text;
    size_t length;
    int rc = file_read(path, CSV_MAX_BYTES, &text, &length, err);

    if (rc) {
        *csv = (struct csv){.path = path};
        return rc;
    }
    return begin(csv, path, text, length, tables, table_count, err);
}

int csv_open_text(struct csv *csv, const char *path, const char *text, size_t length, const struct csv_table *tables,
                  size_t table_count, struct error *err)
{
    char *copy = xmalloc(length + 1);

    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return begin(csv, path, copy, length, tables, table_count, err);
}

int csv_next(struct csv *csv, struct error *err)
{
    char *fields[CSV_MAX_COLUMNS], *line;
    int count;

    do {
        count = next_line(csv, &line, err);
        if (count <= 0)
            return count;
    } while (!is_data(line));
    if (csv->rows == CSV_MAX_ROWS)
        return csv_error(csv, err, "more than %d rows: split the file", CSV_MAX_ROWS);
    csv->rows++;
    count = split(csv, line, fields, err);
    if (count < 0)
        return count;
    if ((size_t)count != csv->field_count)
        return csv_error(csv, err, "%d fields where the header names %zu: complete the row", count, csv->field_count);
    for (size_t column = 0; column < csv->column_count; column++)
        csv->values[column] = "";
    for (int i = 0; i < count; i++)
        csv->values[csv->column_of[i]] = fields[i];
    for (size_t column = 0; column < csv->column_count; column++)
        if (csv->columns[column].required && !*csv->values[column])
            return csv_error(csv, err, "no value for '%s': fill it in", csv->columns[column].name);
    return 1;
}

int csv_number(const struct csv *csv, size_t column, double low, double high, double factor, int64_t missing,
               int64_t *value, struct error *err)
{
    const char *text = csv->values[column], *name = csv->columns[column].name;
    char *end;
    double number;

    if (!*text) {
        *value = missing;
        return 0;
    }
    /* strtod alone would also take "inf", "nan" and "0x1p3", and blanks before the number */
    number = strspn(text, "0123456789.+-eE") == strlen(text) ? strtod(text, &end) : NAN;
    if (isnan(number) || *end || end == text)
        return csv_error(csv, err, "%s '%.40s' is not a number", name, text);
    if (!(number >= low && number <= high))
        return csv_error(csv, err, "%s %.40s is out of range: %.12g to %.12g", name, text, low, high);
    *value = llround(number * factor);
    return 0;
}

int csv_integer(const struct csv *csv, size_t column, int64_t low, int64_t high, int64_t missing, int64_t *value,
                struct error *err)
{
    struct error inner;
    int rc;

    if (!*csv->values[column]) {
        *value = missing;
        return 0;
    }
    rc = parse_integer(csv->values[column], low, high, value, &inner);
    return rc ? csv_error(csv, err, "%s: %s", csv->columns[column].name, inner.text) : 0;
}

void csv_release(struct csv *csv)
{
    free(csv->text);
    *csv = (struct csv){0};
}
