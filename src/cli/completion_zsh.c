#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"
#include "cli/completion.h"

/* A part of a specification of _arguments, within single quotes: brackets and colons end its parts. */
static void put(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_action(FILE *out, enum word_kind kind)
{
    CLEANUP(free_ptr) char *words = completion_words(kind);

    if (kind == WORD_FILE)
        fputs("_files", out);
    else if (kind == WORD_DIRECTORY)
        fputs("_files -/", out);
    else if (kind == WORD_JOB)
        fputs("_carma_jobs", out);
    else if (*words)
        fprintf(out, "(%s)", words);
}

static void put_function(FILE *out, const char *command)
{
    fputs("_carma_", out);
    for (; *command; command++)
        fputc(*command == ' ' ? '_' : *command, out);
}

static void print_form(FILE *out, const struct argp_option *option, const char *dashes, const char *name,
                       const char *equals)
{
    fprintf(out, " \\\n        '%s%s%s[", dashes, name, option->arg ? equals : "");
    put(out, option->doc ? option->doc : "");
    fputc(']', out);
    if (option->arg) {
        fputs(option->flags & OPTION_ARG_OPTIONAL ? "::" : ":", out);
        put(out, option->arg);
        fputc(':', out);
        put_action(out, completion_of_option(option));
    }
    fputc('\'', out);
}

static void print_option(const struct argp_option *option, void *out)
{
    const char letter[] = {(char)option->key, '\0'};

    if (!option->name)
        return;
    print_form(out, option, "--", option->name, option->flags & OPTION_ARG_OPTIONAL ? "=-" : "=");
    if (argp_has_letter(option))
        print_form(out, option, "-", letter, "+");
}

static void print_summary(FILE *out, const struct command *command, const char *name)
{
    fprintf(out, " '%s:", name);
    put(out, command->summary);
    fputc('\'', out);
}

struct members {
    FILE *out;
    const char *group; /* "": the commands themselves */
    bool cases;        /* else their summaries */
};

static void print_member(const struct command *command, void *user)
{
    const struct members *members = user;
    size_t length = strlen(members->group);
    const char *name = command->name;

    if (length ? strncmp(name, members->group, length) != 0 || name[length] != ' ' : strchr(name, ' ') != NULL)
        return;
    name += length ? length + 1 : 0;
    if (!members->cases) {
        print_summary(members->out, command, name);
        return;
    }
    fprintf(members->out, "    %s) ", name);
    put_function(members->out, command->name);
    fputs(" ;;\n", members->out);
}

/* A function that completes the command's name and then hands over to its function. */
static void print_choice(FILE *out, const char *group, const char *options)
{
    struct members members = {.out = out, .group = group};

    fputs("    local context state state_descr line\n    typeset -A opt_args\n    local -a commands\n    commands=(",
          out);
    completion_each_command(print_member, &members);
    fprintf(out,
            ")\n    _arguments -C%s '1:command:->command' '*::argument:->argument'\n"
            "    case $state in\n"
            "    command) _describe command commands ;;\n"
            "    argument) case $words[1] in\n",
            options);
    members.cases = true;
    completion_each_command(print_member, &members);
    fputs("    esac ;;\n    esac\n}\n", out);
}

static void print_command(const struct command *command, void *user)
{
    FILE *out = user;
    enum word_kind kind = completion_of_arguments(command);

    put_function(out, command->name);
    fputs("() {\n", out);
    if (completion_is_group(command)) {
        print_choice(out, command->name, " '(- *)--help[print this help]'");
        return;
    }
    fputs("    _arguments", out);
    completion_each_option(command, print_option, out);
    if (kind != WORD_NONE) {
        fprintf(out, " \\\n        '*:%s:", kind == WORD_JOB ? "job" : kind == WORD_FILE ? "file" : "word");
        put_action(out, kind);
        fputc('\'', out);
    }
    fputs("\n}\n", out);
}

void completion_zsh(FILE *out)
{
    fputs("#compdef carma\n"
          "# zsh completion for carma(1), as `carma help --completion zsh` prints it\n"
          "_carma_jobs() {\n"
          "    local -a jobs\n"
          "    jobs=(${(f)\"$(" COMPLETION_JOB_IDS ")\"})\n"
          "    compadd -a jobs\n"
          "}\n",
          out);
    completion_each_command(print_command, out);
    fputs("_carma() {\n", out);
    print_choice(out, "",
                 " '(- *)--help[print help]' '(- *)--version[print the version]' '--socket=[the daemon'\\''s "
                 "socket]:PATH:_files'");
    fputs("_carma \"$@\"\n", out);
}
