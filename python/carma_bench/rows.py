"""CSV files, packed by gzip or not: lines of fields under a header of known columns. `#` comments and blank lines are left
out. A hostile file is refused in bounded time and memory, by one line "FILE:LINE: ..."."""

import gzip
import math
import re

from show import Failure

MAX_BYTES, MAX_TEXT, MAX_LINE, MAX_ROWS, MAX_COLUMNS = 64 << 20, 256 << 20, 64 << 10, 1000000, 64


class Row(dict):
    """The values by column, "" where missing; and where it stands."""

    def __init__(self, values, path, line, number, text):
        super().__init__(values)
        self.path, self.line, self.number, self.text = path, line, number, text

    def error(self, text):
        return Failure(f"{self.path}:{self.line}: {text}")

    @property
    def key(self):
        """FNV-1a with 64 bits of its bytes: the models list by it what they were trained on."""
        key = 14695981039346656037
        for byte in self.text:
            key = (key ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
        return key

    def number_of(self, column, low, high, factor=1, missing=-1):
        text = self[column]
        if not text:
            return missing
        try:
            number = float(text) if re.fullmatch(r"[0-9.+\-eE]+", text) else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise self.error(f"{column} '{text[:40]}' is not a number")
        if not low <= number <= high:
            raise self.error(f"{column} {text[:40]} is out of range: {low:.12g} to {high:.12g}")
        return math.floor(number * factor + 0.5)

    def whole(self, column, low, high, missing=0):
        text = self[column]
        if not text:
            return missing
        if not re.fullmatch(r"-?[0-9]+", text):
            raise self.error(f"{column}: '{text[:40]}' is not a whole number")
        if len(text) > 19 or not low <= int(text) <= high:
            raise self.error(f"{column}: {text[:40]} is out of range: {low} to {high}")
        return int(text)


def content(path):
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise Failure(f"{path}: more than {MAX_BYTES} bytes: split the file")
        if text[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                text = file.read(MAX_TEXT + 1)
    except (OSError, EOFError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > MAX_TEXT:
        raise Failure(f"{path}: more than {MAX_TEXT} bytes, unpacked: split the file")
    return text[3:] if text[:3] == b"\xef\xbb\xbf" else text


def lines_of(path):
    """Those with data, by their numbers. Some tools put a line's end inside its quotes."""
    for number, read in enumerate(content(path).split(b"\n"), 1):
        if len(read) > MAX_LINE:
            raise Failure(f"{path}:{number}: the line is longer than {MAX_LINE} bytes: split the file into lines")
        line = re.sub(rb'\r"$', b'"', read.removesuffix(b"\r"))
        bad = re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", line)
        if bad:
            raise Failure(f"{path}:{number}: byte 0x{line[bad.start()]:02x} at column {bad.start() + 1}: this is not a "
                          "text file")
        if line.strip(b" \t") and not line.startswith(b"#"):
            yield number, line


def fields_of(path, number, line):
    text, fields = line.decode("utf-8", "surrogateescape"), []
    while True:
        if len(fields) == MAX_COLUMNS:
            raise Failure(f"{path}:{number}: more than {MAX_COLUMNS} columns: remove those that no format page names")
        if text.startswith('"'):
            quoted = re.match(r'"((?:[^"]|"")*)"', text)
            if not quoted:
                raise Failure(f"{path}:{number}: field {len(fields) + 1} opens a quote that the line does not close")
            field, rest = quoted[1].replace('""', '"'), text[quoted.end() :]
            if rest and rest[0] != ",":
                raise Failure(f"{path}:{number}: field {len(fields) + 1} goes on after its closing quote")
        else:
            field = text.partition(",")[0]
            rest = text[len(field) :]
        fields.append(field)
        if not rest:
            return fields
        text = rest[1:]


def read(path, required, optional=()):
    """Its rows. The columns may come in any order; a value of a required one may not be missing."""
    names, count = None, 0
    for number, line in lines_of(path):
        fields = fields_of(path, number, line)
        if names is None:
            names = fields
            for at, name in enumerate(names):
                if name not in required and name not in optional:
                    raise Failure(f"{path}:{number}: unknown column '{name[:40]}': remove it or correct its name")
                if name in names[:at]:
                    raise Failure(f"{path}:{number}: column '{name}' occurs twice: remove one")
            for name in required:
                if name not in names:
                    raise Failure(f"{path}:{number}: no column '{name}': add it to the header and every row")
            continue
        count += 1
        row = Row(dict.fromkeys((*required, *optional), ""), path, number, count, line)
        if count > MAX_ROWS:
            raise row.error(f"more than {MAX_ROWS} rows: split the file")
        if len(fields) != len(names):
            raise row.error(f"{len(fields)} fields where the header names {len(names)}: complete the row")
        row.update(zip(names, fields))
        for name in required:
            if not row[name]:
                raise row.error(f"no value for '{name}': fill it in")
        yield row
    if names is None:
        raise Failure(f"{path}: no header line: the first line names the columns, e.g. {required[0]}")
