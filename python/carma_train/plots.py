"""Small SVG plots without a library: points by class, and steps."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 340, 56, 34, 130, 44
COLOURS = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#d8c317", "#d62728")  # from low to high
LINES = ("#2a78c2", "#d9822b")


def _ticks(low, high):
    span = (high - low) or 1
    step = next(s * 10**e for e in range(-3, 7) for s in (1, 2, 5) if span / (s * 10**e) <= 6)
    first = -int(-low // step)
    return [round(step * i, 6) for i in range(first, int(high // step) + 1)]


class _Plot:
    """Axes over the ranges of x and y; out: the file's elements."""

    def __init__(self, title, labels, xs, ys):
        self.x_range, self.y_range = (min(xs), max(xs)), (min(ys), max(ys))
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="{LEFT}" y="18" font-size="13">{escape(title)}</text>',
            f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(labels[0])}</text>',
            f'<text transform="translate(12 {(TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
            f'{escape(labels[1])}</text>',
        ]
        for tick in _ticks(*self.y_range):
            self.out.append(f'<line x1="{LEFT}" x2="{right}" y1="{self.y(tick)}" y2="{self.y(tick)}" stroke="#e3e6ea"/>'
                            f'<text x="{LEFT - 5}" y="{self.y(tick) + 4}" text-anchor="end">{tick:g}</text>')
        for tick in _ticks(*self.x_range):
            self.out.append(f'<text x="{self.x(tick)}" y="{bottom + 15}" text-anchor="middle">{tick:g}</text>')

    def x(self, value):
        low, high = self.x_range
        return round(LEFT + 6 + (WIDTH - RIGHT - LEFT - 12) * (value - low) / ((high - low) or 1), 1)

    def y(self, value):
        low, high = self.y_range
        return round(HEIGHT - BOTTOM - 6 - (HEIGHT - BOTTOM - TOP - 12) * (value - low) / ((high - low) or 1), 1)

    def legend(self, entries):
        x = WIDTH - RIGHT + 12
        for i, (name, colour) in enumerate(entries):
            self.out.append(f'<rect x="{x}" y="{TOP + 16 * i}" width="10" height="10" fill="{colour}"/>'
                            f'<text x="{x + 15}" y="{TOP + 16 * i + 9}">{escape(name)}</text>')

    def text(self):
        return "\n".join([*self.out, "</svg>", ""])


def points(title, labels, groups):
    """groups: [(name, [(x, y)])], from low to high."""
    every = [point for _name, found in groups for point in found]
    plot = _Plot(title, labels, [x for x, _y in every], [y for _x, y in every])
    for (_name, found), colour in zip(groups, COLOURS):
        plot.out.append(f'<g fill="{colour}" fill-opacity="0.7">')
        plot.out.extend(f'<circle cx="{plot.x(x)}" cy="{plot.y(y)}" r="2.2"/>' for x, y in found)
        plot.out.append("</g>")
    plot.legend([(name, colour) for (name, _found), colour in zip(groups, COLOURS)])
    return plot.text()


def steps(title, labels, series):
    """series: {name: [(x, y)]}, each y holding from its x to the next."""
    every = [point for found in series.values() for point in found]
    plot = _Plot(title, labels, [x for x, _y in every], [y for _x, y in every])
    for found, colour in zip(series.values(), LINES):
        path = f"M{plot.x(found[0][0])} {plot.y(found[0][1])}"
        path += "".join(f"H{plot.x(x)}V{plot.y(y)}" for x, y in found[1:])
        plot.out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    plot.legend(list(zip(series, LINES)))
    return plot.text()
