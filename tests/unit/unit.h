/* What many tests need: cmocka with the headers that it asks for, others of libc and of base, an error to be filled in,
 * and a program's tests, which stand once each:
 *
 *   TEST(test_of_something)
 *   {
 *       assert_true(something);
 *   }
 *
 * They run in the order of the file. A test has `void **state`, which a set-up of its own may fill. The program's main
 * is unit.c's, unless it has RUN_TESTS or another of its own. */
#ifndef CARMA_TESTS_UNIT_H
#define CARMA_TESTS_UNIT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "base/units.h"

/* For the calls of a test; empty when the test begins. */
extern struct error trouble;

void unit_test_add(struct CMUnitTest test);

/* A test between its own set-up and tear-down; NULL: there is none. The priority is what keeps the order. */
#define TEST_BETWEEN(name, set_up, tear_down)                                                                          \
    static void name(void **state);                                                                                    \
    static void name##_begins(void **state)                                                                            \
    {                                                                                                                  \
        trouble = (struct error){{0}};                                                                                 \
        name(state);                                                                                                   \
    }                                                                                                                  \
    static void __attribute__((constructor(1000 + __COUNTER__))) name##_is_listed(void)                                \
    {                                                                                                                  \
        unit_test_add((struct CMUnitTest){#name, name##_begins, set_up, tear_down, NULL});                             \
    }                                                                                                                  \
    static void name(void **state)

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)

/* Takes what the set-up has left in *state as its parameter, such as `struct fixture *f`. */
#define TEST_ON(name, parameter, set_up, tear_down)                                                                    \
    static void name##_on(parameter);                                                                                  \
    TEST_BETWEEN(name, set_up, tear_down)                                                                              \
    {                                                                                                                  \
        name##_on(*state);                                                                                             \
    }                                                                                                                  \
    static void name##_on(parameter)

/* A set-up or a tear-down that has no state and does not fail. */
#define AROUND(name)                                                                                                   \
    static void name##_does(void);                                                                                     \
    static int name(void **state)                                                                                      \
    {                                                                                                                  \
        name##_does();                                                                                                 \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static void name##_does(void)

/* A test, of the kind TEST or one of its program, whose body is done for each row of a table. */
#define EACH_ROW(kind, name, rows)                                                                                     \
    static void name##_row(const __typeof__((rows)[0]) *row);                                                          \
    kind(name)                                                                                                         \
    {                                                                                                                  \
        for (size_t i = 0; i < array_size(rows); i++)                                                                  \
            name##_row(&(rows)[i]);                                                                                    \
    }                                                                                                                  \
    static void name##_row(const __typeof__((rows)[0]) *row)

/* All of a file of at most 64 MiB; the caller frees it. */
char *file_text(const char *path);

/* The file has this text; with GOLDEN=write in the environment it gets it. */
void expect_file(const char *path, const char *text);

/* A set-up and a tear-down, of a program or of each test: an empty folder, and no such folder any more. */
extern char folder[];
int make_folder(void **state);
int remove_folder(void **state);

/* Fails with the text of a struct error. */
#define fail_if(condition, err)                                                                                        \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            fail_msg("%s: %s", #condition, (err).text);                                                                \
    } while (0)

/* The text has this part. */
#define assert_has(text, part)                                                                                         \
    do {                                                                                                               \
        if (!strstr(text, part))                                                                                       \
            fail_msg("no '%s' in: %s", part, text);                                                                    \
    } while (0)

/* The call fails with this code, and `trouble` has this text somewhere. */
#define assert_error(call, code, says)                                                                                 \
    do {                                                                                                               \
        assert_int_equal(call, code);                                                                                  \
        assert_has(trouble.text, says);                                                                                \
    } while (0)

#define assert_near(value, expected, tolerance)                                                                        \
    do {                                                                                                               \
        double near_value = (double)(value), near_expected = (double)(expected);                                       \
        if (!(fabs(near_value - near_expected) <= (tolerance)))                                                        \
            fail_msg("%s is %.12g, not %.12g", #value, near_value, near_expected);                                     \
    } while (0)

/* Runs them, between a set-up and a tear-down of them all, and returns how many failed. */
int unit_tests_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* The main of a program that does so and nothing else. */
#define RUN_TESTS(set_up, tear_down)                                                                                   \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return unit_tests_run("tests", set_up, tear_down);                                                             \
    }

#endif
