"""Messages on stderr, tables on stdout: as carma's own (src/cli/show)."""

import os
import sys

CLEAR_LINE = "\r\033[K"
BOLD, BLUE = "\033[1m", "\033[36m"  # styles
STYLE_END = "\033[0m"
_shown = {"progress": False}


class Failure(Exception):
    """One line for the user, the exit status (0: that of the signal that stopped us), and whether files stay."""

    def __init__(self, text, status=1, keep=False):
        super().__init__(text)
        self.status, self.keep = status, keep


def usage(command, text):
    return Failure(f"{command}: {text} (see: carma help {command})", 2)


def safe(text):
    """Its control characters, and those that cannot be printed, as \\xNN."""
    return "".join(c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", "replace"))
                   for c in str(text))


def clear():
    if _shown["progress"]:
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
    _shown["progress"] = False


def tell(text):
    sys.stdout.flush()
    clear()
    print(f"carma: {safe(text)}", file=sys.stderr)


def progress(text):
    """On a terminal, in place of the last one."""
    if sys.stderr.isatty():
        print(CLEAR_LINE + safe(text)[: width(sys.stderr) - 1], end="", file=sys.stderr, flush=True)
        _shown["progress"] = True


def width(stream):
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and 20 <= int(columns) <= 10000:
        return int(columns)
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 100000


def of_bytes(count):
    unit = 0
    while unit < 4 and count >= 1023.95:
        count, unit = count / 1024, unit + 1
    return f"{count:.{1 if unit > 2 else 0}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


def of_seconds(seconds):
    minutes, hours, days = int(seconds) // 60 % 60, int(seconds) // 3600 % 24, int(seconds) // 86400
    text = f"{minutes:02}:{int(seconds) % 60:02}"
    if days:
        return f"{days}-{hours:02}:{text}"
    return f"{hours}:{text}" if hours else f"{minutes}:{text[3:]}"


def table(columns, rows, limit=None, colour=False):
    """Prints it, `limit` columns wide: as wide as the terminal. A column is (title, right, least, optional): aligned to the
    right; may be cut down to `least` (0: not) columns; may go, the greatest first (0: may not); then its style, where it has
    one, for a table in colour. A cell that is None is "-"."""
    lines = [[title for title, *_ in columns]]
    lines += [["-" if cell is None else safe(cell) for cell in row] for row in rows]
    shown = list(range(len(columns)))
    while True:
        widths = {c: max(len(line[c]) for line in lines) for c in shown}
        over = sum(widths.values()) + 2 * (len(shown) - 1) - (limit or width(sys.stdout))
        for c in shown:
            if columns[c][2] and over > 0:
                less = min(over, max(0, widths[c] - columns[c][2]))
                widths[c], over = widths[c] - less, over - less
        optional = [c for c in shown if columns[c][3]]
        if over <= 0 or not optional:
            break
        shown.remove(max(optional, key=lambda c: (columns[c][3], c)))
    for at, line in enumerate(lines):
        cells = []
        for c in shown:
            cell = line[c] if len(line[c]) <= widths[c] else line[c][: widths[c] - 1] + "~"
            space, style = " " * (widths[c] - len(cell)), "".join(columns[c][4:]) if at else BOLD
            if colour and style and cell:
                cell = style + cell + STYLE_END
            cells.append(space + cell if columns[c][1] else cell + space)
        print("  ".join(cells).rstrip())
