/* A recording of each test. */
#ifndef CARMA_TESTS_CAPTURE_FIXTURE_H
#define CARMA_TESTS_CAPTURE_FIXTURE_H

#include "unit.h"

#include "estimate/program/capture.h"

static struct capture capture;

AROUND(release_capture)
{
    capture_release(&capture);
}

#define CAPTURE_TEST(name) TEST_BETWEEN(name, NULL, release_capture)

#endif
