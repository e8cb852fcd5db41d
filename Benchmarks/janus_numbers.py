"""Figures of `run janus`: medians over the rounds of a part, fits and ratios."""
from figures import median, ratios

NAMES = {"ours": "ours", "best": "Janus, event_loops=2", "default": "Janus, default"}


class Part:
    """The rounds of one part. `shape` selects one of several shapes, such as the number of rooms."""

    def __init__(self, content):
        self.facts = [one["facts"] for one in content["rounds"]]
        self.rounds = [one["results"] for one in content["rounds"]]

    def results(self, kind, shape=None):
        found = [one.get(kind) for one in self.rounds]
        if shape is not None:
            found = [one and one.get(shape) for one in found]
        return [one for one in found if one]

    def first(self, kind, shape=None):
        """The first result with steps, which describes the load of all. None if there is none."""
        return next((result for result in self.results(kind, shape) if result.get("steps")), None)

    def kinds(self):
        return [kind for kind in NAMES if self.results(kind)]

    def shapes(self, kind):
        shapes = {shape for one in self.results(kind) for shape in one if shape.isdigit()}
        return sorted(shapes, key=int)

    def has_steps(self, kind):
        return any(self.first(kind, shape) for shape in self.shapes(kind) or [None])

    def steps(self, kind, shape=None, **wanted):
        """Of all rounds, those with these values."""
        return [
            step for result in self.results(kind, shape) for step in result["steps"]
            if all(step[key] == value for key, value in wanted.items())]

    def problem(self, kind, shape=None):
        return next((r["problem"] for r in self.results(kind, shape) if "problem" in r), None)

    def subscribers(self, kind, shape=None):
        return sorted({step["subscribers"] for step in self.steps(kind, shape)})

    def values(self, kind, key, shape=None, **wanted):
        steps = self.steps(kind, shape, **wanted)
        return [v for step in steps if (v := key(step) if callable(key) else step[key]) is not None]

    def ratios(self, kind, other, key, shape=None, **wanted):
        """Of each round."""
        return ratios(self.values(kind, key, shape, **wanted), self.values(other, key, shape, **wanted))


def lost(steps):
    """The share of packets that did not come, in words; empty if all came."""
    missing = sum(step["missing"] for step in steps)
    received = sum(step["packetsOut"] for step in steps)
    return f", loses {100 * missing / (missing + received):.1f} %" if missing > 0 else ""


def net_cost(step):
    """Microseconds of a packet for one subscriber, without the work of a server that forwards nothing."""
    return step["microsecondsPerPacket"] - idle(step)


def idle(step):
    return (step.get("idleCore") or 0) * step["seconds"] * 1e6 / step["packetsOut"]


def fit(steps):
    """(a, b, largest deviation) of time = a x packets in + b x packets out, by least squares of relative errors.

    Lossy steps do not count. Nil with fewer than two ratios of packets."""
    points = [
        (step["packetsOut"] / step["packetsIn"], net_cost(step) * step["packetsOut"] / step["packetsIn"])
        for step in steps if step["missing"] * 1000 <= step["packetsOut"]]
    if len({round(ratio) for ratio, _ in points}) < 2:
        return None
    # y = a + b r, with weights 1 / y.
    ww = sum(1 / y ** 2 for _, y in points)
    wr = sum(r / y ** 2 for r, y in points)
    wrr = sum(r * r / y ** 2 for r, y in points)
    wy = sum(1 / y for _, y in points)
    wry = sum(r / y for r, y in points)
    determinant = ww * wrr - wr * wr
    a, b = (wrr * wy - wr * wry) / determinant, (ww * wry - wr * wy) / determinant
    return a, b, max(abs((a + b * r) / y - 1) for r, y in points)


def fits(part, kind, shape=None):
    """Of each round."""
    return [found for result in part.results(kind, shape) if (found := fit(result["steps"]))]


def slope(result, few, many, key):
    """Of one subscriber, between two steps. None where one is not there."""
    steps = {step["subscribers"]: step for step in result["steps"]}
    if few not in steps or many not in steps:
        return None
    return (steps[many][key] - steps[few][key]) / (many - few)


def net_count(step):
    """Counted work of a packet for one subscriber, without that of a server that forwards nothing."""
    sending, silent = step["counts"]["sending"], step["counts"]["silent"]
    return (sending["count"] - silent["count"] / silent["seconds"] * sending["seconds"]) / step["packetsOut"]


def all_count(step):
    """The same with all the work of the server while packets were sent."""
    silent = step["counts"]["silent"]
    return net_count(step) + silent["count"] / silent["seconds"] * step["sendingSeconds"] / step["packetsOut"]


def last_ratio(result):
    """Of the time until the last packet to packets x processor time of each, and both in microseconds."""
    step = result["steps"][0]
    took = median([burst["microseconds"] for burst in result["bursts"]])
    computed = step["subscribers"] * result["burst"] * net_cost(step)
    return (took / computed, took, computed) if took is not None else None
