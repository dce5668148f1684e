/* Any text as output of carma-monitor --inspect: the result is bounded text, and GPUs are possible ones. */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "gpu/driver_facts.h"

static void demand_text(const char *text, size_t room)
{
    require(memchr(text, '\0', room));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    CLEANUP(free_ptr) char *text = xstrndup((const char *)bytes, count);
    struct driver_facts facts;

    driver_facts_read(&facts, text);
    demand_text(facts.library, sizeof facts.library);
    demand_text(facts.no_library, sizeof facts.no_library);
    demand_text(facts.init_text, sizeof facts.init_text);
    for (size_t i = 0; i < GPU_MAX_DEVICES; i++) {
        demand_text(facts.gpu[i].name, sizeof facts.gpu[i].name);
        demand_text(facts.gpu[i].uuid, sizeof facts.gpu[i].uuid);
        demand_text(facts.gpu[i].failed, sizeof facts.gpu[i].failed);
    }
    require(facts.asked >= -1 && facts.asked < GPU_MAX_DEVICES);
    return 0;
}
