"""A trace, as carma hands it over."""

import json
from collections import namedtuple

CLASSES = ("light", "medium", "heavy")

# `kind` is its class.
Workload = namedtuple("Workload", "name gpus kind solo_ns")


class Job(namedtuple("Job", "arrival_ns kept_ns gpus permille workload")):
    """kept_ns: how long it runs alone on its GPUs; -1: as long as its workload, which is None where the trace names none.
    permille: the part of each GPU that it asked for."""

    __slots__ = ()

    @property
    def run_ns(self):
        return self.workload.solo_ns if self.kept_ns < 0 and self.workload else self.kept_ns


class Trace:
    """Its header's members, and its jobs in the order of their arrival: at least one. The names can be shown as they are."""

    def __init__(self, header, jobs):
        self.path, self.vc, self.workloads_path = header["path"], header["vc"], header["workloads_path"]
        self.format, self.left_out = header["format"], header["left_out"]
        self.columns, self.colour, self.utf8 = header["columns"], header["colour"], header["utf8"]
        self.workloads, self.jobs = [Workload(*fields) for fields in header["workloads"]], []
        named = [*self.workloads, None]  # -1: none
        for *fields, workload in jobs:
            self.jobs.append(Job(*fields, named[workload]))


def read(stream):
    return Trace(json.loads(stream.readline()), (map(int, line.split()) for line in stream))


def total(values):
    """sum() of a later Python rounds otherwise."""
    result = 0.0
    for value in values:
        result += value
    return result


def class_counts(jobs):
    counts = dict.fromkeys(CLASSES, 0)
    for job in jobs:
        if job.workload:
            counts[job.workload.kind] += 1
    return counts
