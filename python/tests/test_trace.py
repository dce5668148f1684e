"""carma trace (python/carma_bench): building's window, mix, kept parts and load, and that a seed says all; a trace's demand
against figures worked out by hand."""

import collections
import pathlib
import sys
import unittest
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "carma_bench"))

import trace_build  # noqa: E402
import trace_show  # noqa: E402
from show import Failure  # noqa: E402
from trace_read import Job, Trace, Workload  # noqa: E402

NS = 10**9
# 26 light workloads, 19 medium ones and 6 heavy ones, half of these on two GPUs
WORKLOADS = [Workload(f"{kind}{i}", 2 if kind == "heavy" and i % 2 else 1, kind, (i + 1) * 60 * NS)
             for kind, count in (("light", 26), ("medium", 19), ("heavy", 6)) for i in range(count)]


def trace_of(jobs, workloads=()):
    header = {"path": "a/t.csv", "vc": None, "workloads_path": "w.csv", "format": "pods", "left_out": 0,
              "columns": 100, "colour": False, "utf8": False, "workloads": workloads}
    return Trace(header, jobs)


class Build(unittest.TestCase):
    """1000 jobs of a published kind: one every 10 s from 500 s on, of 1, 2, 4 or 8 GPUs."""

    trace = trace_of([[(500 + 10 * i) * NS, (1 + 100 * i) * NS + 400000, 1 << i % 4, 1000, -1] for i in range(1000)],
                     WORKLOADS)

    def build(self, workloads=None, **options):
        options = {name.replace("_", "-"): str(value) for name, value in options.items()}
        trace = SimpleNamespace(jobs=self.trace.jobs, workloads=workloads or self.trace.workloads)
        return trace_build.build(trace, trace_build.plan_of(options, trace))

    def refuse(self, text, **options):
        with self.assertRaises(Failure) as failed:
            self.build(**options)
        self.assertEqual(str(failed.exception), text)

    def test_mix_is_met(self):
        for jobs, mix, counts in ((90, "65/27/8", [59, 24, 7]), (60, "0/83/17", [0, 50, 10]), (1, "1/1/2", [0, 0, 1]),
                                  (7, "1/0/0", [7, 0, 0]), (1000, "65/27/8", [650, 270, 80])):
            built, report = self.build(jobs=jobs, mix=mix)
            drawn = collections.Counter(job.workload.kind for job in built)
            self.assertEqual([drawn[kind] for kind in trace_build.CLASSES], counts)
            self.assertEqual(list(report.classes.values()), counts)

    def test_draws_are_even(self):
        """26 light workloads on 1000 jobs are 38.5 each, s.d. 6.1. And 650 of 1000 come in random order."""
        drawn = collections.Counter(job.workload for job in self.build(mix="1/0/0")[0])
        self.assertEqual(set(drawn), set(WORKLOADS[:26]))
        self.assertTrue(all(15 <= count <= 65 for count in drawn.values()), drawn)
        light = sum(job.workload.kind == "light" for job in self.build()[0][:500])
        self.assertTrue(290 <= light <= 360, light)  # 325, s.d. 7.5

    def test_seed_says_all(self):
        once, again, other = (list(trace_build.rows(self.build(jobs=100, seed=seed)[0])) for seed in (1, 1, 2))
        self.assertEqual(once, again)
        self.assertNotEqual(once, other)
        random = trace_build.Random(1234567)  # the generator's published first values
        self.assertEqual([random.next() for _ in range(3)],
                         [6457827717110365317, 3203168211198807973, 9817491932198370423])

    def test_window(self):
        built, report = self.build(**{"from": 1000 * NS}, to=1100 * NS)
        self.assertEqual([job.arrival_ns for job in built], [10 * i * NS for i in range(10)])
        self.assertEqual((report.in_window, report.too_large), (10, 0))
        built, report = self.build(**{"from": 1000 * NS}, window=100 * NS, max_gpus=2)
        self.assertEqual((len(built), report.in_window, report.too_large), (4, 10, 6))
        self.refuse("no job arrives in that window: they arrive from 500 s to 10490 s", **{"from": 20000 * NS})
        few = {"from": 520 * NS, "max_gpus": 2}
        self.refuse("each of the window's 2 jobs takes more than 2 GPUs: allow more", to=540 * NS, **few)
        self.refuse("5 jobs are asked for and the window has 4: widen it or ask for fewer", to=600 * NS, jobs=5, **few)

    def test_shrinking_is_even(self):
        """Each job is as likely to stay as any other, and they stay in order."""
        kept = [0] * 10
        for seed in range(50):
            arrivals = [job.arrival_ns for job in trace_build.trim(self.trace.jobs, 100, trace_build.Random(seed))]
            self.assertEqual((len(arrivals), arrivals), (100, sorted(set(arrivals))))
            for arrival in arrivals:
                kept[(arrival // NS - 500) // 1000] += 1
        self.assertTrue(all(420 <= count <= 580 for count in kept), kept)  # 500, s.d. 20

    def test_what_is_kept(self):
        for job in self.build()[0]:
            self.assertEqual((job.gpus, job.kept_ns), (job.workload.gpus, -1))
        built, _ = self.build(keep="gpus,durations", min_duration=60 * NS, max_duration=5000 * NS)
        for i, job in enumerate(built):
            self.assertEqual((job.gpus, job.kept_ns), (1 << i % 4, min(max(1 + 100 * i, 60), 5000) * NS))
            self.assertLessEqual(job.workload.gpus, job.gpus)
        self.assertEqual({job.gpus for job in self.build(max_gpus=1)[0]}, {1})

    def test_load(self):
        built, report = self.build(load=0.8)
        busy_s = sum(job.gpus * job.run_ns for job in built) / NS
        span_s = built[-1].arrival_ns / NS
        self.assertAlmostEqual(busy_s / (4 * span_s), 0.8, 6)
        self.assertAlmostEqual(report.stretch, span_s / 9990, 6)
        self.assertEqual(self.build(stretch=0.25)[0][3].arrival_ns, 7.5 * NS)
        self.refuse("stretched 1e+06 times, the last job arrives after 9.99e+09 s: the most is 1e+09 s", stretch="1e6")
        self.refuse("all jobs arrive at once: no times between them make a load of 0.5", to=501 * NS, load=0.5)

    def test_no_workload_of_a_class(self):
        few = [Workload("a", 1, "light", NS), Workload("b", 2, "heavy", NS)]
        self.refuse("there is no medium workload: give that class no share of the mix", workloads=few)
        self.refuse("no heavy workload runs on at most 1 GPUs: give that class no share of the mix", workloads=few,
                    mix="1/0/1", max_gpus=1)

    def test_cut_without_drawing(self):
        small = Workload("vgg", 1, "light", NS)
        trace = SimpleNamespace(workloads=[], jobs=[Job(10 * NS, 99 * NS, 2, 1000, small), Job(20 * NS, -1, 1, 1000, small),
                                                    Job(30 * NS, 5 * NS, 1, 1000, small)])
        built, _ = trace_build.build(trace, trace_build.plan_of({"to": str(25 * NS), "stretch": "2.0005"}, trace))
        self.assertEqual(list(trace_build.rows(built)),
                         ["arrival_s,workload,gpus,duration_s", "0,vgg,2,99", "20.005,vgg,1,"])


class Demand(unittest.TestCase):
    """Half of a GPU from 0 to 100 s, two from 10 to 30 s, one from 30 to 40 s. Where one ends another begins."""

    trace = trace_of([[0, 100 * NS, 1, 500, -1], [10 * NS, 20 * NS, 2, 1000, -1], [30 * NS, 10 * NS, 1, 1000, -1]])

    def test_by_hand(self):
        report = trace_show.report_of(self.trace, 20 * NS)
        self.assertEqual([(each["arrivals"], each["gpus_wanted_mean"]) for each in report["bins"]],
                         [(2, 0.5 + 2 * 10 / 20), (1, 2.5)])  # the last one until the last arrival
        self.assertEqual(report["gpus_wanted_max"], 2.5)
        self.assertAlmostEqual(report["gpus_wanted_mean"], 0.5 + 2 * 20 / 30)
        self.assertAlmostEqual(report["gpu_hours"] * 3600, 50 + 40 + 10)
        self.assertAlmostEqual(report["run_time_s"]["mean"], 130 / 3)
        self.assertEqual([report["run_time_s"][name] for name in ("min", "p25", "p50", "max")], [10, 15, 20, 100])
        self.assertEqual(report["gpus"], [{"gpus": 1, "jobs": 2}, {"gpus": 2, "jobs": 1}])
        self.assertNotIn("classes", report)

    def test_last_moment(self):
        """The last arrival is the first moment of its bin: the bin is the demand then."""
        self.assertEqual([each["gpus_wanted_mean"] for each in trace_show.report_of(self.trace, 15 * NS)["bins"]][1:],
                         [2.5, 1.5])

    def test_bins_by_themselves(self):
        for last_s, bin_s, bins in ((0, 1, 1), (23, 1, 24), (24, 2, 13), (86399, 3600, 24), (86400, 7200, 13),
                                    (10**9, 315360000, 4)):
            report = trace_show.report_of(trace_of([[0, 5 * NS, 1, 1000, -1], [last_s * NS, 5 * NS, 1, 1000, -1]]), 0)
            self.assertEqual((report["bin_s"], len(report["bins"])), (bin_s, bins))
        with self.assertRaisesRegex(Failure, "arrivals over 10000 s make more than 10000 bins of 1 s: take longer ones"):
            trace_show.report_of(trace_of([[0, NS, 1, 1000, -1], [10000 * NS, NS, 1, 1000, -1]]), NS)

    def test_one_job(self):
        report = trace_show.report_of(trace_of([[7 * NS, NS // 2, 3, 1000, -1]]), 0)
        self.assertEqual((report["bins"][0]["gpus_wanted_mean"], report["gpus_wanted_mean"], report["gpus_wanted_max"]),
                         (3, 0, 3))


if __name__ == "__main__":
    unittest.main()
