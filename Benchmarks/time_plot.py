"""Panels above each other with one time axis, and a plot of points, as SVG without a library."""
from svg_plot import Axis, even_ticks, text

WIDTH, LEFT, RIGHT, TOP = 760, 66, 14, 58
GAP, BOTTOM = 16, 40
GRID, FRAME = "#e6e6e6", "#444"


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def frame(left, right, top, bottom):
    return f"<path d='M{left} {top}V{bottom}H{right}' fill='none' stroke='{FRAME}'/>"


def y_ticks(axis, left, right):
    for tick in axis.ticks:
        y = axis.at(tick)
        yield f"<path d='M{left} {y:.1f}H{right}' stroke='{GRID}'/>"
        yield text(left - 7, y + 4, f"{tick:g}", 11, "end")


def y_label(words, top, bottom):
    middle = (top + bottom) / 2
    return text(16, middle, words, 12, "middle", extra=f"transform='rotate(-90 16 {middle:.1f})'")


def legend(entries, x, y):
    """`entries` are (label, style, is_area)."""
    for label, style, is_area in entries:
        if is_area:
            yield f"<rect x='{x}' y='{y - 9}' width='18' height='10' {style}/>"
        else:
            yield f"<path d='M{x} {y - 4}h18' fill='none' {style}/>"
        yield text(x + 23, y, label, 12)
        x += 23 + 6.6 * len(label) + 16


def curve(points):
    """The path through pixels. Lines that go on straight need no point."""
    kept = [point for index, point in enumerate(points)
            if not 0 < index < len(points) - 1
            or not (points[index - 1][1] == point[1] == points[index + 1][1])]
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in kept)


def ticks(most, height):
    """With room for their numbers."""
    even = even_ticks(most)
    every = -(-(len(even) - 1) // max(1, int(height / 26)))
    return [even[every] * index for index in range(-(-(len(even) - 1) // every) + 1)]


class Panel:
    """`lines` are (label, style, values); `area` is one line that is filled down to 0, behind the others."""

    def __init__(self, label, height, lines, area=None, most=None):
        self.label, self.height, self.lines, self.area, self.most = label, height, lines, area, most

    def drawn(self, top, step, x_axis):
        bottom = top + self.height
        right = WIDTH - RIGHT
        every = [line for line in [self.area, *self.lines] if line]
        highest = max(max(values) for _, _, values in every)
        most = self.most or max(highest, 1)
        axis = Axis([0, most], bottom, top, False, ticks(most, self.height))
        yield from y_ticks(axis, LEFT, right)
        if self.area:
            # Steps: a link's rate holds until it changes.
            pixels = [(x_axis.at(0), bottom)]
            for index, value in enumerate(self.area[2]):
                y = axis.at(min(value, axis.ticks[-1]))
                pixels += [(x_axis.at(index * step), y), (x_axis.at((index + 1) * step), y)]
            pixels.append((x_axis.at(len(self.area[2]) * step), bottom))
            yield f"<path d='{curve(pixels)}' {self.area[1]}/>"
        for _, style, values in self.lines:
            pixels = [(x_axis.at((index + 0.5) * step), axis.at(min(value, axis.ticks[-1])))
                      for index, value in enumerate(values)]
            yield f"<path d='{curve(pixels)}' fill='none' stroke-linejoin='round' {style}/>"
        yield frame(LEFT, right, top, bottom)
        yield y_label(self.label, top, bottom)


def against_time(title, step, panels):
    """The first panel has the legend."""
    length = step * len((panels[0].lines or [panels[0].area])[0][2])
    x_axis = Axis([0, length], LEFT, WIDTH - RIGHT, False)
    x_axis.most = length
    parts = [text(LEFT, 22, title, 14, extra="font-weight='bold'")]
    first = panels[0]
    entries = [(line[0], line[1], index == 0 and first.area is not None)
               for index, line in enumerate([line for line in [first.area, *first.lines] if line]) if line[0]]
    parts += legend(entries, LEFT, 44)
    top = TOP
    for panel in panels:
        parts += panel.drawn(top, step, x_axis)
        top += panel.height + GAP
    bottom = top - GAP
    for tick in x_axis.ticks:
        if tick <= length:
            x = x_axis.at(tick)
            parts.append(f"<path d='M{x:.1f} {bottom}v5' stroke='{FRAME}'/>")
            parts.append(text(x, bottom + 18, f"{tick:g}", 11, "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 35, "time, s", 12, "middle"))
    return document(WIDTH, bottom + BOTTOM, parts)


def best(points):
    """Those with which no other point compares well in both: less of x and more of y."""
    kept = []
    for x, y in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or y > kept[-1][1]:
            kept.append((x, y))
    return kept


def trade_offs(x_label, y_label_text, panels, y_line):
    """Panels of points in two columns: less of x and more of y is better.

    A panel is a title and groups, a group (label, color, points) with a large point for its median. A line joins the best
    points of all groups. `y_line` is a label and a value, drawn across."""
    width, height, columns = 380, 300, 2
    parts = []
    for index, (label, color, _) in enumerate(panels[0][1]):
        x = LEFT + 130 * index
        parts += [f"<circle cx='{x}' cy='16' r='5' fill='{color}'/>", text(x + 10, 20, label, 12)]
    for index, (title, groups) in enumerate(panels):
        left, top = index % columns * width, 28 + index // columns * height
        parts += panel_of_points(title, x_label, y_label_text, groups, y_line, left + LEFT, left + width - RIGHT, top + 30,
                                 top + height - 48, left)
    return document(columns * width, 28 + -(-len(panels) // columns) * height, parts)


def panel_of_points(title, x_label, y_label_text, groups, y_line, left, right, top, bottom, shift):
    every = [point for _, _, points in groups for point in points]
    x_axis = Axis([0, max(x for x, _ in every)], left, right, False)
    y_axis = Axis([0, 1], bottom, top, False, ticks(1, bottom - top))
    yield text(left, top - 10, title, 13, extra="font-weight='bold'")
    yield from y_ticks(y_axis, left, right)
    for tick in x_axis.ticks:
        yield f"<path d='M{x_axis.at(tick):.1f} {bottom}v5' stroke='{FRAME}'/>"
        yield text(x_axis.at(tick), bottom + 18, f"{tick:g}", 11, "middle")
    y = y_axis.at(y_line[1])
    yield f"<path d='M{left} {y:.1f}H{right}' stroke='#888' stroke-dasharray='5 4'/>"
    yield text(right, y - 5, y_line[0], 11, "end", "#666")
    yield frame(left, right, top, bottom)
    middle = (top + bottom) / 2
    yield text(shift + 16, middle, y_label_text, 12, "middle", extra=f"transform='rotate(-90 {shift + 16} {middle:.1f})'")
    yield text((left + right) / 2, bottom + 36, x_label, 12, "middle")
    line = [(x_axis.at(x), y_axis.at(y)) for x, y in best(every)]
    yield f"<path d='{curve(line)}' fill='none' stroke='{FRAME}' stroke-width='1.2'/>"
    for _, color, points in groups:
        for x, y in points:
            yield (f"<circle cx='{x_axis.at(x):.1f}' cy='{y_axis.at(y):.1f}' r='3' fill='{color}' fill-opacity='0.5'/>")
        x, y = (sorted(column)[len(column) // 2] for column in zip(*points))
        yield (f"<circle cx='{x_axis.at(x):.1f}' cy='{y_axis.at(y):.1f}' r='6' fill='{color}' stroke='white' "
               "stroke-width='1.5'/>")


def document(width, height, parts):
    body = "\n".join(parts)
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}'>\n<rect width='{width}' height='{height}' fill='white'/>\n{body}\n</svg>\n")
