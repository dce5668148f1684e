"""The CSV of `carma monitor` (tests/golden/monitor.csv): an unknown value is empty, never 0."""

import pathlib
import sys
import unittest
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/carma_bench"))

import readings_csv  # noqa: E402

AT_NS = 1700000000 * 10**9 + 7 * 10**6


def gpu(uuid, index, kind="whole", source="", values=(), **told):
    unknown = dict.fromkeys(("utilization", "used_bytes", "total_bytes", "power_w", "energy_j"))
    metrics = {name: SimpleNamespace(value=value, source=source, at_ns=AT_NS - 250 * 10**6) for name, value in values}
    return SimpleNamespace(**{**unknown, "uuid": uuid, "index": index, "kind": kind, "error": 0, "processes": 0,
                              "tells_processes": False, "xid": 0, "metrics": metrics, **told})  # fmt: skip


class Csv(unittest.TestCase):
    def test_is_as_written_down(self):
        measured = [("sm_activity", 0.812), ("sm_occupancy", 0), ("dram_activity", 0.455), ("tensor_activity", 0.007),
                    ("graphics_activity", 1), ("pcie_tx", 123456789), ("pcie_rx", 0)]  # fmt: skip
        gpus = [gpu("GPU-everything", 0, source="gpm", values=measured, utilization=0.99, used_bytes=12 * 2**30,
                    total_bytes=40 * 2**30, power_w=251.05, energy_j=123456789.012, processes=2, tells_processes=True),
                gpu("GPU-coarse", 1, source="utilization", values=[("sm_activity", 0.3)], utilization=0.3, xid=31),
                gpu("GPU-lost", 2, error=15), gpu("GPU-parent", 3, "partitioned"),
                gpu("MIG-part", 3, "instance", "dcgm", [("dram_activity", 0.05)])]  # fmt: skip
        lines = [readings_csv.COLUMNS, *(readings_csv.row(each, AT_NS) for each in gpus)]
        self.assertEqual("\n".join(lines) + "\n", (ROOT / "tests/golden/monitor.csv").read_text(encoding="utf-8"))


unittest.main()
