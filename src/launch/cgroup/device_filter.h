/* The device nodes that the processes of a control group may open. Of NVIDIA's GPUs and MIG instances these are only
 * the named ones; of other devices, all. The kernel asks a small program for each opening (BPF_PROG_TYPE_CGROUP_DEVICE,
 * Linux 4.15, version 2 of control groups). It is put together here, without a library or a compiler, needs root, and
 * goes with the group.
 *
 * The nodes of NVIDIA's driver. Major 195 has the GPUs by their minor numbers (nvidiaN), and from 254 on nodes that
 * every process needs (nvidia-modeset, nvidiactl). Another major, which /proc/devices calls nvidia-caps, has one node
 * for each GPU instance and each compute instance (MIG User Guide, "Device Nodes and Capabilities"). Before those it
 * has the rights to configure and to monitor. nvidia-uvm, with a major of its own, names no GPU. */
#ifndef CARMA_LAUNCH_DEVICE_FILTER_H
#define CARMA_LAUNCH_DEVICE_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/record.h"

#define DEVICE_FILTER_CAPS (2 * RECORD_MAX_GPUS)
#define DEVICE_FILTER_ROOM (RECORD_MAX_GPUS + DEVICE_FILTER_CAPS + 32) /* instructions at most */

struct bpf_insn;

struct device_filter {
    uint32_t gpu_count;
    uint32_t gpus[RECORD_MAX_GPUS]; /* minor numbers of the GPUs, or of those that the instances are parts of */
    uint32_t caps_major;            /* 0: no nodes of instances exist */
    uint32_t cap_count;
    uint32_t caps[DEVICE_FILTER_CAPS]; /* minor numbers of the instances' nodes */
};

/* The text of /proc/devices: the major number of the character devices of this name; 0: there are none. */
uint32_t device_filter_major(const char *devices, const char *name);

/* Adds the nodes of a MIG instance by the text of /proc/driver/nvidia-caps/mig-minors; -ENOENT: it is not there. */
int device_filter_add_instance(struct device_filter *filter, const char *mig_minors, uint32_t gpu_minor,
                               uint32_t gpu_instance, uint32_t compute_instance);

/* The program, in an array of DEVICE_FILTER_ROOM; returns how many instructions it has. */
size_t device_filter_program(const struct device_filter *filter, struct bpf_insn *program);

/* Into the kernel: a descriptor of the program, or a negative errno. And onto an open control group, beside the filters
 * that a service manager has put there: all have to allow. 0 or a negative errno. */
int device_filter_load(const struct device_filter *filter);
int device_filter_put(int program, int cgroup);

/* The program of a filter as it is printed: a descriptor that stays ours, or a negative errno. It is kept for jobs with
 * the same devices, since to check one takes the kernel 0.1 ms of a processor, just when a start needs them. */
int device_filter_kept(const char *text);

/* Puts the filter, or its program, on the control group (a path as in launch/cgroup/cgroup.h). 0 or a negative errno.
 */
int device_filter_put_on(int program, const char *cgroup, struct error *err);
int device_filter_attach(const struct device_filter *filter, const char *cgroup, struct error *err);

/* Whether filters can be had here: makes a group, puts one on it, and removes it. 0 or a negative errno. */
int device_filter_try(struct error *err);

/* The same as far as the kernel goes, without a group: whether it takes such a program. */
int device_filter_load_try(struct error *err);

/* As one word, for the request of a launch: "GPUS;MAJOR;CAPS", lists with commas. Owned by the caller. */
char *device_filter_print(const struct device_filter *filter);
int device_filter_parse(const char *text, struct device_filter *filter); /* 0 or -EINVAL */

#endif
