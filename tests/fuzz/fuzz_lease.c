/* Requests about leases, and the file of one: refused in one line, or within bounds. The first byte says which. */
#include <string.h>

#include "api/lease.h"
#include "base/memory.h"
#include "fuzz.h"
#include "launch/lease.h"

static void ask(const char *text, size_t length)
{
    CLEANUP(lease_request_release) struct lease_request request;
    struct error err = {{0}};

    if (lease_request_parse(text, length, &request, &err))
        require_message(&err);
    else
        require(request.spec.cluster && request.spec.slurm_node && request.spec.command.count &&
                request.wait_ms <= LEASE_WAIT_MAX_MS);
}

static void attach(const char *text, size_t length)
{
    CLEANUP(lease_attach_release) struct lease_attach attach;
    struct error err = {{0}};

    if (lease_attach_parse(text, length, &attach, &err))
        require_message(&err);
    else
        require(attach.count || strcmp(attach.cgroup, "/") != 0);
}

static void end(const char *text, size_t length)
{
    CLEANUP(lease_end_release) struct lease_end end;
    struct error err = {{0}};

    if (lease_end_parse(text, length, LEASE_OUTPUT_BYTES, &end, &err))
        require_message(&err);
    else
        require((end.exit_status >= 0) == (end.signal == 0));
}

static void read_file(const char *text, size_t length)
{
    CLEANUP(lease_release) struct lease lease;

    require(lease_parse("file", text, length, &lease, NULL) == 0 || lease.count == 0);
    require(lease.count <= LEASE_MAX_STEPS);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static void (*const readers[])(const char *, size_t) = {ask, attach, end, read_file};

    if (length)
        readers[bytes[0] % array_size(readers)]((const char *)bytes + 1, length - 1);
    return 0;
}
