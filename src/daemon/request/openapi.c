/* How this file works: routes.def names the paths, schemas.def what they take and give, in a short notation that
 * add_members() and read_type() turn into JSON Schema (2020-12). The members that follow from other tables (a job's
 * fields, its view, the accounting's columns, states, reasons) are added by the functions that schemas.def names. */
#include "daemon/request/openapi.h"

#include <stdbool.h>
#include <string.h>

#include "api/job_field.h"
#include "base/memory.h"
#include "core/job.h"
#include "core/reason.h"

/* ---- Types ---- */

struct schema {
    const char *name;
    void (*add)(json_t *schema);
    const char *members;
};

static const struct schema *schema_named(const char *name, size_t length);

static json_t *a(const char *type, const char *about)
{
    return json_pack("{s:s, s:s*}", "type", type, "description", about);
}

static json_t *named(const char *name, size_t length)
{
    static const struct {
        const char *name, *type, *about;
    } basic[] = {
        {"int", "integer", NULL},
        {"number", "number", NULL},
        {"text", "string", NULL},
        {"bool", "boolean", NULL},
        {"bytes", "integer", "bytes"},
        {"permille", "integer", "thousandths"},
        {"ns", "integer", "nanoseconds: a duration, of node time"},
        {"moment", "integer", "nanoseconds since 1970"},
        {"flag", "string", "said without a value"},
    };

    for (size_t i = 0; i < array_size(basic); i++)
        if (strlen(basic[i].name) == length && strncmp(basic[i].name, name, length) == 0)
            return a(basic[i].type, basic[i].about);
    if (length == 4 && strncmp(name, "time", length) == 0)
        return json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
    if (length == 3 && strncmp(name, "any", length) == 0)
        return json_object();
    CLEANUP(free_ptr) char *path = xasprintf("#/components/schemas/%.*s", (int)length, name);
    return json_pack("{s:s}", "$ref", path);
}

static json_t *or_null(json_t *type)
{
    json_t *name = json_object_get(type, "type");

    if (!name)
        return json_pack("{s:[o, {s:s}]}", "anyOf", type, "type", "null");
    json_object_set_new(type, "type", json_pack("[O, s]", name, "null"));
    return type;
}

static json_t *read_type(const char **at)
{
    char opened = **at;
    json_t *type;
    size_t length;

    if (opened == '[' || opened == '{') {
        ++*at;
        type = read_type(at);
        type = opened == '[' ? json_pack("{s:s, s:o}", "type", "array", "items", type)
                             : json_pack("{s:s, s:o}", "type", "object", "additionalProperties", type);
        ++*at;
    } else {
        length = strcspn(*at, " ?]}");
        type = named(*at, length);
        *at += length;
    }
    if (**at == '?') {
        ++*at;
        type = or_null(type);
    }
    return type;
}

static void put(json_t *schema, const char *name, json_t *type, bool required)
{
    json_object_set_new(json_object_get(schema, "properties"), name, type);
    if (required)
        json_array_append_new(json_object_get(schema, "required"), json_string(name));
}

static void add_members(json_t *schema, const char *at)
{
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " :?");
        CLEANUP(free_ptr) char *name = xstrndup(at, length);
        bool required = at[length] != '?';

        at += length;
        if (*name == '@') {
            add_members(schema, schema_named(name + 1, length - 1)->members);
            continue;
        }
        at += required ? 1 : 2;
        put(schema, name, read_type(&at), required);
    }
}

static json_t *object(void)
{
    return json_pack("{s:s, s:{}, s:[]}", "type", "object", "properties", "required");
}

/* ---- What other tables have ---- */

static json_t *field_type(const struct job_field *field)
{
    json_t *type;

    switch (job_field_kind(field)) {
    case KIND_TEXT:
        type = a("string", field->help);
        break;
    case KIND_LIST:
        type = json_pack("{s:s, s:s, s:{s:s}, s:I, s:I}", "type", "array", "description", field->help, "items", "type",
                         "string", "minItems", (json_int_t)field->low, "maxItems", (json_int_t)field->high);
        break;
    case KIND_BOOL:
        type = a("boolean", field->help);
        break;
    default:
        type = json_pack("{s:s, s:s, s:I, s:I}", "type", "integer", "description", field->help, "minimum",
                         (json_int_t)field->low, "maximum", (json_int_t)field->high);
    }
    return field->required ? type : or_null(type);
}

static void add_fields(json_t *schema)
{
    for (size_t i = 0; i < job_field_count; i++)
        put(schema, job_fields[i].name, field_type(&job_fields[i]), job_fields[i].required);
}

static void add_edited(json_t *schema)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].edited || strcmp(job_fields[i].name, "signal_before_ns") == 0)
            put(schema, job_fields[i].name, field_type(&job_fields[i]), false);
}

/* A moment is told twice: base/json/moment.h. */
static void put_moment(json_t *schema, const char *name)
{
    CLEANUP(free_ptr)
    char *members = xasprintf("%s:moment? %.*s:time?", name, (int)(strlen(name) - strlen("_ns")), name);

    add_members(schema, members);
}

#define HIDDEN(name)
#define PLAIN(name)  put(schema, name, named("int", 3), true);
#define OVER_0(name) put(schema, name, or_null(named("int", 3)), true);
#define FROM_0       OVER_0
#define MOMENT(name) put_moment(schema, name);
#define WORD(name)   put(schema, name, or_null(named("text", 4)), true);

static void add_view(json_t *schema)
{
#define VIEW(part, type, member, first, form) form(#member)
#include "daemon/view/view_fields.def"
#define TIME       MOMENT
#define NUMBER     OVER_0
#define BYTES      OVER_0
#define PERCENT    OVER_0
#define DURATION   OVER_0
#define FLAG(name) put(schema, name, named("bool", 4), true);
#define STATE(part, type, member, kind, name)
#define SHOWN(part, type, member, kind, name, absent, form, title) form(name)
#include "core/job_state.def"
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].option && !job_fields[i].apart &&
            !json_object_get(json_object_get(schema, "properties"), job_fields[i].name))
            put(schema, job_fields[i].name, field_type(&job_fields[i]), false);
}

static void add_history(json_t *schema)
{
#define COLUMN(type, member, kind, sums, form, name) form(name)
#include "store/history.def"
}

static void add_grounds(json_t *schema)
{
#define CLOSED(member, reason)                                                                                         \
    if (strcmp(#member, "lost") != 0)                                                                                  \
        put(schema, #member, named("bool", 4), false);
#include "core/gpus/closed.def"
}

/* The schema becomes one of these words. */
static void one_of(json_t *schema, json_t *words)
{
    json_object_clear(schema);
    json_object_set_new(schema, "type", json_string("string"));
    json_object_set_new(schema, "enum", words);
}

static void add_states(json_t *schema)
{
    json_t *words = json_array();

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        json_array_append_new(words, json_string(job_state_name(state)));
    one_of(schema, words);
}

static void add_reasons(json_t *schema)
{
    json_t *words = json_array();

    for (uint32_t code = REASON_NONE + 1; code < REASON_CODE_COUNT; code++)
        json_array_append_new(words, json_string(reason_name(code)));
    one_of(schema, words);
}

static const struct schema schemas[] = {
#define SCHEMA(name, add, members) {#name, add, members},
#include "daemon/request/schemas.def"
};

static const struct schema *schema_named(const char *name, size_t length)
{
    const struct schema *schema = schemas;

    while (strlen(schema->name) != length || strncmp(schema->name, name, length) != 0)
        schema++;
    return schema;
}

static json_t *schemas_to_json(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < array_size(schemas); i++) {
        json_t *schema = object();
        add_members(schema, schemas[i].members);
        if (schemas[i].add)
            schemas[i].add(schema);
        json_object_set_new(all, schemas[i].name, schema);
    }
    return all;
}

/* ---- Routes ---- */

enum who { ANYBODY, OWNER, USER, ADMINISTRATORS, ROOT };

static const struct route {
    const char *method, *path;
    enum who who;
    const char *query, *body;
    int status;
    const char *answer, *help;
} routes[] = {
#define ROUTE(method, path, handler, who, query, body, status, answer, help)                                           \
    {#method, path, who, query, body, status, answer, help},
#include "daemon/request/routes.def"
};

/* The members of the path, and of the query. */
static json_t *parameters_of(const struct route *route)
{
    json_t *list = json_array(), *query = object(), *required = json_object_get(query, "required"), *type, *one;
    const char *name;
    size_t i;

    for (const char *at = route->path; (at = strchr(at, '{')); at++) {
        CLEANUP(free_ptr) char *part = xstrndup(at + 1, strcspn(at, "}") - 1);
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", part, "in", "path", "required", 1,
                                              "schema", "type", "string"));
    }
    add_members(query, route->query);
    json_object_foreach (json_object_get(query, "properties"), name, type) {
        bool needed = false;
        json_array_foreach (required, i, one)
            needed |= strcmp(json_string_value(one), name) == 0;
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:O}", "name", name, "in", "query", "required",
                                              needed, "allowEmptyValue", !needed, "schema", type));
    }
    json_decref(query);
    return list;
}

static json_t *content_of(const char *answer)
{
    bool media = strchr(answer, '/');
    CLEANUP(free_ptr) char *path = xasprintf("#/components/schemas/%s", answer);

    return media ? json_pack("{s:{s:{}}}", answer, "schema")
                 : json_pack("{s:{s:{s:s}}}", "application/json", "schema", "$ref", path);
}

/* In the words of docs/formats/http.md. */
static const struct {
    const char *status, *about;
    bool with_part, with_change;
} failures[] = {
    {"400", "Malformed.", false, false},
    {"401", "By TCP: no token.", false, false},
    {"403", "Not yours; or a web page's request.", false, false},
    {"404", "There is no such thing.", true, false},
    {"409", "Its state forbids it.", false, true},
    {"413", "Too large.", false, true},
    {"422", "It can never run here.", false, true},
    {"503", "Not now: too many requests are under way, the daemon stops, or nothing can be stored.", false, false},
};

static json_t *responses_of(const struct route *route)
{
    bool changes = strcmp(route->method, "GET") != 0, parts = changes || strchr(route->path, '{');
    CLEANUP(free_ptr) char *status = xasprintf("%d", route->status);
    json_t *answer = json_pack("{s:s}", "description", route->help), *all = json_object();

    if (*route->answer)
        json_object_set_new(answer, "content", content_of(route->answer));
    json_object_set_new(all, status, answer);
    for (size_t i = 0; i < array_size(failures); i++) {
        CLEANUP(free_ptr) char *path = xasprintf("#/components/responses/%s", failures[i].status);
        if ((changes || !failures[i].with_change) && (parts || !failures[i].with_part))
            json_object_set_new(all, failures[i].status, json_pack("{s:s}", "$ref", path));
    }
    return all;
}

static json_t *operation_of(const struct route *route)
{
    static const char *const who[] = {
        [ANYBODY] = "every user",
        [OWNER] = "the job's user, and administrators",
        [USER] = "the job's user",
        [ADMINISTRATORS] = "administrators",
        [ROOT] = "root, on the Unix socket",
    };
    CLEANUP(free_ptr) char *about = xasprintf("For %s.", who[route->who]), *id = NULL;

    id = xasprintf("%s%s", route->method, route->path);
    for (char *at = id; *at; at++) /* a name in every language */
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at >= 'a' && *at <= 'z' ? *at : '_';
    return json_pack("{s:s, s:s, s:s, s:o, s:o*, s:o}", "operationId", id, "summary", route->help, "description", about,
                     "parameters", parameters_of(route), "requestBody",
                     *route->body ? json_pack("{s:b, s:o}", "required", 1, "content", content_of(route->body)) : NULL,
                     "responses", responses_of(route));
}

static json_t *paths_to_json(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < array_size(routes); i++) {
        json_t *path = json_object_get(all, routes[i].path);
        if (!path) {
            path = json_object();
            json_object_set_new(all, routes[i].path, path);
        }
        CLEANUP(free_ptr) char *method = xstrdup(routes[i].method);
        for (char *at = method; *at; at++)
            *at = (char)(*at | 0x20);
        json_object_set_new(path, method, operation_of(&routes[i]));
    }
    return all;
}

static json_t *failures_to_json(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < array_size(failures); i++)
        json_object_set_new(all, failures[i].status,
                            json_pack("{s:s, s:o}", "description", failures[i].about, "content", content_of("Error")));
    return all;
}

static json_t *document(void)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], s:[{}, {s:[]}], s:o, s:{s:o, s:o, s:{s:{s:s, "
                     "s:s}}}}",
                     "openapi", "3.1.0", "info", "title", "carma", "version", CARMA_VERSION, "description",
                     "GPUs that are shared among training jobs: docs/formats/http.md explains the members.", "license",
                     "name", "Apache-2.0", "identifier", "Apache-2.0", "servers", "url", "/", "security", "token",
                     "paths", paths_to_json(), "components", "schemas", schemas_to_json(), "responses",
                     failures_to_json(), "securitySchemes", "token", "type", "http", "scheme", "bearer");
}

const char *openapi_text(void)
{
    static char *text;

    if (!text) {
        json_t *json = document();
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
    }
    return text;
}
