/* A node in a directory of its own, for the tests of the virtual node. */
#ifndef CARMA_TESTS_VNODE_FIXTURE_H
#define CARMA_TESTS_VNODE_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "vnode/attach.h"
#include "vnode/profile.h"

struct fixture {
    char directory[64];
    char state[96];
    struct node node;
};

static inline void fixture_open(struct fixture *fixture, const char *profile)
{
    struct node_file wanted;
    struct error err;
    char path[512];

    snprintf(path, sizeof path, "%s/data/nodes/%s.ini", CARMA_SOURCE, profile);
    strcpy(fixture->directory, "/tmp/carma-vnode-test.XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->state, sizeof fixture->state, "%s/state", fixture->directory);
    fail_if(profile_read(path, &wanted, &err) < 0 || node_create(fixture->state, &wanted, 0600, &err) < 0 ||
                node_open(&fixture->node, fixture->state, &err) < 0,
            err);
    setenv("CARMA_VNODE", fixture->state, 1);
}

static inline void fixture_close(struct fixture *fixture)
{
    node_close(&fixture->node);
    unlink(fixture->state);
    assert_int_equal(rmdir(fixture->directory), 0);
    unsetenv("CARMA_VNODE");
}

static inline void sleep_wall_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};

    nanosleep(&t, NULL);
}

static inline int64_t fixture_used(struct fixture *fixture, uint32_t gpu)
{
    struct node_bank *bank;
    int64_t used = 0;

    assert_int_equal(node_begin(&fixture->node, &bank), 0);
    for (uint32_t i = 0; i < bank->slot_high; i++)
        for (uint32_t k = 0; k < bank->slots[i].use_count; k++)
            if (bank->slots[i].uses[k].gpu == gpu)
                used += bank->slots[i].uses[k].bytes;
    node_commit(&fixture->node);
    return used;
}

#endif
