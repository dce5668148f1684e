/* The store's sums of energy. */
#include "store_fixture.h"

static int see_meter(const struct store_meter *meter, void *seen)
{
    strbuf_printf(seen, "%s %lld %lld %lld\n", meter->gpu, (long long)meter->at_ns, (long long)meter->counter_mj,
                  (long long)meter->idle_mw);
    return 0;
}

static int see_account(const char *gpu, uint64_t party, int64_t mj, void *seen)
{
    strbuf_printf(seen, "%s %lld %lld\n", gpu, (long long)(int64_t)party, (long long)mj);
    return 0;
}

/* Sums are replaced, not added to: writing one again counts nothing twice. */
STORE_TEST(test_energy)
{
    CLEANUP(strbuf_release) struct strbuf seen = {0};

    for (int round = 1; round <= 2; round++) {
        struct store *store = open_store();
        for (int again = 0; again < 2; again++) {
            struct store_batch *batch = store_batch_new();
            store_batch_meter(batch, &(struct store_meter){"GPU-b", 1000 * round, 77, -1});
            store_batch_meter(batch, &(struct store_meter){"GPU-a", 1000 * round, -1, 54000});
            store_batch_energy(batch, "GPU-a", UINT64_MAX, 5);
            store_batch_energy(batch, "GPU-a", 7, INT64_C(1) << 40);
            store_batch_energy(batch, "GPU-a", 0, 100 * round);
            store_commit(store, batch, NULL, NULL);
        }
        store_close(store);
    }
    struct store *store = open_store();
    assert_int_equal(store_load_energy(store, see_meter, see_account, &seen, &trouble), 0);
    assert_string_equal(seen.text, "GPU-a 2000 -1 54000\nGPU-b 2000 77 -1\n"
                                   "GPU-a -1 5\nGPU-a 0 200\nGPU-a 7 1099511627776\n");
    store_close(store);
}
