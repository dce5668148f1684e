/* Machine profiles: refused in one line, or the written form is read back to the same. */
#include <string.h>

#include "base/memory.h"
#include "estimate/profile.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf same = {0};
    struct machine_profile profile, again;
    struct error err = {{0}};

    if (machine_profile_read(&profile, "f.profile", (const char *)bytes, length, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.profile:", 10) == 0);
        return 0;
    }
    require(profile.context_bytes >= 0 && profile.context_bytes + profile.cudnn_bytes < profile.memory_bytes);
    machine_profile_format(&profile, &text);
    require(machine_profile_read(&again, "f.profile", text.text, text.length, &err) == 0);
    machine_profile_format(&again, &same);
    require(strcmp(same.text, text.text) == 0);
    return 0;
}
