/* The end of a job's output, with any bytes: a verdict within its bounds, and a status that keeps it. */
#include <string.h>

#include "fuzz.h"
#include "launch/classify.h"
#include "launch/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct classify_verdict verdict;
    struct launch_status status;

    classify_output((const char *)bytes, length, &verdict);
    require(memchr(verdict.line, '\0', sizeof verdict.line));
    require(verdict.requested_bytes >= -1 && verdict.free_bytes >= -1);
    require((unsigned)verdict.kind < OUTPUT_KIND_COUNT && verdict.tenant_count <= CLASSIFY_MAX_TENANTS);
    require(verdict.kind != OUTPUT_NOTHING ||
            (verdict.requested_bytes == -1 && verdict.free_bytes == -1 && !verdict.tenant_count && !verdict.line[0]));
    require(!verdict.own_error || verdict.kind == OUTPUT_NOTHING);
    for (uint32_t i = 0; i < verdict.tenant_count; i++)
        require(verdict.tenants[i].pid > 0 && verdict.tenants[i].used_bytes >= 0);
    status_set_message(&status, (const char *)bytes, length);
    require(memchr(status.message, '\0', sizeof status.message) && !strpbrk(status.message, "\n\r\t\x1b"));
    if (status_parse("status", (const char *)bytes, length, &status, NULL) == 0)
        require((unsigned)status.phase < LAUNCH_PHASE_COUNT && (unsigned)status.cause < EXIT_CAUSE_COUNT &&
                (unsigned)status.output < OUTPUT_KIND_COUNT && status.tenant_count <= CLASSIFY_MAX_TENANTS &&
                memchr(status.cgroup, '\0', sizeof status.cgroup));
    return 0;
}
