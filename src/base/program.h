/* Why a program cannot be executed: asked before execvp(3), or after it failed. */
#ifndef CARMA_BASE_PROGRAM_H
#define CARMA_BASE_PROGRAM_H

#include <stdbool.h>

/* What execvp(3) in `directory` (absolute) would say of `program`, with `search` as PATH (NULL: none is set): 0, ENOENT
 * where something is not there, or EACCES where it may not be executed. *why is then in words that do not name the
 * program, and the caller's; it is NULL with 0. A script's interpreter is looked for, too. */
int program_check(const char *directory, const char *search, const char *program, char **why);

/* The same of the interpreter in the first line of a script's text, and of what it looks for itself, if it is env. */
int program_check_script(const char *directory, const char *search, const char *text, char **why);

/* Whether that program is a script of Python's, by its first line; or by its second, where pip found the interpreter's
 * path too long for the first. */
bool program_is_python(const char *directory, const char *search, const char *program);

/* The same as program_check(), with the errno of an execvp() in the working directory that failed: there is always a
 * reason. */
int program_fault(const char *program, int failed, char **why);

#endif
