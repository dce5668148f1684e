/* CUDA_VISIBLE_DEVICES of a job: its GPUs by UUID, or by index for programs that read integers (--visible-devices).
 *
 * An index counts in what the job's processes enumerate, in the order of the PCI bus, which is NVML's: the list of its
 * MPS server; else, behind the device filter (launch/cgroup/device_filter.h), its own GPUs; else the node's. */
#ifndef CARMA_DAEMON_RUN_VISIBLE_H
#define CARMA_DAEMON_RUN_VISIBLE_H

#include "api/spec.h"
#include "daemon/daemon.h"

/* The indices, owned by the caller, in the order of the placements. `mps_gpus`: the UUIDs of its MPS server, NULL: it
 * has none that carma started. NULL: UUIDs; *why says whether indices were asked for and cannot be right. */
char *visible_indices(const struct daemon *daemon, const struct job_view *view, const struct job_spec *spec,
                      bool under_mps, const char *mps_gpus, bool filtered, enum uuids_why *why);

#endif
