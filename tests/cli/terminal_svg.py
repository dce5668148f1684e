"""Usage: terminal_svg.py SVG COLUMNSxROWS KEYS COMMAND...: draws what the command shows on a terminal, some seconds after the
keys ("" for none) were pressed. docs/images/top.svg was made by it."""

import html
import sys
import time

from terminal import Terminal

WIDTH, HEIGHT, BASELINE = 8.43, 18, 13
COLOURS = {"default": "#d8d8d8", "green": "#7ec16e", "brown": "#d7b65d", "red": "#e06c60", "cyan": "#5fb3c9",
           "brightblack": "#7d7d7d", "background": "#16181c"}


def runs(row, columns):
    """(first column, text, style) of neighbours that look the same."""
    begun = 0
    for column in range(1, columns + 1):
        if column == columns or row[column]._replace(data="") != row[begun]._replace(data=""):
            yield begun, "".join(row[i].data for i in range(begun, column)), row[begun]
            begun = column


def draw(screen):
    width, height = screen.columns * WIDTH, screen.lines * HEIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 20:.0f}" height="{height + 20}" role="img" '
             f'aria-label="carma top in a terminal of {screen.columns} columns">',
             f'<rect width="100%" height="100%" rx="6" fill="{COLOURS["background"]}"/>',
             '<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14" xml:space="preserve">']
    for y in range(screen.lines):
        for x, text, style in runs(screen.buffer[y], screen.columns):
            ink, paper = COLOURS[style.fg], COLOURS["background"]
            left, top, length = 10 + x * WIDTH, 10 + y * HEIGHT, len(text) * WIDTH
            if style.reverse:
                ink, paper = paper, ink
                parts.append(f'<rect x="{left:.1f}" y="{top}" width="{length:.1f}" height="{HEIGHT}" fill="{paper}"/>')
            if style.underscore:
                parts.append(f'<rect x="{left:.1f}" y="{top + HEIGHT - 2}" width="{length:.1f}" height="1" fill="{ink}"/>')
            if text.strip():
                bold = ' font-weight="bold"' if style.bold else ""
                parts.append(f'<text x="{left:.1f}" y="{top + BASELINE}" fill="{ink}"{bold} textLength="{length:.1f}">'
                             f"{html.escape(text)}</text>")
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main():
    target, size, keys, command = sys.argv[1], sys.argv[2].split("x"), sys.argv[3], sys.argv[4:]
    terminal = Terminal(command, int(size[0]), int(size[1]), LC_ALL="C.UTF-8")
    ends = time.monotonic() + 6
    while time.monotonic() < ends:
        terminal.read(0.5)
        if keys and ends - time.monotonic() < 3:
            terminal.press(keys)
            keys = ""
    with open(target, "w", encoding="utf-8") as file:
        file.write(draw(terminal.screen))
    print(terminal.text())
    terminal.press("q")
    terminal.ended()


main()
