/* Usage: print-job-fields python|markdown: the fields of a job for the Python client, and as docs/formats/job.md.
 * print-job-fields records <GOLDEN: the golden records with the members and types that they lack. script/job-fields
 * writes all three. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api/job_field.h"
#include "api/record_json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/units.h"

/* In the order of enum job_field_type. */
static const struct {
    const char *name;
    const char *annotation;
    const char *json;
} types[JOB_FIELD_TYPES] = {
    {"text", "str", "text"},
    {"word", "str", "text"},
    {"path", "PathLike", "text"},
    {"file", "PathLike", "text"},
    {"content", "", "text"},
    {"list", "", "list of texts"},
    {"switch", "bool", "true or false"},
    {"count", "int", "number"},
    {"number", "int", "number"},
    {"rank", "int", "number"},
    {"size", "units.Size", "bytes"},
    {"factor", "float", "permille"},
    {"time", "units.Time", "nanoseconds"},
    {"signal", "Union[int, str]", "number"},
};

static void print_key(const char *option)
{
    for (; *option; option++)
        putchar(*option == '-' ? '_' : *option);
}

static void print_python(void)
{
    puts("\"\"\"The fields of a job. script/job-fields writes this file from src/api/job_fields.def.\"\"\"\n\n"
         "from __future__ import annotations\n\n"
         "import os\n"
         "from typing import TYPE_CHECKING, Tuple, TypedDict, Union\n\n"
         "from carma import units\n\n"
         "if TYPE_CHECKING:\n"
         "    PathLike = Union[str, os.PathLike[str]]\n\n\n"
         "class JobFields(TypedDict, total=False):\n"
         "    \"\"\"The options of `carma submit`, by the same names and in the same words "
         "(docs/formats/job.md).\"\"\"\n");
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option) {
            fputs("    ", stdout);
            print_key(job_fields[i].option);
            printf(": %s\n", types[job_fields[i].type].annotation);
        }
    puts("\n\n# The option, the member that is sent, and the kind of its value.\n"
         "FIELDS: Tuple[Tuple[str, str, str], ...] = (");
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option) {
            fputs("    (\"", stdout);
            print_key(job_fields[i].option);
            printf("\", \"%s\", \"%s\"),\n", job_fields[i].name, types[job_fields[i].type].name);
        }
    puts(")");
}

static void print_range(const struct job_field *field)
{
    char least[UNITS_TEXT], most[UNITS_TEXT];

    switch (field->type) {
    case JOB_FIELD_SWITCH:
    case JOB_FIELD_WORD:
        break;
    case JOB_FIELD_LIST:
        printf("%" PRId64 " to %" PRId64 " entries", field->low, field->high);
        break;
    case JOB_FIELD_SIZE:
        printf("%s to %s", format_bytes(field->low, least), format_bytes(field->high, most));
        break;
    case JOB_FIELD_FACTOR:
        printf("%" PRId64 " to %" PRId64, field->low / 1000, field->high / 1000);
        break;
    case JOB_FIELD_TIME:
        printf("to %s", format_duration(field->high, most));
        break;
    default:
        if (job_field_kind(field) == KIND_TEXT && field->high >= MIB)
            printf("to %s", format_bytes(field->high, most));
        else if (job_field_kind(field) == KIND_TEXT)
            printf("to %" PRId64 " bytes", field->high);
        else
            printf("%" PRId64 " to %" PRId64, field->low, field->high);
    }
}

static void print_markdown(void)
{
    puts(
        "# The fields of a job\n"
        "`script/job-fields` writes this page from `src/api/job_fields.def`.\n\n"
        "This page lists the fields of a submission by the names of each interface. An option is for the command line\n"
        "of `carma submit` and the `#CARMA` lines of a script. A `.rad` file ([rad.md](rad.md)) and the Python client\n"
        "([python](../python.md)) have the same names with `_` for `-`. For an option without a value they have `yes`\n"
        "and `True`. The HTTP API ([http.md](http.md)) and the store ([store.md](store.md)) have the member in their\n"
        "JSON.\n\n"
        "| option | member | range | |\n|---|---|---|---|");
    for (size_t i = 0; i < job_field_count; i++) {
        const struct job_field *field = &job_fields[i];
        fputs("| ", stdout);
        if (field->option && field->letter)
            printf("`-%c`, ", field->letter);
        if (field->option)
            printf("`--%s%s%s` ", field->option, field->argument ? " " : "", field->argument ? field->argument : "");
        printf("| `%s`: %s%s | ", field->name, types[field->type].json, field->required ? ", required" : "");
        print_range(field);
        printf(" | %s |\n", field->help);
    }
}

static int print_record(const struct record *record)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct error err;

    if (record_json_write(record, &text, &err) != 0)
        return fprintf(stderr, "print-job-fields: %s\n", err.text), 1;
    puts(text.text);
    return 0;
}

/* The line, with a 0 for each member that it lacks; owned by the caller. NULL: it is no object. */
static char *complete(const char *line)
{
    json_t *json = json_loads(line, 0, NULL);
    const char *type = json_string_value(json_object_get(json, "type"));
    char *text;

    for (size_t i = 0; type && i < record_field_count; i++) {
        const struct record_field *field = &record_fields[i];

        if (strcmp(record_type_name(field->type), type) == 0 && !json_object_get(json, field->name))
            json_object_set_new(json, field->name,
                                field->kind == FIELD_BOOL        ? json_false()
                                : field->kind == FIELD_TEXT      ? json_string("")
                                : field->kind == FIELD_U32_ARRAY ? json_array()
                                                                 : json_integer(0));
    }
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

/* One line of each type, in the order of core/records.def. */
static int print_records(void)
{
    CLEANUP(free_ptr) char *line = NULL;
    size_t room = 0;
    uint32_t due = RECORD_NONE + 1;
    int status = 0;

    while (status == 0 && getline(&line, &room, stdin) > 1) {
        CLEANUP(free_ptr) char *text = complete(line);
        struct record record;
        struct error err;

        if (!text || record_json_read(text, strlen(text), &record, &err) != 0)
            return fprintf(stderr, "print-job-fields: %s: %s\n", line, text ? err.text : "not a record"), 1;
        for (; due < record.type && status == 0; due++)
            status = print_record(&(struct record){.type = due, .at_ns = record.at_ns, .job = 1});
        due = record.type + 1;
        status = status ? status : print_record(&record);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "python") == 0)
        print_python();
    else if (argc == 2 && strcmp(argv[1], "markdown") == 0)
        print_markdown();
    else if (argc == 2 && strcmp(argv[1], "records") == 0)
        return print_records();
    else
        return fprintf(stderr, "usage: print-job-fields python|markdown|records\n"), 2;
    return 0;
}
