#!/usr/bin/env python3
"""Usage: fetch.py DIRECTORY

Gets NVIDIA's MPS control programs of four drivers from Debian's non-free packages, where they are not in DIRECTORY yet.
Prints a line for each: the driver's version and the program's path. A missing program is reported as an error; the exit
status is 77 then. The programs are NVIDIA's and stay in DIRECTORY: they do not belong to carma."""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import urllib.request

PACKAGES = [  # driver, package's version, SHA-256, SHA-1 (by which the snapshot archive keeps packages that the pool has no more)
    ("470.256.02", "470.256.02-2", "ee5b7389ad930a887ce725f9fe5e980fcf59e25b60e63371b12064a279610224",
     "bc51964ef3a5d993245ebda806ed044cf6c4624a"),
    ("535.261.03", "535.261.03-1", "1341544805aa9c839af45bac5a4bd697cb3eb43105eec439bfba60a8e13ba35a",
     "ed57f030d2e406510ef6778dc44a82669dcc92da"),
    ("550.163.01", "550.163.01-2", "7da3f29e5ad3390d9fddab7042fa6e9a76df85a69d69efc40401df2f83874764",
     "cfecfaecfcfa03bb841c4931901bbd72eba91b8f"),
    ("555.58.02", "555.58.02-4", "7f68f5de74d4ab4fa3182e23bcb7eaa8fd86e54cb8f406f4bebdee963cd4b725",
     "66d47930dd69714d1b9f4166df40573307b708fa"),
]
POOL = "http://deb.debian.org/debian/pool/non-free/n/nvidia-graphics-drivers/nvidia-cuda-mps_{}_amd64.deb"
SNAPSHOT = "https://snapshot.debian.org/file/{}"
PATIENCE_SECONDS = 60


def download(version, sha256, sha1):
    """The package's bytes; an OSError where no place has them."""
    for address in (POOL.format(version), SNAPSHOT.format(sha1)):
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as answer:
                data = answer.read()
        except OSError as error:
            print(f"{address}: {error}", file=sys.stderr)
            continue
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        print(f"{address}: not the file that is meant", file=sys.stderr)
    raise OSError("it cannot be had")


def main(directory):
    missing = 0
    for driver, version, sha256, sha1 in PACKAGES:
        place = pathlib.Path(directory, driver)
        program = place / "usr" / "bin" / "nvidia-cuda-mps-control"
        try:
            if not program.exists():
                data = download(version, sha256, sha1)
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                (place / "package.deb").write_bytes(data)
                subprocess.run(["dpkg-deb", "-x", place / "package.deb", place], check=True)
            print(driver, program)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"nvidia-cuda-mps-control of {driver}: {error}", file=sys.stderr)
            missing += 1
    return 77 if missing else 0


sys.exit(main(sys.argv[1]))
