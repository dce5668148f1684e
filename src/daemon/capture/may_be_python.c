#include "daemon/capture/may_be_python.h"

#include <ctype.h>
#include <string.h>

#include "api/spec.h"
#include "base/memory.h"

static const char *const programs[] = {"python", "torchrun", "accelerate", "deepspeed", "conda", "mamba", "micromamba",
                                       "uv", "uvx", "poetry", "pipenv", "pdm", "pixi", "rye", "hatch", "lightning",
                                       /* programs that packages of training install */
                                       "trl", "yolo", "litgpt", "llamafactory-cli", "axolotl", "autotrain",
                                       "fairseq-train", "nnUNetv2_train", "fabric", "horovodrun"};
static const char *const endings[] = {".py", ".sh", ".bash"};

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-+=", c));
}

/* A program's name stands at the start of a word or behind a slash, and is not part of a longer name or path. */
static bool is_program_at(const char *text, const char *at, const char *name)
{
    const char *end = at + strlen(name);

    if (at > text && (is_in_name(at[-1]) || at[-1] == '.'))
        return false;
    if (strcmp(name, "python") == 0)
        end += strspn(end, ".0123456789");
    return !is_in_name(*end) && *end != '/';
}

static bool is_ending_at(const char *text, const char *at, const char *ending)
{
    return at > text && !isspace((unsigned char)at[-1]) && !is_in_name(at[strlen(ending)]);
}

static bool has_any(const char *text)
{
    for (size_t i = 0; i < array_size(programs); i++)
        for (const char *at = text; (at = strstr(at, programs[i])); at++)
            if (is_program_at(text, at, programs[i]))
                return true;
    for (size_t i = 0; i < array_size(endings); i++)
        for (const char *at = text; (at = strstr(at, endings[i])); at++)
            if (is_ending_at(text, at, endings[i]))
                return true;
    return false;
}

static bool sets_anew(const char *text)
{
    static const char name[] = "PYTHONPATH", set[] = "PYTHONPATH=";

    for (const char *at = strstr(text, set); at; at = strstr(at + 1, set)) {
        const char *value = at + sizeof set - 1;
        if ((at == text || !is_in_name(at[-1])) && !memmem(value, strcspn(value, " \t\n;&|"), name, sizeof name - 1))
            return true;
    }
    return false;
}

bool sets_python_path_anew(const struct job_spec *spec)
{
    for (size_t i = 0; i < spec->command.count; i++)
        if (sets_anew(spec->command.items[i]))
            return true;
    return spec->script && sets_anew(spec->script);
}

bool may_be_python(const struct job_spec *spec)
{
    if (spec->python || (spec->script && has_any(spec->script)))
        return true;
    for (size_t i = spec->script ? 1 : 0; i < spec->command.count; i++)
        if (has_any(spec->command.items[i]))
            return true;
    return false;
}
