/* The layout of the state file is held by a golden file: a change of it needs a new version. */
#include "unit.h"

#include "base/file.h"
#include "base/strbuf.h"
#include "vnode/layout.h"

#define MEMBER(type, member)                                                                                           \
    strbuf_printf(&text, "  %zu %s %zu\n", offsetof(struct type, member), #member, sizeof((struct type *)NULL)->member)
#define TYPE(type) strbuf_printf(&text, "%s %zu\n", #type, sizeof(struct type))

TEST(layout_is_golden)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(free_ptr) char *golden = NULL;
    struct error err;
    size_t length;

    strbuf_printf(&text, "version %d magic %s\n", NODE_VERSION, NODE_MAGIC);
    TYPE(node_file);
    MEMBER(node_file, magic);
    MEMBER(node_file, version);
    MEMBER(node_file, size);
    MEMBER(node_file, gpu_count);
    MEMBER(node_file, cuda_version);
    MEMBER(node_file, time_scale);
    MEMBER(node_file, profile);
    MEMBER(node_file, driver_version);
    MEMBER(node_file, generation);
    MEMBER(node_file, active);
    MEMBER(node_file, driver_loads);
    MEMBER(node_file, xid_count);
    MEMBER(node_file, order);
    MEMBER(node_file, faults);
    MEMBER(node_file, xids);
    MEMBER(node_file, calls);
    MEMBER(node_file, gpus);
    MEMBER(node_file, banks);
    TYPE(node_gpu);
    MEMBER(node_gpu, uuid);
    MEMBER(node_gpu, name);
    MEMBER(node_gpu, serial);
    MEMBER(node_gpu, total_bytes);
    MEMBER(node_gpu, reserved_bytes);
    MEMBER(node_gpu, idle_w);
    MEMBER(node_gpu, full_w);
    MEMBER(node_gpu, power_limit_mw);
    MEMBER(node_gpu, power_limit_min_mw);
    MEMBER(node_gpu, compute_major);
    MEMBER(node_gpu, compute_minor);
    MEMBER(node_gpu, architecture);
    MEMBER(node_gpu, cores);
    MEMBER(node_gpu, clock_idle_mhz);
    MEMBER(node_gpu, clock_max_mhz);
    MEMBER(node_gpu, clock_memory_mhz);
    MEMBER(node_gpu, pci_bus);
    MEMBER(node_gpu, pci_device_id);
    MEMBER(node_gpu, pcie_generation);
    MEMBER(node_gpu, gpm);
    MEMBER(node_gpu, mig);
    MEMBER(node_gpu, instance_count);
    MEMBER(node_gpu, unified);
    MEMBER(node_gpu, instances);
    TYPE(node_instance);
    MEMBER(node_instance, uuid);
    MEMBER(node_instance, profile);
    MEMBER(node_instance, total_bytes);
    MEMBER(node_instance, slices);
    MEMBER(node_instance, gpu_instance);
    MEMBER(node_instance, compute_instance);
    MEMBER(node_instance, reserved);
    TYPE(node_fault);
    MEMBER(node_fault, gpus);
    MEMBER(node_fault, reserved);
    MEMBER(node_fault, until_ns);
    TYPE(node_xid);
    MEMBER(node_xid, at_ns);
    MEMBER(node_xid, gpu);
    MEMBER(node_xid, xid);
    MEMBER(node_xid, pid);
    MEMBER(node_xid, instance);
    TYPE(node_bank);
    MEMBER(node_bank, updated_ns);
    MEMBER(node_bank, swept_wall_ns);
    MEMBER(node_bank, slot_high);
    MEMBER(node_bank, reserved);
    MEMBER(node_bank, gpus);
    MEMBER(node_bank, slots);
    TYPE(node_gpu_now);
    MEMBER(node_gpu_now, sm_activity);
    MEMBER(node_gpu_now, busy);
    MEMBER(node_gpu_now, energy_mj);
    MEMBER(node_gpu_now, sm_activity_ns);
    MEMBER(node_gpu_now, busy_ns);
    MEMBER(node_gpu_now, energy_hidden_mj);
    MEMBER(node_gpu_now, instances);
    TYPE(node_instance_now);
    MEMBER(node_instance_now, sm_activity);
    MEMBER(node_instance_now, busy);
    MEMBER(node_instance_now, sm_activity_ns);
    MEMBER(node_instance_now, busy_ns);
    TYPE(node_slot);
    MEMBER(node_slot, phase);
    MEMBER(node_slot, pid);
    MEMBER(node_slot, start_ticks);
    MEMBER(node_slot, mps);
    MEMBER(node_slot, use_count);
    MEMBER(node_slot, mps_domain);
    MEMBER(node_slot, mps_server_pid);
    MEMBER(node_slot, uid);
    MEMBER(node_slot, fault);
    MEMBER(node_slot, reserved);
    MEMBER(node_slot, train_from_ns);
    MEMBER(node_slot, finished_ns);
    MEMBER(node_slot, work_ns);
    MEMBER(node_slot, done_ns);
    MEMBER(node_slot, rate);
    MEMBER(node_slot, uses);
    TYPE(node_use);
    MEMBER(node_use, gpu);
    MEMBER(node_use, instance);
    MEMBER(node_use, activity);
    MEMBER(node_use, bytes);
    strbuf_printf(&text, "phases free %d attached %d loading %d training %d finished %d\n", NODE_SLOT_FREE,
                  NODE_SLOT_ATTACHED, NODE_SLOT_LOADING, NODE_SLOT_TRAINING, NODE_SLOT_FINISHED);
    fail_if(file_read(CARMA_SOURCE "/tests/golden/vnode-state.txt", 65536, &golden, &length, &err) < 0, err);
    assert_string_equal(text.text, golden);
}

RUN_TESTS(NULL, NULL)
