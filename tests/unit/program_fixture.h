/* A program of the estimator for each test. */
#ifndef CARMA_TESTS_PROGRAM_FIXTURE_H
#define CARMA_TESTS_PROGRAM_FIXTURE_H

#include "unit.h"

#include "estimate/program/program.h"

static struct program program;

AROUND(begin_program)
{
    program_init(&program);
}

AROUND(end_program)
{
    program_release(&program);
}

#define PROGRAM_TEST(name) TEST_BETWEEN(name, begin_program, end_program)

#endif
