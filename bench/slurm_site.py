"""The traces of bench/slurm: the thesis's tasks, and a site's jobs made of them."""

import dataclasses

import common

NOBODY = "65534"
USERS = ["7", "8", "9", "10", NOBODY]  # of Debian's base system
TASKS, SMALL_MIB, EVERY_ARRAY, EVERY_STEPS = 8, 12000, 10, 3


@dataclasses.dataclass
class Entry:
    arrival_s: float
    user: str
    workload: dict
    tasks: list  # each the options of carma-train, of one step after the other; several: an array
    short: int = -1  # the task that needs more memory than its array asks for


def thesis():
    return [Entry(float(row["arrival_s"]), NOBODY, workload, [[f"--workload {workload['id']}"]]) for row, workload in rows()]


def rows():
    workloads = {row["id"]: row for row in common.rows_of(common.ROOT / "data" / "workloads.csv")}
    return [(row, workloads[row["workload"]]) for row in common.rows_of(common.TRACES / "thesis_60.csv")]


def train(workload, seconds, more=1.0):
    """The workload's memory and activity, for another time."""
    peak = max(int(workload["peak_mib"]), int(workload["resident_mib"]))
    return (f"--gpus {workload['gpus']} --memory {int(int(workload['resident_mib']) * more)}M --peak {int(peak * more)}M "
            f"--sm-activity {workload['sm_activity']} --seconds {seconds:.0f}")


def site():
    """The same arrivals, by five users in turns. Every third job trains in two steps of srun's. Of ten jobs the first small one
    is an array: 8 tasks, each a quarter as long as the job, and one of them needs 1.7 times the memory of the others: the first,
    one in the middle, the last in turns."""
    entries, arrays, since = [], 0, EVERY_ARRAY
    for number, (row, workload) in enumerate(rows()):
        seconds, since = float(workload["solo_runtime_s"]), since + 1
        entry = Entry(float(row["arrival_s"]), USERS[number % len(USERS)], workload, [[train(workload, seconds)]])
        if since > EVERY_ARRAY and workload["gpus"] == "1" and int(workload["peak_mib"]) < SMALL_MIB:
            entry.short = [0, TASKS // 2, TASKS - 1][arrays % 3]
            entry.tasks = [[train(workload, seconds / 4, 1.7 if task == entry.short else 1)] for task in range(TASKS)]
            arrays, since = arrays + 1, 0
        elif number % EVERY_STEPS == 0:
            entry.tasks = [[train(workload, seconds / 2)] * 2]
        entries.append(entry)
    return entries


TRACES = {"thesis": thesis, "site": site}
