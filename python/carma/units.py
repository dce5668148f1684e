"""Sizes, times and signals as `carma submit` reads them (src/base/units.h, src/api/job_signal.h), and as it prints them."""

from __future__ import annotations

import datetime
import re
import signal as signals
from typing import Tuple, Union

from carma.errors import Invalid

_DECIMAL = r"((?:[0-9]+\.?[0-9]*|\.[0-9]+))"
_FACTORS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SECONDS = {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
MOST_MEMORY = 1 << 50
MOST_TIME_NS = 3650 * 86400 * 10**9

Size = str
Time = Union[int, str, datetime.timedelta]


def size_bytes(what: str, value: Size) -> int:
    """"12G", "1.5GiB", "512M"; a bare number is refused, since some mean MiB by it and others GiB."""
    bare = str(value).strip()
    if not isinstance(value, bool) and re.fullmatch(_DECIMAL, bare, re.ASCII) and float(bare):
        raise Invalid(f"{what}: {bare[:40]} has no unit: say '{bare[:20]}GiB' or '{bare[:20]}MiB'")
    if isinstance(value, str):
        found = re.fullmatch(_DECIMAL + r" *(?:([kmgt]?)(?:ib|b)?)", value, re.IGNORECASE | re.ASCII)
        if not found or found[2] == "" and value.lower().endswith("ib"):
            raise Invalid(f"{what}: {value[:40]!r} is not a size: write it like 12G, 512M or 1.5GiB")
        number = int(float(found[1]) * (1 << _FACTORS[found[2].lower()]))
    else:
        raise Invalid(f"{what}: {value!r} is not a size: write it like '12G'")
    if not 1 <= number <= MOST_MEMORY:
        raise Invalid(f"{what}: {str(value)[:40]} is out of range: more than 0, at most 1024T")
    return number


def factor_permille(what: str, value: Union[float, str]) -> int:
    """A factor of at least 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 1 <= number <= 1000:
        raise Invalid(f"{what}: {str(value)[:40]} is not a factor of at least 1, such as 1.5")
    return int(number * 1000 + 0.5)


def _clock_seconds(text: str) -> int:
    days, dash, clock = text.rpartition("-")
    fields = clock.split(":")
    if (dash and not re.fullmatch("[0-9]{1,5}", days)) or len(fields) > 3:
        return -1
    if not all(re.fullmatch("[0-9]{1,9}", field) for field in fields):
        return -1
    numbers = [int(field) for field in fields]
    units = (3600, 60, 1) if dash or len(numbers) == 3 else (60, 1)
    return int(days or 0) * 86400 + sum(number * unit for number, unit in zip(numbers, units))


def _duration_ns(text: str) -> int:
    """-1: not a duration."""
    found = re.fullmatch(_DECIMAL + "(ms|s|m|min|h|d)", text, re.ASCII)
    if found:
        return int(float(found[1]) * _SECONDS[found[2]] * 1e9)
    seconds = _clock_seconds(text)
    return seconds * 10**9 if seconds >= 0 else -1


def time_ns(what: str, value: Time) -> int:
    """"90" (minutes) or 90, "12:00:00", "2-12" (days-hours), "90s", or a timedelta; more than 0, at most ten years."""
    if isinstance(value, datetime.timedelta):
        number = value // datetime.timedelta(microseconds=1) * 1000
    else:
        number = _duration_ns(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else -1
        if number < 0:
            raise Invalid(
                f"{what}: {str(value)[:40]!r} is not a time: write it like 30 (minutes), 1:30:00, 2-12 or 90s"
            )
    if not 0 < number <= MOST_TIME_NS:
        raise Invalid(f"{what}: {str(value)[:40]!r} is out of range: more than 0, at most ten years")
    return number


def signal_and_before(value: Union[int, str]) -> Tuple[int, int]:
    """"USR1@120", "SIGTERM@2m", 10: the number, and how long before the time limit in nanoseconds (60 s)."""
    name, at, before = str(value).partition("@")
    if name.isascii() and name.isdigit():
        number = int(name)
    else:
        upper = name.upper()
        try:
            number = int(signals.Signals[upper if upper.startswith("SIG") else "SIG" + upper])
        except KeyError:
            number = 0
    if not 1 <= number <= 64:
        raise Invalid(f"signal: there is no signal {name[:40]!r}: write a name such as USR1, or a number")
    if number in (signals.SIGKILL, signals.SIGSTOP):
        raise Invalid(f"signal: {name[:40]!r} cannot be caught: choose one that can, such as USR1")
    if not at:
        return number, 60 * 10**9
    return number, time_ns("signal", before + "s" if before.isascii() and before.isdigit() else before)


def bytes_text(value: object) -> str:
    """12.4 GiB; - where it is not known."""
    if not isinstance(value, (int, float)):
        return "-"
    number, unit = float(value), 0
    while unit < 4 and abs(number) >= 1023.95:
        number /= 1024
        unit += 1
    return f"{number:.{1 if unit >= 3 else 0}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def duration_text(ns: float) -> str:
    """1-02:03:04, 2:03:04, 3:04."""
    minutes, seconds = divmod(max(0, int(ns)) // 10**9, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
