"""Grouped bars as a small SVG, without a library: some measured and some estimated figures side by side."""

from xml.sax.saxutils import escape

COLOURS = {"measured": "#1b1f24", "replay": "#2a78c2", "gpumemnet": "#8bb84a", "horus": "#d9822b", "faketensor": "#b0b7bf"}
BAR, GAP, HEIGHT, LEFT, TOP, BOTTOM = 7, 12, 260, 100, 56, 150


def _ticks(most):
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if most / s <= 6 or s == 100)
    return [step * i for i in range(int(most / step) + 1)]


def grouped(title, groups, series, most=None):
    """groups: {name: {series: value}}. Bars higher than `most` (default: twice the highest measured one) are cut, with
    their value above."""
    most = most or 1.25 * max(values["measured"] for values in groups.values())
    width = max(480, LEFT + len(groups) * (len(series) * BAR + GAP) + GAP)

    def y(value):
        return TOP + HEIGHT * (1 - min(value, most) / most)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + BOTTOM}" width="{width}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    x = LEFT
    for name in series:
        out.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[name]}"/>'
                   f'<text x="{x + 14}" y="37">{escape(name)}</text>')
        x += 26 + 7 * len(name)
    for tick in _ticks(most):
        out.append(f'<line x1="{LEFT}" x2="{width}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#e3e6ea"/>'
                   f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    x = LEFT + GAP
    for group, values in groups.items():
        for i, name in enumerate(series):
            if name not in values:
                continue
            left, top = x + i * BAR, y(values[name])
            out.append(f'<rect x="{left}" y="{top:.1f}" width="{BAR - 1}" height="{TOP + HEIGHT - top:.1f}" '
                       f'fill="{COLOURS[name]}"><title>{escape(f"{group}, {name}: {values[name]:.2f}")}</title></rect>')
            if values[name] > most:
                out.append(f'<text x="{left + 5}" y="{TOP - 2}" font-size="8" transform="rotate(-60 {left + 5} {TOP - 2})">'
                           f'{values[name]:.0f}</text>')
        middle = x + len(series) * BAR / 2
        out.append(f'<text x="{middle}" y="{TOP + HEIGHT + 12}" text-anchor="end" '
                   f'transform="rotate(-55 {middle} {TOP + HEIGHT + 12})">{escape(group)}</text>')
        x += len(series) * BAR + GAP
    return "\n".join([*out, "</svg>", ""])
