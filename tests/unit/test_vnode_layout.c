/* The layout of the state file is held by a golden file: a change of it needs a new version. */
#include "unit.h"

#include "vnode/layout.h"

struct member {
    size_t offset, size;
    const char *name;
};

static void print_type(struct strbuf *text, const char *type, size_t size, const struct member *members, size_t count)
{
    strbuf_printf(text, "%s %zu\n", type, size);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(text, "  %zu %s %zu\n", members[i].offset, members[i].name, members[i].size);
}

/* A type with its members, each in M(). */
#define TYPE(type, ...)                                                                                                \
    do {                                                                                                               \
        typedef struct type of;                                                                                        \
        static const struct member members[] = {__VA_ARGS__};                                                          \
        print_type(&text, #type, sizeof(of), members, array_size(members));                                            \
    } while (0)
#define M(member)                                                                                                      \
    {                                                                                                                  \
        offsetof(of, member), sizeof((of *)NULL)->member, #member                                                      \
    }

TEST(layout_is_golden)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(free_ptr) char *golden = file_text(CARMA_SOURCE "/tests/golden/vnode-state.txt");

    strbuf_printf(&text, "version %d magic %s\n", NODE_VERSION, NODE_MAGIC);
    TYPE(node_file, M(magic), M(version), M(size), M(gpu_count), M(cuda_version), M(time_scale), M(profile),
         M(driver_version), M(spread_seed), M(generation), M(active), M(driver_loads), M(xid_count), M(order),
         M(faults), M(xids), M(calls), M(gpus), M(banks));
    TYPE(node_gpu, M(uuid), M(name), M(serial), M(total_bytes), M(reserved_bytes), M(idle_w), M(full_w),
         M(power_limit_mw), M(power_limit_min_mw), M(compute_major), M(compute_minor), M(architecture), M(cores),
         M(clock_idle_mhz), M(clock_max_mhz), M(clock_memory_mhz), M(pci_bus), M(pci_device_id), M(pcie_generation),
         M(gpm), M(mig), M(instance_count), M(unified), M(instances));
    TYPE(node_instance, M(uuid), M(profile), M(total_bytes), M(slices), M(gpu_instance), M(compute_instance),
         M(reserved));
    TYPE(node_fault, M(gpus), M(reserved), M(until_ns));
    TYPE(node_xid, M(at_ns), M(gpu), M(xid), M(pid), M(instance));
    TYPE(node_bank, M(updated_ns), M(swept_wall_ns), M(slot_high), M(reserved), M(gpus), M(slots));
    TYPE(node_gpu_now, M(sm_activity), M(busy), M(energy_mj), M(sm_activity_ns), M(busy_ns), M(energy_hidden_mj),
         M(instances));
    TYPE(node_instance_now, M(sm_activity), M(busy), M(sm_activity_ns), M(busy_ns));
    TYPE(node_slot, M(phase), M(pid), M(start_ticks), M(mps), M(use_count), M(mps_domain), M(mps_server_pid), M(uid),
         M(fault), M(threads_percent), M(train_from_ns), M(finished_ns), M(work_ns), M(done_ns), M(rate), M(uses));
    TYPE(node_use, M(gpu), M(instance), M(activity), M(bytes));
    strbuf_printf(&text, "phases free %d attached %d loading %d training %d finished %d\n", NODE_SLOT_FREE,
                  NODE_SLOT_ATTACHED, NODE_SLOT_LOADING, NODE_SLOT_TRAINING, NODE_SLOT_FINISHED);
    assert_string_equal(text.text, golden);
}
