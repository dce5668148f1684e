#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/completion.h"

/* The part before the tables: finding the command, and the option before the word. bash breaks words at '='. */
static const char begin[] = "# bash completion for carma(1), as `carma help --completion bash` prints it\n"
                            "_carma_jobs() {\n"
                            "    " COMPLETION_JOB_IDS "\n"
                            "}\n"
                            "\n"
                            "_carma() {\n"
                            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
                            "command= options= words= word i\n"
                            "    local groups=\" $1 \"\n"
                            "    COMPREPLY=()\n"
                            "    if [[ $current == '=' ]]; then\n"
                            "        current=\n"
                            "    elif [[ $previous == '=' ]]; then\n"
                            "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                            "    fi\n"
                            "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                            "        word=${COMP_WORDS[i]}\n"
                            "        if [[ $word == -- ]]; then\n"
                            "            compopt -o default\n"
                            "            return\n"
                            "        elif [[ $word == -* || $word == '=' || ${COMP_WORDS[i - 1]} == '=' || "
                            "${COMP_WORDS[i - 1]} == --socket ]]; then\n"
                            "            continue\n"
                            "        elif [[ -z $command ]]; then\n"
                            "            command=$word\n"
                            "        elif [[ $groups == *\" $command \"* ]]; then\n"
                            "            command=\"$command $word\"\n"
                            "        fi\n"
                            "    done\n";

static const char end[] = "    if [[ $current == -* ]]; then\n"
                          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
                          "    elif [[ $words == FILE ]]; then\n"
                          "        compopt -o filenames\n"
                          "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                          "    elif [[ $words == JOB ]]; then\n"
                          "        mapfile -t COMPREPLY < <(compgen -W \"$(_carma_jobs)\" -- \"$current\")\n"
                          "    else\n"
                          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                          "    fi\n"
                          "}\n";

struct writer {
    FILE *out;
    const struct command *command;
    enum word_kind kind;   /* of the options that are looked for */
    struct strbuf matches; /* "submit --summary" | ... */
    struct strbuf names;   /* of the command's options */
};

static void add_match(const struct argp_option *option, void *user)
{
    struct writer *writer = user;
    const char *command = writer->command->name;

    if (!option->name || !option->arg || option->flags & OPTION_ARG_OPTIONAL ||
        completion_of_option(option) != writer->kind)
        return;
    strbuf_printf(&writer->matches, "%s\"%s --%s\"", writer->matches.length ? " | " : "", command, option->name);
    if (argp_has_letter(option))
        strbuf_printf(&writer->matches, " | \"%s -%c\"", command, option->key);
}

static void add_matches_of(const struct command *command, void *user)
{
    struct writer *writer = user;

    writer->command = command;
    completion_each_option(command, add_match, writer);
}

/* The cases of options with arguments of one kind. */
static void print_arguments(struct writer *writer, enum word_kind kind)
{
    CLEANUP(free_ptr) char *words = completion_words(kind);

    writer->kind = kind;
    completion_each_command(add_matches_of, writer);
    if (writer->matches.length) {
        fprintf(writer->out, "    %s)\n", writer->matches.text);
        if (kind == WORD_FILE || kind == WORD_DIRECTORY)
            fprintf(writer->out,
                    "        compopt -o filenames\n"
                    "        mapfile -t COMPREPLY < <(compgen -%c -- \"$current\")\n",
                    kind == WORD_FILE ? 'f' : 'd');
        else if (*words)
            fprintf(writer->out, "%s        mapfile -t COMPREPLY < <(compgen -W \"%s\" -- \"$current\")\n",
                    kind == WORD_SETTING ? "        compopt -o nospace\n" : "", words);
        fputs("        return ;;\n", writer->out);
    }
    strbuf_release(&writer->matches);
}

static void add_name(const struct argp_option *option, void *user)
{
    struct strbuf *names = user;

    if (option->name)
        strbuf_printf(names, "%s--%s", names->length ? " " : "", option->name);
    if (option->name && argp_has_letter(option))
        strbuf_printf(names, " -%c", option->key);
}

struct members {
    const char *group;
    struct strbuf names;
};

static void add_member(const struct command *command, void *user)
{
    struct members *members = user;
    size_t length = strlen(members->group);

    if (strncmp(command->name, members->group, length) == 0 && command->name[length] == ' ')
        strbuf_printf(&members->names, "%s%s", members->names.length ? " " : "", command->name + length + 1);
}

static void print_command(const struct command *command, void *user)
{
    FILE *out = user;
    enum word_kind kind = completion_of_arguments(command);
    CLEANUP(free_ptr) char *words = completion_words(kind);
    struct strbuf names = {0};
    struct members members = {.group = command->name};

    if (completion_is_group(command))
        completion_each_command(add_member, &members);
    completion_each_option(command, add_name, &names);
    fprintf(out, "    \"%s\")\n        options=\"%s\"\n        words=\"%s\" ;;\n", command->name, names.text,
            members.names.length ? members.names.text
            : kind == WORD_FILE  ? "FILE"
            : kind == WORD_JOB   ? "JOB"
                                 : words);
    strbuf_release(&members.names);
    strbuf_release(&names);
}

static void add_group(const struct command *command, void *groups)
{
    if (completion_is_group(command))
        strbuf_printf(groups, "%s%s", ((struct strbuf *)groups)->length ? " " : "", command->name);
}

void completion_bash(FILE *out)
{
    struct writer writer = {.out = out};
    CLEANUP(free_ptr) char *names = completion_words(WORD_COMMAND);
    struct strbuf groups = {0};
    const char *mark = strstr(begin, "$1");

    completion_each_command(add_group, &groups);
    fprintf(out, "%.*s%s%s    case \"$command $previous\" in\n", (int)(mark - begin), begin, groups.text, mark + 2);
    for (enum word_kind kind = WORD_NONE; kind < WORD_KINDS; kind++)
        print_arguments(&writer, kind);
    fprintf(out,
            "    esac\n    case $command in\n    \"\")\n        options=\"--help --socket --version\"\n        "
            "words=\"%s\" ;;\n",
            names);
    completion_each_command(print_command, out);
    fprintf(out, "    esac\n%s\ncomplete -F _carma carma\n", end);
    strbuf_release(&groups);
}
