/* The questions of `carma evaluate --questions` on standard input, for the programs of this folder. */
#ifndef CARMA_BENCH_QUESTIONS_H
#define CARMA_BENCH_QUESTIONS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "evaluation/question.h"

/* A text or a number that a question says of its row; -1 where that is not known. */
static inline const char *said_text(const json_t *json, const char *member)
{
    return json_string_value(json_object_get(json, member));
}

static inline int64_t said_number(const json_t *json, const char *member)
{
    const json_t *value = json_object_get(json, member);

    return json_is_integer(value) ? json_integer_value(value) : json_is_boolean(value) ? json_is_true(value) : -1;
}

/* Each in its turn, until one fails; those without a capture of their batch size are left out. Returns main's status.
 */
static inline int each_question(const char *program,
                                int (*use)(struct question *question, const json_t *json, struct error *err))
{
    CLEANUP(free_ptr) char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int rc = 1;

    while (rc > -1 && (length = getline(&line, &room, stdin)) > 0) {
        CLEANUP(question_release) struct question question = {0};
        struct error err = {""};
        json_t *json;

        rc = question_parse(line, (size_t)length, &json, &err);
        if (rc == 0)
            rc = question_read(&question, json, &err);
        if (rc > 0)
            rc = use(&question, json, &err);
        if (rc < 0)
            fprintf(stderr, "%s: %s\n", program, err.text);
        json_decref(json);
    }
    return rc < 0;
}

#endif
