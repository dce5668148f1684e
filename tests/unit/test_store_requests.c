/* The store's requests, by which a submission that is sent again is known. */

#include "store_fixture.h"

static int see_request(const struct store_request *request, void *user)
{
    char *seen = user;

    sprintf(seen + strlen(seen), "%u %s %" PRIx64 " %" PRIu64 " %u;", request->uid, request->id, request->digest,
            request->first, request->count);
    return 0;
}

/* In the order of their jobs. A new one takes the old one's place; those too old are not told of, and forgotten. */
STORE_TEST(test_requests)
{
    struct store_request request = {
        .id = "a", .uid = 7, .digest = UINT64_MAX, .first = 5, .count = 2, .at_s = store_request_now_s()};
    struct store *store = open_store();
    struct store_batch *batch = store_batch_new();
    char seen[200] = "";

    store_batch_request(batch, &request);
    request.uid = 8;
    request.first = 4;
    store_batch_request(batch, &request);
    request.uid = 7;
    request.first = 9;
    request.count = 1;
    store_batch_request(batch, &request);
    request.id = "old";
    request.at_s -= STORE_REQUEST_KEPT_S + 5;
    store_batch_request(batch, &request);
    store_commit(store, batch, NULL, NULL);
    assert_int_equal(store_load_requests(store, see_request, seen, &trouble), -EBUSY);
    store_close(store);
    store = open_store();
    assert_int_equal(store_load_requests(store, see_request, seen, &trouble), 0);
    assert_string_equal(seen, "8 a ffffffffffffffff 4 2;7 a ffffffffffffffff 9 1;");
    batch = store_batch_new();
    store_batch_forget(batch, 0, 9);
    store_commit(store, batch, NULL, NULL);
    store_close(store);
    run_sql("CREATE TEMP TABLE t (n CHECK (n = 2)); INSERT INTO t SELECT count(*) FROM request");
}
