"""Usage: raw_text.py CARMA SOCKET LOG: jobs whose texts have every kind of character that must not be shown (docs/threat-model.md),
and every outlet that shows them. Called by test_raw_text.sh."""

import json
import subprocess
import sys
import unicodedata

from unix_http import Connection

CARMA, SOCKET, LOG = sys.argv[1:]
DECEIVING = [*range(0x80, 0xA0), 0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xE0041]
CONTROLS = [*range(1, 0x20), 0x7F]
NAME = "n" + "".join(map(chr, DECEIVING)) + "é漢"
WORD = "w" + "".join(map(chr, CONTROLS + DECEIVING))
NOT_UTF8 = b"\x80\xc0\xaf\xed\xa0\x80\xf5\xff"
OOM = f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {WORD.replace(chr(10), '')}".encode()
failures = []


def carma(*words):
    done = subprocess.run([CARMA, *words], capture_output=True, check=False, timeout=300)
    return done.stdout + done.stderr


def get(path, most=1 << 24):
    connection = Connection(SOCKET, 60)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read1(most) if "events" in path else response.read()
    connection.close()
    return text


def submit(*words):
    said = carma("submit", "--parsable", "-J", NAME, *words)
    number = said.partition(b"\n")[0]  # warnings follow
    if not number.isdigit():
        failures.append(f"submit {words!r}: {said!r}")
    check(f"submit {words[:1]!r}", said)
    return number.decode(errors="replace")


def must_go(character):
    kind = unicodedata.category(character)
    return character != "\n" and (kind in ("Cc", "Zl", "Zp", "Cs") or (kind == "Cf" and character != "\u00ad"))


def check(outlet, raw):
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        failures.append(f"{outlet}: {error}")
        return
    bad = sorted({f"U+{ord(character):04X}" for character in text if must_go(character)})
    if bad:
        failures.append(f"{outlet}: shows {' '.join(bad)}")


def check_same(outlet, raw, find):
    """JSON says what the user wrote all the same."""
    check(outlet, raw)
    if find(json.loads(raw)) != NAME:
        failures.append(f"{outlet}: has another name")


def main():
    good = submit("--", "sh", "-c", "exit 0", WORD)
    held = submit("--hold", "--", "true", WORD)
    failed = submit("-e", f"/nowhere/{NAME}", "--", "true")
    told = submit("-o", "out", "--", "python3", "-c",
                  f"import os; os.write(2, {OOM + NOT_UTF8!r} + b'\\n'); exit(1)")  # fmt: skip
    carma("wait", good, failed, told)
    for words in (["show"], ["explain"]):
        for job in (good, held, failed, told):
            check(f"{words[0]} {job}", carma(*words, job))
    for words in (["queue"], ["queue", "--all"], ["history"], ["history", "--csv"], ["stats"], ["stats", "--json"], ["gpus"],
                  ["gpus", "--json"], ["estimate", "--json", "--hf-config", f"/nowhere/{NAME}"]):  # fmt: skip
        check(" ".join(words[:2]), carma(*words))
    check_same("show --json", carma("show", "--json", held), lambda said: said["name"])
    check_same("queue --json", carma("queue", "--all", "--json"), lambda said: said["jobs"][0]["name"])
    check_same("history --json", carma("history", "--json"), lambda said: said["jobs"][0]["name"])
    check_same("GET /v1/jobs", get("/v1/jobs"), lambda said: said["jobs"][0]["name"])
    check_same("GET /v1/jobs/ID", get(f"/v1/jobs/{told}"), lambda said: said["name"])
    check_same("GET /v1/history", get("/v1/history"), lambda said: said["jobs"][0]["name"])
    for path in ("/v1/status", "/v1/gpus", f"/v1/jobs/{held}/explain", "/metrics", "/v1/events", f"/v1/jobs/{NAME}".replace(NAME, "%C2%9B")):
        check(f"GET {path}", get(path))
    with open(LOG, "rb") as file:
        check("the log", file.read())
    message = json.loads(get(f"/v1/jobs/{told}")).get("message") or ""
    if "CUDA out of memory" not in message:
        failures.append(f"the output's last line is not shown: {message!r}")
    print("\n".join(failures), file=sys.stderr)
    return bool(failures)


sys.exit(main())
