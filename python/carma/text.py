"""Text of others, fit to be shown: in a terminal, and in a notebook's HTML."""

from __future__ import annotations

import html
import unicodedata
from typing import Iterable, Sequence


def _must_go(character: str) -> bool:
    """Control characters, characters that reorder or hide text, line separators, halves of characters."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(value: object) -> str:
    r"""The bytes of unprintable text as \xNN, as the program `carma` prints them."""
    return "".join(
        "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        if _must_go(character)
        else character
        for character in str(value)
    )


def escape(value: object) -> str:
    return html.escape(printable(value))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """HTML of which nothing but the text is others'."""
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    parts.append("<thead><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr></thead><tbody>")
    for row in rows:
        parts.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    parts.append("</tbody></table>")
    return "".join(parts)


def columns(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same for a terminal."""
    lines = [[printable(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )
