#include "cli/completion.h"

#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "config/config.h"

static const struct {
    const char *name;
    void (*print)(FILE *out);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

bool completion_print(FILE *out, const char *shell)
{
    for (size_t i = 0; i < array_size(shells); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(out);
            return true;
        }
    return false;
}

enum word_kind completion_of_option(const struct argp_option *option)
{
    static const struct {
        const char *option;
        enum word_kind kind;
    } known[] = {{"policy", WORD_POLICY}, {"compare", WORD_POLICY}, {"set", WORD_SETTING}, {"completion", WORD_SHELL}};

    for (size_t i = 0; i < array_size(known); i++)
        if (strcmp(known[i].option, option->name) == 0)
            return known[i].kind;
    if (!option->arg)
        return WORD_NONE;
    if (strncmp(option->arg, "FILE", 4) == 0 || strcmp(option->arg, "PATH") == 0)
        return WORD_FILE;
    return strcmp(option->arg, "DIR") == 0 ? WORD_DIRECTORY : WORD_NONE;
}

enum word_kind completion_of_arguments(const struct command *command)
{
    static const struct {
        const char *word;
        enum word_kind kind;
    } known[] = {{"ID", WORD_JOB}, {"FILE", WORD_FILE}, {".csv", WORD_FILE}, {".json", WORD_FILE}};
    const char *form = command->argp->args_doc;

    if (!form || completion_is_group(command)) /* of which the first word is a command */
        return WORD_NONE;
    if (strcmp(form, "[COMMAND]") == 0)
        return WORD_COMMAND;
    for (size_t i = 0; i < array_size(known); i++)
        if (strstr(form, known[i].word))
            return known[i].kind;
    return WORD_NONE;
}

void completion_each_command(void (*visit)(const struct command *command, void *user), void *user)
{
    for (size_t i = 0; command_at(i); i++)
        visit(command_at(i), user);
    for (size_t i = 0; i < subcommand_count; i++)
        visit(&subcommands[i], user);
}

bool completion_is_group(const struct command *command)
{
    return command->argp->parser == cli_parse_group;
}

void completion_each_option(const struct command *command, void (*visit)(const struct argp_option *option, void *user),
                            void *user)
{
    const struct argp common = {.options = cli_common_options};

    argp_each_option(command->argp, visit, user);
    argp_each_option(&common, visit, user);
}

static void add_word(struct strbuf *words, const char *word)
{
    strbuf_printf(words, "%s%s", words->length ? " " : "", word);
}

static void add_command(const struct command *command, void *words)
{
    if (!strchr(command->name, ' '))
        add_word(words, command->name);
}

static void add_setting(const struct config_key *key, void *words)
{
    CLEANUP(free_ptr) char *word = xasprintf("%s=", key->name);

    add_word(words, word);
}

static void add_policy(const char *name, const char *summary, void *words)
{
    add_word(words, name);
}

char *completion_words(enum word_kind kind)
{
    struct strbuf words = {0};

    if (kind == WORD_COMMAND)
        completion_each_command(add_command, &words);
    else if (kind == WORD_SETTING)
        config_each_key(add_setting, &words);
    else if (kind == WORD_POLICY)
        config_each_policy(add_policy, &words);
    for (size_t i = 0; kind == WORD_SHELL && completion_shells[i]; i++)
        add_word(&words, completion_shells[i]);
    return words.text ? strbuf_steal(&words) : xstrdup("");
}
