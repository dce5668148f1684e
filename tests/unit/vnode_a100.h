/* For tests of the virtual node whose every test has one of four A100. */
#ifndef CARMA_TESTS_VNODE_A100_H
#define CARMA_TESTS_VNODE_A100_H

#include "vnode_fixture.h"

static struct fixture f;

static int setup(void **state)
{
    fixture_open(&f, "a100x4-40g");
    return 0;
}

static int teardown(void **state)
{
    fixture_close(&f);
    return 0;
}

#endif
