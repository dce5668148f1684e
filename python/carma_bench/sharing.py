"""carma evaluate --pairs, --threads and --mig: what the core predicts of jobs that share a GPU, beside what was measured
(docs/formats/datasets.md). `ask` answers by the functions by which it decides (src/core/share/rates.h)."""

import math

import rows
from show import Failure
from trace_read import total

PPM = 1000000  # the speed alone
MIX_LEAST, MIX_MOST = 3, 7
SLICES = 7


def root_mean_square(errors):
    return math.sqrt(total(error * error for error in errors) / len(errors))


def slowdown(rates):
    return PPM / min(rates)


def read_pairs(path):
    """A workload's activity is found from its pairs with itself: two equal jobs run at (1 - (1 - a)^2) / 2a = 1 - a / 2 of
    their speed alone."""
    own, pairs = {}, []
    for row in rows.read(path, ("a", "b", "a_rate", "b_rate"), ("a_step_alone_ms", "b_step_alone_ms")):
        rates = [row.number_of(name, 0.001, 10, PPM) for name in ("a_rate", "b_rate")]
        if row["a"] == row["b"]:
            own.setdefault(row["a"], []).append(sum(rates))
        else:
            pairs.append((row["a"], row["b"], rates))
    activity = {name: min(max(2000 - sum(both) // len(both) * 1000 // PPM, 0), 1000) for name, both in own.items()}
    return activity, pairs


def pairs(path, ask):
    activity, measured = read_pairs(path)
    bound, admitted = ask({"ask": "bound"}).values()
    errors, biases, slowdowns, let_in = [], [], [], []
    for a, b, rates in measured:
        if a not in activity or b not in activity:
            continue
        predicted = ask({"ask": "pair", "activity_permille": [activity[a], activity[b]]})["rates_ppm"]
        errors += [(guess - rate) / PPM for guess, rate in zip(predicted, rates)]
        biases.append(errors[-2] + errors[-1])
        slowdowns.append(slowdown(rates))
        if slowdown(predicted) * 1000 <= admitted:
            let_in.append(slowdowns[-1])
    if not errors:
        raise Failure(f"{path}: no pair of two workloads that each have a pair with themselves, too")
    report = {"pairs": len(biases), "left_out": len(measured) - len(biases), "rate_rmse": root_mean_square(errors),
              "sum_bias": total(errors) / len(biases), "within": sum(each <= bound / 1000 for each in slowdowns),
              "admitted": len(let_in), "over_bound": sum(each > bound / 1000 for each in let_in),
              "worst": max(let_in, default=None)}  # fmt: skip
    worst = f"; the worst job was slowed {report['worst']:.2f} times" if let_in else ""
    return report, (
        f"{report['pairs']} pairs of jobs by MPS. Not counted: {report['left_out']} of a workload without a pair with "
        f"itself.\n\nA job's rate: error {report['rate_rmse']:.3f} (root mean square), in parts of its speed alone.\n"
        f"The sum of two rates: {report['sum_bias']:+.3f} too much in the mean.\n"
        f"In {report['within']} pairs no job was slowed more than {bound / 1000:.2f} times, the default of max_slowdown.\n"
        f"Admitted, with at most {admitted / 1000:.2f} predicted: {len(let_in)} pairs, {report['over_bound']} of them "
        f"beyond the bound{worst}.")


def threads(path, ask):
    """Clients of one MPS server, each with the same share of the threads: how much faster they run by that, as a mean over
    the jobs of all mixes with as many of them."""
    speeds = {}
    for row in rows.read(path, ("jobs", "speed_at_50_percent", "speed_at_14_percent"), ("mix",)):
        jobs = row.whole("jobs", 1, 48)
        if MIX_LEAST <= jobs <= MIX_MOST:
            said = speeds.setdefault(jobs, (ask({"ask": "threads", "clients": jobs}), []))
            said[1].append(row.number_of(f"speed_at_{said[0]['percent']}_percent", 0, 100, PPM) / PPM)
    if not speeds:
        raise Failure(f"{path}: no mix of {MIX_LEAST} to {MIX_MOST} jobs")
    gains = [{"jobs": jobs, "rows": len(measured), "percent": core["percent"], "measured": total(measured) / len(measured),
              "predicted": core["gain_permille"] / 1000} for jobs, (core, measured) in sorted(speeds.items())]  # fmt: skip
    report = {"gain_error": max(abs(gain["predicted"] - gain["measured"]) for gain in gains), "gains": gains}
    return report, "\n".join([
        "Speed of a client with a share of the threads, as a multiple of that among as many without a limit:",
        *("{jobs} jobs with {percent:2}% each: {measured:.3f} measured (of {rows} jobs), {predicted:.3f} predicted".format(
            **gain) for gain in gains),
        f"Largest error: {report['gain_error']:.3f}."])  # fmt: skip


def mig(path, ask):
    """Workloads alone on instances. A workload's activity is found from its rate on the smallest instance, by search; its
    rates on the others are predicted from that. Whole GPUs (7g) are not counted."""
    measured, slowed, errors, left_out = {}, {}, [], 0
    for row in rows.read(path, ("workload", "profile", "rate_against_7g"),
                         ("gpu_utilization_7g", "memory_utilization_7g")):
        rate, profile = row.number_of("rate_against_7g", 0.001, 10, PPM) / PPM, row["profile"]
        if profile[:1] not in tuple("1234567") or profile[1:2] != "g":  # begins with its compute slices: 3g.20gb
            raise row.error(f"profile '{profile[:20]}' does not begin with 1g to 7g")
        if profile[0] != str(SLICES):
            measured.setdefault(row["workload"], {})[int(profile[0])] = rate
    for slices in range(1, SLICES):
        slowed[slices] = ask({"ask": "part", "part_permille": slices * 1000 // SLICES})["slowed_permille"]
    for rates in measured.values():
        smallest, *others = sorted(rates)
        activity = min(range(1001), key=lambda a: abs(1000 / slowed[smallest][a] - rates[smallest]))
        errors += [1000 / slowed[slices][activity] - rates[slices] for slices in others]
        left_out += not others
    if not errors:
        raise Failure(f"{path}: no workload on two instances")
    report = {"rates": len(errors), "left_out": left_out, "rate_rmse": root_mean_square(errors),
              "rate_bias": total(errors) / len(errors)}  # fmt: skip
    return report, (
        f"{len(errors)} rates on MIG instances, each predicted by the workload's rate on its smallest one.\n"
        f"Not counted: {left_out} workloads on one instance only.\n\n"
        f"Error {report['rate_rmse']:.3f} (root mean square), {report['rate_bias']:+.3f} in the mean.")
