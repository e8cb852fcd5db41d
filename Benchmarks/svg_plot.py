"""Line plots as SVG, without a library. Each line has its label at its end."""
import math
from html import escape

WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 44, 52
FONT = "font-family='sans-serif'"


class Axis:
    """Maps values to pixels, by their logarithm if `is_log`."""

    def __init__(self, values, low, high, is_log, ticks=None):
        self.is_log = is_log
        self.low, self.high = low, high
        least, most = min(values), max(values)
        if is_log:
            self.ticks = ticks or log_ticks(least, most)
            least, most = min(least, self.ticks[0]), max(most, self.ticks[-1])
        else:
            self.ticks = ticks or even_ticks(most)
            least, most = 0, max(most, self.ticks[-1])
        self.least, self.most = self._scaled(least), self._scaled(most)

    def _scaled(self, value):
        return math.log10(value) if self.is_log else value

    def at(self, value):
        share = (self._scaled(value) - self.least) / ((self.most - self.least) or 1)
        return self.low + share * (self.high - self.low)


def log_ticks(least, most):
    """1, 2 and 5 of each decade, from the last below the least value to the first above the most."""
    steps = [m * 10.0 ** e for e in range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
             for m in (1, 2, 5)]
    first = max(index for index, step in enumerate(steps) if step <= least * 1.001)
    last = next((index for index, step in enumerate(steps) if step >= most * 0.999), len(steps) - 1)
    return steps[first:last + 1]


def even_ticks(most):
    step = next(s for e in range(-3, 9) for s in (10.0 ** e, 2 * 10.0 ** e, 5 * 10.0 ** e) if most / s <= 6)
    return [step * index for index in range(math.ceil(most / step) + 1)]


def text(x, y, words, size=12, anchor="start", color="#333", extra=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' text-anchor='{anchor}' fill='{color}' {extra}>" \
        f"{escape(words)}</text>"


def apart(places, distance=15):
    """Moves labels away from each other, and keeps their order."""
    moved, last = {}, -math.inf
    for index in sorted(range(len(places)), key=places.__getitem__):
        last = max(places[index], last + distance)
        moved[index] = last
    return [moved[index] for index in range(len(places))]


def panel(lines, x_label, y_label, title, x_log, y_log, x_ticks=None):
    """`lines` are (label, color, dash, points); a point is (x, y)."""
    xs = [x for line in lines for x, _ in line[3]]
    ys = [y for line in lines for _, y in line[3]]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_axis, y_axis = Axis(xs, LEFT, right, x_log, x_ticks), Axis(ys, bottom, TOP, y_log)
    parts = [text(LEFT, 22, title, 14, extra="font-weight='bold'")]
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        parts.append(f"<line x1='{LEFT}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>")
        parts.append(text(LEFT - 6, y + 4, f"{tick:g}", anchor="end"))
    for tick in x_axis.ticks:
        x = x_axis.at(tick)
        parts.append(f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{bottom}' y2='{bottom + 5}' stroke='#333'/>")
        parts.append(text(x, bottom + 18, f"{tick:g}", anchor="middle"))
    parts.append(f"<line x1='{LEFT}' x2='{right}' y1='{bottom}' y2='{bottom}' stroke='#333'/>")
    parts.append(text((LEFT + right) / 2, HEIGHT - 12, x_label, anchor="middle"))
    parts.append(text(16, (TOP + bottom) / 2, y_label, anchor="middle",
                      extra=f"transform='rotate(-90 16 {(TOP + bottom) / 2:.1f})'"))
    ends = [(x_axis.at(line[3][-1][0]), y_axis.at(line[3][-1][1])) for line in lines]
    for line, (x, _), y in zip(lines, ends, apart([y for _, y in ends])):
        label, color, dash, points = line
        pixels = [(x_axis.at(a), y_axis.at(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in pixels)
        dashes = "stroke-dasharray='5 4'" if dash else ""
        parts.append(f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='2' {dashes}/>")
        parts += [f"<circle cx='{a:.1f}' cy='{b:.1f}' r='3' fill='{color}'/>" for a, b in pixels]
        # Readable on a line of another.
        halo = "stroke='white' stroke-width='4' paint-order='stroke'"
        parts.append(text(x + 8, y + 4, label, color=color, extra=halo))
    return "\n".join(parts)


def svg(panels):
    """The panels side by side."""
    width = WIDTH * len(panels)
    body = "\n".join(
        f"<g transform='translate({WIDTH * index} 0)'>\n{part}\n</g>" for index, part in enumerate(panels))
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{HEIGHT}' "
            f"viewBox='0 0 {width} {HEIGHT}'>\n<rect width='{width}' height='{HEIGHT}' fill='white'/>\n{body}\n</svg>\n")
