/* How this file works: a shell's script hands what is typed to `carma help --complete`, and shows what that prints. So
 * all shells offer the same, and options, policies, settings and jobs are those of this moment. bash takes a word apart
 * at '=': "--policy=th" comes as three words there, and its offers are the last one's; elsewhere they are the whole
 * word's. */
#include "cli/completion.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/manual/argp_walk.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/show/answer.h"
#include "config/config.h"

static const struct {
    const char *name, *script;
} shells[] = {
    {"bash", "# bash completion for carma(1), as `carma help --completion bash` prints it\n"
             "_carma() {\n"
             "    local current=${COMP_WORDS[COMP_CWORD]} offers\n"
             "    [[ $current != '=' ]] || current=\n"
             "    mapfile -t offers < <(carma help --complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
             "    case ${offers-} in\n"
             "    :*)\n"
             "        compopt -o filenames\n"
             "        mapfile -t COMPREPLY < <(compgen -A \"${offers:1}\" -- \"$current\") ;;\n"
             "    *)\n"
             "        COMPREPLY=(\"${offers[@]%%$'\\t'*}\")\n"
             "        [[ ${COMPREPLY-} != *= ]] || compopt -o nospace ;;\n"
             "    esac\n"
             "}\n"
             "complete -F _carma carma\n"},
    {"zsh", "#compdef carma\n"
            "# zsh completion for carma(1), as `carma help --completion zsh` prints it\n"
            "_carma() {\n"
            "    local -a offers\n"
            "    offers=(\"${(@f)$(carma help --complete -- \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
            "    case $offers[1] in\n"
            "    :*)\n"
            "        [[ $words[CURRENT] != --* ]] || compset -P '*='\n"
            "        [[ $offers[1] == :file ]] && _files || _files -/ ;;\n"
            "    ?*)\n"
            "        offers=(${offers//:/\\\\:})\n"
            "        offers=(${offers/$'\\t'/:})\n"
            "        _describe carma offers ;;\n"
            "    esac\n"
            "}\n"
            "_carma \"$@\"\n"},
    {"fish",
     "# fish completion for carma(1), as `carma help --completion fish` prints it\n"
     "function __carma_offers\n"
     "    set -l typed (commandline -ct)\n"
     "    set -l offers (carma help --complete -- (commandline -opc)[2..-1] \"$typed\" 2>/dev/null)\n"
     "    set -l option (string match -r -- '^--[^=]*=' $typed; or echo)\n"
     "    switch \"$offers[1]\"\n"
     "        case :file\n"
     "            printf '%s\\n' $option(__fish_complete_path (string replace -- \"$option\" '' $typed))\n"
     "        case :directory\n"
     "            printf '%s\\n' $option(__fish_complete_directories (string replace -- \"$option\" '' $typed))\n"
     "        case '*'\n"
     "            printf '%s\\n' $offers\n"
     "    end\n"
     "end\n"
     "complete -c carma -f -a '(__carma_offers)'\n"},
};

bool completion_print(FILE *out, const char *shell)
{
    for (size_t i = 0; i < array_size(shells); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            fputs(shells[i].script, out);
            return true;
        }
    return false;
}

/* ---- The kinds of words ---- */

enum word_kind { WORD_NONE, WORD_FILE, WORD_DIRECTORY, WORD_JOB, WORD_COMMAND, WORD_POLICY, WORD_SETTING, WORD_SHELL };

static enum word_kind kind_of_option(const struct argp_option *option)
{
    static const struct {
        const char *option;
        enum word_kind kind;
    } known[] = {{"policy", WORD_POLICY}, {"compare", WORD_POLICY}, {"set", WORD_SETTING}, {"completion", WORD_SHELL}};

    for (size_t i = 0; i < array_size(known); i++)
        if (strcmp(known[i].option, option->name) == 0)
            return known[i].kind;
    if (strncmp(option->arg, "FILE", 4) == 0 || strcmp(option->arg, "PATH") == 0)
        return WORD_FILE;
    return strcmp(option->arg, "DIR") == 0 ? WORD_DIRECTORY : WORD_NONE;
}

static bool is_group(const struct command *command)
{
    return command->argp->parser == cli_parse_group;
}

static enum word_kind kind_of_arguments(const struct command *command)
{
    static const struct {
        const char *word;
        enum word_kind kind;
    } known[] = {{"ID", WORD_JOB}, {"FILE", WORD_FILE}, {".csv", WORD_FILE}, {".json", WORD_FILE}};
    const char *form = command->argp->args_doc;

    if (!form)
        return WORD_NONE;
    if (strcmp(form, "[COMMAND]") == 0)
        return WORD_COMMAND;
    for (size_t i = 0; i < array_size(known); i++)
        if (strstr(form, known[i].word))
            return known[i].kind;
    return WORD_NONE;
}

/* ---- Offers ---- */

struct offers {
    struct cli *cli;
    FILE *out;
    const char *typed;                /* how they begin */
    const char *before;               /* what stands before them in the same word: "--policy=th" for "th" */
    char *option;                     /* owned; the word before them: an option may take them as its argument */
    const struct argp_option *wanted; /* that option, if it takes one */
    const char *group;                /* as admin: its commands are offered. NULL: the first words are */
};

static void offer(const struct offers *offers, const char *word, const char *meaning)
{
    if (strncmp(word, offers->typed, strlen(offers->typed)) == 0)
        fprintf(offers->out, "%.*s%s\t%s\n", (int)(offers->typed - offers->before), offers->before, word,
                meaning ? meaning : "");
}

static void offer_command(const struct command *command, void *user)
{
    const struct offers *offers = user;
    const char *blank = strchr(command->name, ' ');
    size_t length = offers->group ? strlen(offers->group) : 0;

    if (!length && !blank)
        offer(offers, command->name, command->summary);
    else if (length && strncmp(command->name, offers->group, length) == 0 && command->name + length == blank)
        offer(offers, blank + 1, command->summary);
}

static void offer_setting(const struct config_key *key, void *offers)
{
    CLEANUP(free_ptr) char *word = xasprintf("%s=", key->name);

    offer(offers, word, key->help);
}

static void offer_policy(const char *name, const char *summary, void *offers)
{
    offer(offers, name, summary);
}

/* Those that have not ended; without a daemon there are none. The waiting jobs of an array are offered by its number,
 * and one by one behind "7_". */
static void offer_jobs(const struct offers *offers)
{
    size_t digits = strspn(offers->typed, "0123456789");
    bool of_array = offers->typed[digits] == '_';
    CLEANUP(json_release) json_t *reply = NULL;
    CLEANUP(free_ptr)
    char *path = of_array ? xasprintf("/v1/jobs?ids=%.*s", (int)digits, offers->typed) : xstrdup("/v1/jobs?folded");
    struct error err;
    json_t *job;
    size_t i;

    if (cli_list_jobs(offers->cli, path, cli_call, &reply, &err))
        return;
    json_array_foreach (json_object_get(reply, "jobs"), i, job) {
        CLEANUP(free_ptr) char *id = answer_job_id(job), *name = term_escape(answer_text(job, "name"));
        if (json_object_get(json_object_get(job, "array"), "folded"))
            id[strcspn(id, "_")] = '\0';
        offer(offers, id, name);
    }
}

static void offer_kind(struct offers *offers, enum word_kind kind)
{
    switch (kind) {
    case WORD_FILE:
        fputs(":file\n", offers->out);
        return;
    case WORD_DIRECTORY:
        fputs(":directory\n", offers->out);
        return;
    case WORD_JOB:
        offer_jobs(offers);
        return;
    case WORD_COMMAND:
        command_each(offer_command, offers);
        return;
    case WORD_POLICY:
        config_each_policy(offer_policy, offers);
        return;
    case WORD_SETTING:
        config_each_key(offer_setting, offers);
        return;
    case WORD_SHELL:
        for (size_t i = 0; i < array_size(shells); i++)
            offer(offers, shells[i].name, NULL);
        return;
    default:
        return;
    }
}

static void offer_option(const struct argp_option *option, void *user)
{
    const char letter[] = {'-', (char)option->key, '\0'};

    if (!option->name)
        return;
    CLEANUP(free_ptr) char *word = xasprintf("--%s", option->name);
    offer(user, word, option->doc);
    if (argp_has_letter(option))
        offer(user, letter, option->doc);
}

static void find_option(const struct argp_option *option, void *user)
{
    struct offers *offers = user;
    const char *word = offers->option;

    if (!option->name || !option->arg || option->flags & OPTION_ARG_OPTIONAL)
        return;
    if (strncmp(word, "--", 2) == 0 ? strcmp(word + 2, option->name) == 0
                                    : *word == '-' && argp_has_letter(option) && word[1] == option->key && !word[2])
        offers->wanted = option;
}

static void each_option(const struct command *command, void (*visit)(const struct argp_option *option, void *offers),
                        struct offers *offers)
{
    const struct argp common = {.options = cli_common_options};

    argp_each_option(command->argp, visit, offers);
    argp_each_option(&common, visit, offers);
}

static void offer_of_command(struct offers *offers, const struct command *command)
{
    each_option(command, find_option, offers);
    if (offers->wanted) {
        offer_kind(offers, kind_of_option(offers->wanted));
    } else if (*offers->typed == '-') {
        each_option(command, offer_option, offers);
    } else if (is_group(command)) {
        offers->group = command->name;
        command_each(offer_command, offers);
    } else {
        offer_kind(offers, kind_of_arguments(command));
    }
}

/* Finds the typed word, and the word before it, which may be an option that takes it as its argument. */
static void find_typed(struct offers *offers, char **words, int count)
{
    const char *last = words[count - 1], *equals = strchr(last, '='), *option = count > 1 ? words[count - 2] : "";

    offers->typed = offers->before = last;
    if (strcmp(last, "=") == 0)
        offers->typed = offers->before = "";
    else if (strcmp(option, "=") == 0 && count > 2)
        option = words[count - 3];
    else if (strncmp(last, "--", 2) == 0 && equals)
        offers->typed = equals + 1;
    offers->option = offers->typed == offers->before ? xstrdup(option) : xstrndup(last, (size_t)(equals - last));
}

/* Finds the command in the words before. False: they are another program's, behind "--", or no command's. */
static bool find_command(char **words, int count, const struct command **command)
{
    for (int i = 0; i < count; i++) {
        const char *before = i ? words[i - 1] : "";
        if (strcmp(words[i], "--") == 0)
            return false;
        if (*words[i] == '-' || strcmp(words[i], "=") == 0 || strcmp(before, "=") == 0 ||
            strcmp(before, "--socket") == 0)
            continue;
        if (!*command) {
            *command = command_find(words[i]);
            if (!*command)
                return false;
        } else if (is_group(*command)) {
            CLEANUP(free_ptr) char *name = xasprintf("%s %s", (*command)->name, words[i]);
            *command = command_find(name) ? command_find(name) : *command;
        }
    }
    return true;
}

void completion_offer(struct cli *cli, FILE *out, char **words, int count)
{
    static const char *const first_options[] = {"--help", "--socket", "--version"};
    struct offers offers = {.cli = cli, .out = out};
    const struct command *command = NULL;

    find_typed(&offers, words, count);
    if (!find_command(words, count - 1, &command))
        offer_kind(&offers, WORD_FILE);
    else if (command)
        offer_of_command(&offers, command);
    else if (*offers.typed == '-')
        for (size_t i = 0; i < array_size(first_options); i++)
            offer(&offers, first_options[i], NULL);
    else
        command_each(offer_command, &offers);
    free(offers.option);
}
