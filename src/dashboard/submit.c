/* How this file works: the body becomes the words of `carma submit`, which a child executes; a script is its input, in
 * memory. The child is this user's and may do no more than the page already may by POST /v1/jobs. It is here so that
 * defaults, the environment, warnings and estimates are the command's own. */
#include "dashboard/submit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/install.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/text/printable.h"
#include "cli/child.h"

#define MOST_ARGUMENTS 4096
#define PATIENCE_MS    60000

/* The words after the program's; NULL at their end. They are the JSON's, the list is the caller's. NULL: *why says what
 * is wrong. */
static const char **words_of(const json_t *json, const char *program, const char *socket, const char **why)
{
    const char *directory = json_string_value(json_object_get(json, "directory"));
    const json_t *arguments = json_object_get(json, "arguments"), *script = json_object_get(json, "script"), *one;
    size_t count = 0, i;
    const char **words;

    *why = NULL;
    if (!directory || *directory != '/')
        *why = "'directory' is to be the absolute path in which the job runs";
    else if (script && !json_is_string(script))
        *why = "'script' is to be a text";
    else if (!json_is_array(arguments) || json_array_size(arguments) > MOST_ARGUMENTS)
        *why = "'arguments' is to be a list of at most 4096 texts, as carma submit takes them";
    else
        json_array_foreach (arguments, i, one)
            if (!json_is_string(one))
                *why = "'arguments' is to be a list of texts, as carma submit takes them";
    if (*why)
        return NULL;
    words = xcalloc(json_array_size(arguments) + 7, sizeof *words);
    words[count++] = program;
    words[count++] = "submit";
    words[count++] = "--socket";
    words[count++] = socket;
    words[count++] = "--chdir";
    words[count++] = directory;
    json_array_foreach (arguments, i, one)
        words[count++] = json_string_value(one);
    return words;
}

/* Its lines, fit to be shown; the caller's. The text is taken apart. */
static char *shown(struct strbuf *text)
{
    struct strbuf out = {0};
    char *rest = text->text, *line;

    while ((line = strsep(&rest, "\n")) && (*line || rest)) {
        printable_replace(line);
        strbuf_printf(&out, "%s\n", line);
    }
    return out.text ? strbuf_steal(&out) : xstrdup("");
}

static void tell(struct cli_child *child, struct dashboard_answer *answer)
{
    CLEANUP(free_ptr) char *out = shown(&child->out);
    CLEANUP(free_ptr) char *errors = shown(&child->errors);
    int status = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 1;
    json_t *json = json_pack("{s:i, s:s, s:s}", "status", status, "output", out, "error", errors);

    *answer =
        (struct dashboard_answer){.status = 200, .type = "application/json", .body = json_dumps(json, JSON_COMPACT)};
    answer->length = strlen(answer->body);
    json_decref(json);
}

void dashboard_submit(const struct dashboard_place *place, const char *body, size_t length,
                      struct dashboard_answer *answer)
{
    struct error err;
    CLEANUP(free_ptr) char *installed = install_path("bin/carma");
    CLEANUP(free_ptr) char *built = install_beside("../cli/carma");
    static const struct json_bounds most = {2 * MOST_ARGUMENTS, 4, SUBMIT_BODY_LIMIT_BYTES};
    json_t *json;
    int rc = json_read(body ? body : "", length, JSON_REJECT_DUPLICATES, &most, &json, &err);
    const char *script = json_string_value(json_object_get(json, "script")), *why = err.text;
    const char **words =
        rc ? NULL : words_of(json, access(installed, X_OK) == 0 ? installed : built, place->name, &why);
    CLEANUP(close_fd) int input = words && script ? file_in_memory("script", script) : -1;
    struct cli_child child = {0};

    if (!words)
        dashboard_answer_error(answer, 400, NULL, why);
    else if (script && input < 0)
        dashboard_answer_error(answer, 500, NULL, "there is no memory for the script");
    else if (cli_child_run(words, input, PATIENCE_MS, NULL, NULL, &child, &err) != 0)
        dashboard_answer_error(answer, 500, NULL, err.text);
    else if (child.hung)
        dashboard_answer_error(answer, 504, NULL, "carma submit did not end within a minute: see carma queue");
    else
        tell(&child, answer);
    cli_child_release(&child);
    free(words);
    json_decref(json);
}
