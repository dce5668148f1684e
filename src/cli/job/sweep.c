#include "cli/job/sweep.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/spec.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* That of a variable. */
static bool is_name(const char *text, size_t length)
{
    bool good = length > 0 && !isdigit((unsigned char)*text);

    for (size_t i = 0; i < length; i++)
        good &= text[i] == '_' || (isalnum((unsigned char)text[i]) && (unsigned char)text[i] < 0x80);
    return good;
}

static const char *value_of(const struct sweep_parameter *parameter, size_t i)
{
    const char *value = parameter->values;

    while (i-- > 0)
        value += strlen(value) + 1;
    return value;
}

int sweep_add(struct sweep *sweep, const char *text, struct error *err)
{
    size_t length = strcspn(text, "=");
    struct sweep_parameter *parameter;
    char *at;

    if (!text[length] || !is_name(text, length))
        return error_set(err, EINVAL, "--param: '%.40s' is not NAME=VALUE,VALUE, such as lr=1e-3,1e-4", text);
    for (size_t i = 0; i < sweep->count; i++)
        if (strlen(sweep->parameters[i].name) == length && strncmp(sweep->parameters[i].name, text, length) == 0)
            return error_set(err, EINVAL, "--param: '%.*s' is there twice: name all its values at once", (int)length,
                             text);
    array_reserve(sweep->parameters, sweep->capacity, sweep->count + 1);
    parameter = &sweep->parameters[sweep->count++];
    *parameter =
        (struct sweep_parameter){.name = xstrndup(text, length), .values = xstrdup(text + length + 1), .count = 1};
    for (at = parameter->values; (at = strchr(at, ',')); *at++ = '\0')
        parameter->count++;
    for (size_t i = 0; i < parameter->count; i++)
        if (!*value_of(parameter, i))
            return error_set(err, EINVAL, "--param: a value of '%s' is empty", parameter->name);
    if (sweep_jobs(sweep) > SWEEP_MAX_JOBS)
        return error_set(err, EINVAL, "--param: '%s' makes it more than %d jobs: submit it in parts", parameter->name,
                         SWEEP_MAX_JOBS);
    return 0;
}

size_t sweep_jobs(const struct sweep *sweep)
{
    size_t jobs = 1;

    for (size_t i = 0; i < sweep->count; i++)
        jobs *= jobs > SWEEP_MAX_JOBS ? 1 : sweep->parameters[i].count;
    return jobs;
}

static void replace_all(char **text, const char *mark, const char *value)
{
    struct strbuf result = {0};
    const char *at = *text;

    if (!*text || !strstr(*text, mark))
        return;
    for (const char *found; (found = strstr(at, mark)); at = found + strlen(mark)) {
        strbuf_append(&result, at, (size_t)(found - at));
        strbuf_puts(&result, value);
    }
    strbuf_puts(&result, at);
    free(*text);
    *text = strbuf_steal(&result);
}

/* In place of one of that name, which the submitter's shell may have. */
static void set_variable(struct spec_strings *environment, const char *variable, size_t prefix)
{
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], variable, prefix) == 0) {
            free(environment->items[i]);
            environment->items[i] = xstrdup(variable);
            return;
        }
    spec_strings_add(environment, variable);
}

static void choose(struct job_spec *spec, const char *name, const char *value)
{
    CLEANUP(free_ptr) char *mark = xasprintf("{%s}", name);
    CLEANUP(free_ptr) char *variable = xasprintf("%s=%s", name, value);
    CLEANUP(free_ptr) char *title = xasprintf("%s %s", spec->name, variable);

    for (size_t i = 0; i < spec->command.count; i++)
        replace_all(&spec->command.items[i], mark, value);
    replace_all(&spec->output, mark, value);
    replace_all(&spec->error, mark, value);
    set_variable(&spec->environment, variable, strlen(name) + 1);
    free(spec->name);
    spec->name = xstrndup(title, SPEC_MAX_NAME);
}

void sweep_choose(const struct sweep *sweep, size_t number, struct job_spec *spec)
{
    size_t step = sweep_jobs(sweep);

    for (size_t i = 0; i < sweep->count; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        step /= parameter->count;
        choose(spec, parameter->name, value_of(parameter, number / step % parameter->count));
    }
}

void sweep_release(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        free(sweep->parameters[i].name);
        free(sweep->parameters[i].values);
    }
    free(sweep->parameters);
    *sweep = (struct sweep){0};
}
