#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"
#include "cli/completion.h"

/* In single quotes, where fish takes all but these two as they are. */
static void put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void print_condition(FILE *out, const struct command *command)
{
    const char *blank = strchr(command->name, ' ');

    if (blank)
        fprintf(out, "complete -c carma -n '__carma_in %.*s %s'", (int)(blank - command->name), command->name,
                blank + 1);
    else
        fprintf(out, "complete -c carma -n '__carma_in %s'", command->name);
}

static void print_words(FILE *out, enum word_kind kind)
{
    CLEANUP(free_ptr) char *words = completion_words(kind);

    if (kind == WORD_JOB)
        fputs(" -a '(__carma_jobs)'", out);
    else if (kind == WORD_DIRECTORY)
        fputs(" -a '(__fish_complete_directories)'", out);
    else if (*words) {
        fputs(" -a ", out);
        put_quoted(out, words);
    }
}

struct writer {
    FILE *out;
    const struct command *command;
};

static void print_option(const struct argp_option *option, void *user)
{
    const struct writer *writer = user;
    FILE *out = writer->out;
    enum word_kind kind;

    if (!option->name)
        return;
    kind = completion_of_option(option);
    print_condition(out, writer->command);
    fprintf(out, " -l %s", option->name);
    if (argp_has_letter(option))
        fprintf(out, " -s %c", option->key);
    if (option->arg && !(option->flags & OPTION_ARG_OPTIONAL))
        fputs(kind == WORD_FILE ? " -r -F" : " -x", out);
    if (option->arg)
        print_words(out, kind);
    if (option->doc) {
        fputs(" -d ", out);
        put_quoted(out, option->doc);
    }
    fputc('\n', out);
}

static void print_command(const struct command *command, void *user)
{
    struct writer writer = {.out = user, .command = command};
    const char *blank = strchr(command->name, ' ');
    enum word_kind kind = completion_of_arguments(command);

    if (blank)
        fprintf(writer.out, "complete -c carma -n '__carma_in %.*s' -a %s -d ", (int)(blank - command->name),
                command->name, blank + 1);
    else
        fprintf(writer.out, "complete -c carma -n __carma_in -a %s -d ", command->name);
    put_quoted(writer.out, command->summary);
    fputc('\n', writer.out);
    if (kind == WORD_FILE) {
        print_condition(writer.out, command);
        fputs(" -F\n", writer.out);
    } else if (kind != WORD_NONE) {
        print_condition(writer.out, command);
        print_words(writer.out, kind);
        fputc('\n', writer.out);
    }
    completion_each_option(command, print_option, &writer);
}

static void print_group(const struct command *command, void *user)
{
    if (completion_is_group(command))
        fprintf(user, " %s", command->name);
}

void completion_fish(FILE *out)
{
    fputs("# fish completion for carma(1), as `carma help --completion fish` prints it\n"
          "complete -c carma -f\n"
          "function __carma_jobs\n"
          "    " COMPLETION_JOB_IDS "\n"
          "end\n"
          "# Whether the command that is typed so far is this one: none, `submit`, `trace build`.\n"
          "function __carma_in\n"
          "    set -l words\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        string match -q -- '-*' $word; and continue\n"
          "        set -a words $word\n"
          "        if test (count $words) -eq 2; or not contains -- $word",
          out);
    completion_each_command(print_group, out);
    fputs("\n            break\n"
          "        end\n"
          "    end\n"
          "    test \"$words\" = \"$argv\"\n"
          "end\n",
          out);
    completion_each_command(print_command, out);
}
