"""Usage: figures.py SOURCE: figures that documents state are those of the code. A row has a document, its words with #
for the figure, a file of `src`, and what the figure is called there."""

import pathlib
import re
import sys

ADMIN, LAUNCHING, LIMITS, USER = (f"docs/{name}.md" for name in ("admin", "launching", "limits", "user"))
ROWS = (
    (USER, "tries again for up to # s, and", "cli/session.h", "SESSION_TIMEOUT_S"),
    (USER, "hangs for # minutes (`start_timeout`)", "config/config.c", ".start_timeout_ns"),
    (USER, "SIGKILL after # seconds", "config/config.c", ".grace_ns"),
    (USER, "as often as it may (# times beyond the first)", "core/config.c", ".max_retries"),
    (ADMIN, "answer for this long (# min)", "config/config.c", ".start_timeout_ns"),
    (ADMIN, "Those of # unlike workloads", "core/record.h", "CLOSING_STARTS"),
    (ADMIN, "dead starts of # users within", "core/record.h", "CLOSING_USERS"),
    (ADMIN, "names the # largest of a GPU", "cli/gpus/cmd_gpus.c", "PROCESSES_SHOWN"),
    (ADMIN, "after # readings no job", "daemon/node/node_untold.c", "STEADY"),
    (LAUNCHING, "the shepherd waits # s for that", "launch/shepherd/deadlines.c", "MPS_TIMEOUT_NS"),
    (LAUNCHING, "carmad looks every # s for", "launch/shepherd/heal.c", "LOOK_NS"),
    (LAUNCHING, "`oom_score_adj` # above the daemon's", "launch/shepherd/inherit.h", "INHERIT_OOM_SCORE_ADJ"),
    (LAUNCHING, "at most # are read", "launch/shepherd/writers.h", "WRITERS_FILES"),
    (LAUNCHING, "down to once in # s; at", "launch/shepherd/writers.c", "PERIOD_NS"),
    (LAUNCHING, "log says, within # s before", "daemon/run/mps_words.c", "SHORTLY_WALL_NS"),
    (LAUNCHING, "follows within # lines and", "launch/classify.c", "NEAR_LINES"),
    (LAUNCHING, "more than # bytes apart", "launch/classify.c", "MESSAGE_GAP"),
    (LAUNCHING, "# different steps after", "launch/steps.h", "STEPS_ENOUGH"),
    (LAUNCHING, "| # s after it was told", "daemon/run/runs_takeover.c", "ANSWER_WALL_NS"),
    (LAUNCHING, "(# s past the time limit)", "daemon/run/runs_takeover.c", "LATE_WALL_NS"),
    (LAUNCHING, "is LOST # s after carmad's start", "daemon/run/runs_status.c", "MISSING_WALL_NS"),
    (LAUNCHING, "| # s after SIGKILL the job", "launch/shepherd/ending.c", "ABANDON_NS"),
    (LAUNCHING, "umask 022, # open files", "launch/shepherd/inherit.c", "OPEN_FILES"),
    (LAUNCHING, "at growing intervals, # of them", "launch/sweep.c", "SWEEPERS_MAX"),
    (LIMITS, "streams of events | # of one user", "http/http.h", "HTTP_MAX_STREAMS_PER_UID"),
    (LIMITS, "of one user, # in all; 8 MiB", "http/http.h", "HTTP_MAX_STREAMS"),
    (LIMITS, "jobs of one request | # |", "api/spec_limits.h", "SPEC_MAX_JOBS"),
    (LIMITS, "`max_queued`, # |", "config/config.c", ".max_queued"),
    (LIMITS, "hands over | # | `carmad`", "http/http.h", "HTTP_MAX_INHERITED"),
    (LIMITS, "before others; of more, # wait", "http/http.h", "HTTP_MAX_PARKED_PER_UID"),
    (LIMITS, "(`GET /v1/jobs`) | # in an answer", "daemon/request/listing.h", "LISTING_MOST"),
    (LIMITS, "# rows or groups in an answer", "daemon/request/history_query.h", "HISTORY_MOST_ROWS"),
    (LIMITS, "in an answer, # groups told apart", "daemon/account/groups.h", "GROUPS_MOST_GROUPS"),
    (LIMITS, "# layers of a summary", "estimate/layers.h", "LAYER_LIST_MAX"),
    (LIMITS, "of the simulation; waiting questions; kept answers | #, 16;", "daemon/whatif/whatif.h", "WHATIF_POLICIES_MAX"),
    (LIMITS, "files that one depends on | # or 32 MiB", "daemon/capture/cache.h", "CACHE_MOST"),
)
WORDS = {"three": "3", "four": "4", "ten": "10"}


def main(source):
    wrong = []
    for document, said, code, name in ROWS:
        words = re.escape(said).replace(r"\ ", r"\s").replace(r"\#", r"([\w,]+)")
        stated = re.findall(words, pathlib.Path(source, document).read_text(encoding="utf-8"), re.IGNORECASE)
        code_text = pathlib.Path(source, "src", code).read_text(encoding="utf-8")
        true = re.findall(rf"(?:#define |\s(?=\.)){re.escape(name)}[ =]+(?:MINUTES)?\(?(\d+)", code_text)
        if [WORDS.get(figure.lower(), figure.replace(",", "")) for figure in stated] != true or len(true) != 1:
            wrong.append(f"{document}: '{said}' is {stated}, and {code} has {name} {true}")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main(sys.argv[1]))
