/* Fuzz target: any text as an MPS control daemon's answer. An accepted answer is in range, a
 * refused one gives the reason in one line. And as a line of its server's log. */
#include "base/memory.h"
#include "fuzz.h"
#include "gpu/mps/protocol.h"
#include "gpu/mps/server_log.h"

static void check(int rc, const struct error *err)
{
    require(rc <= 0);
    if (rc < 0)
        require_message(err);
}

static void check_pids(int rc, const struct mps_pids *pids, uint32_t most, const struct error *err)
{
    check(rc, err);
    require(pids->count <= most);
    for (uint32_t i = 0; i < pids->count; i++)
        require(pids->items[i] > 0 && pids->items[i] <= 1 << 22);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct mps_pids pids;
    enum mps_server_state state;
    struct error err = {{0}};
    CLEANUP(free_ptr) char *text = xstrndup((const char *)bytes, length);
    pid_t client;

    if (mps_log_read_line((const char *)bytes, length, &client) != MPS_LOG_NOTHING)
        require(client > 0 && client <= 1 << 22);
    check(mps_read_probe(text, &err), &err);
    check_pids(mps_read_servers(text, &pids, &err), &pids, MPS_MAX_SERVERS, &err);
    check_pids(mps_read_clients(text, &pids, &err), &pids, MPS_MAX_CLIENTS, &err);
    int rc = mps_read_status(text, 71, &state, &err);
    check(rc, &err);
    require(rc < 0 || (unsigned)state < MPS_SERVER_STATE_COUNT);
    return 0;
}
