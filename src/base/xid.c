#include "base/xid.h"

#include <stddef.h>

#include "base/memory.h"
#include "base/units.h"

/* The applications' are those that the health check of NVIDIA's Kubernetes device plugin passes over. It calls a GPU
 * unhealthy for every other; so does this table for those that are not in it. All that NVIDIA's Xid catalogue
 * ("Analyzing Xid Errors with the Xid Catalog") resets a GPU or restarts a machine for is among the others. The texts
 * are ours, after the descriptions there. */
static const struct {
    uint32_t number;
    bool application;
    const char *text;
} xids[] = {
    {13, true, "graphics engine exception"},
    {31, true, "GPU memory page fault"},
    {32, false, "corrupted push buffer"},
    {43, true, "GPU stopped processing"},
    {45, true, "clean-up after an earlier error"},
    {46, false, "GPU stopped processing for good"},
    {48, false, "double-bit memory error"},
    {54, false, "auxiliary power is not connected"},
    {61, false, "microcontroller stopped at a breakpoint"},
    {62, false, "microcontroller halted"},
    {63, false, "memory row remapped"},
    {64, false, "memory row could not be remapped"},
    {68, true, "video decoder exception"},
    {74, false, "NVLink error"},
    {79, false, "GPU has fallen off the bus"},
    {92, false, "many single-bit memory errors"},
    {94, false, "contained memory error"},
    {95, false, "uncontained memory error"},
    {109, true, "context switch timed out"},
    {110, false, "security fault"},
    {119, false, "the GPU's firmware does not answer"},
    {120, false, "error in the GPU's firmware"},
    {140, false, "unrecovered memory error"},
    {143, false, "GPU could not be initialised"},
    {144, false, "NVLink error"},
    {145, false, "NVLink error"},
    {146, false, "NVLink error"},
    {147, false, "NVLink error"},
    {148, false, "NVLink error"},
    {149, false, "NVLink error"},
    {150, false, "NVLink error"},
    {154, false, "the GPU has to be reset, or the machine restarted"},
    {155, false, "NVLink error"},
    {156, false, "a part of the GPU was retired"},
    {157, false, "a part of the GPU could not be retired"},
    {158, false, "the GPU timed out for good"},
};

bool xid_is_hardware(uint32_t xid)
{
    for (size_t i = 0; i < array_size(xids); i++)
        if (xids[i].number == xid)
            return !xids[i].application;
    return xid != 0;
}

const char *xid_text(uint32_t xid)
{
    for (size_t i = 0; i < array_size(xids); i++)
        if (xids[i].number == xid)
            return xids[i].text;
    return "";
}

#define FOLLOWS_NS (10 * NS_PER_SEC)

bool xid_follows(uint32_t next, int64_t next_ns, uint32_t previous, int64_t previous_ns)
{
    return xid_is_hardware(previous) && !xid_is_hardware(next) && next_ns - previous_ns <= FOLLOWS_NS;
}
