/* Scripts by which shells complete `carma`, from the table of commands. */
#ifndef CARMA_CLI_COMPLETION_H
#define CARMA_CLI_COMPLETION_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/commands.h"

/* The kinds of words that are not options. */
enum word_kind { WORD_NONE, WORD_FILE, WORD_DIRECTORY, WORD_JOB, WORD_COMMAND, WORD_POLICY, WORD_SETTING, WORD_SHELL };
#define WORD_KINDS (WORD_SHELL + 1)

enum word_kind completion_of_option(const struct argp_option *option); /* of its argument */
enum word_kind completion_of_arguments(const struct command *command);

/* Calls `visit` for each command, and each of a group's ("trace build"). */
void completion_each_command(void (*visit)(const struct command *command, void *user), void *user);
bool completion_is_group(const struct command *command);

/* Calls `visit` for each option of the command, those that all commands have included. */
void completion_each_option(const struct command *command, void (*visit)(const struct argp_option *option, void *user),
                            void *user);

/* The words themselves, separated by blanks; owned by the caller. */
char *completion_words(enum word_kind kind);

/* A command that prints the ids of the jobs that have not ended, a line each. */
#define COMPLETION_JOB_IDS "carma queue --json 2>/dev/null | sed -n 's/^ *\"id\": \\([0-9]*\\),.*/\\1/p'"

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

/* By the shell's name. False: there is none for it. */
bool completion_print(FILE *out, const char *shell);
extern const char *const completion_shells[]; /* ended by NULL */

#endif
