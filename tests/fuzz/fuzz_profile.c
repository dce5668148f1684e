/* Machine profiles: refused in one line, or read to figures that can be. */
#include <string.h>

#include "estimate/profile.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct machine_profile profile;
    struct error err = {{0}};

    if (machine_profile_read(&profile, "f.profile", (const char *)bytes, length, &err)) {
        require_message(&err);
        require(strncmp(err.text, "f.profile:", 10) == 0);
        return 0;
    }
    require(profile.context_bytes >= 0 && profile.context_bytes + profile.cudnn_bytes < profile.memory_bytes);
    return 0;
}
