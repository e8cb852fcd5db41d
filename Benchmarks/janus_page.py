"""The page of `run janus`: tables from the numbers of all parts that have been measured."""
from figures import NOT_MEASURED, head, median, row, spread, write_file
from janus_numbers import NAMES, Part, all_count, fits, last_ratio, lost, net_cost, net_count, slope
from janus_parts import DEFAULT_ROOMS, DEFAULT_SUBSCRIBERS
from svg_plot import panel, svg

COLORS = {"ours": "#0a6ebd", "best": "#c2410c", "default": "#7c5b9e", "kernel": "#4d7c0f"}
COST_PLOT, LATENCY_PLOT = "janus-cost.svg", "janus-latency.svg"
COST, MEDIAN, P99 = "microsecondsPerPacket", "latencyMedian", "latencyP99"
LEGEND = [
    "The server is alone on a core. The load generator is the same for both and has the other core, in another network "
    "namespace; it checks the number and the authentication tag of every packet. The namespaces are joined by a veth pair, "
    "whose receiving side works on the generator's core. Servers take turns.", "",
    "- A figure is that of the only round, or the median of several (min to max). Each part names its rounds.",
    "- *Janus, event_loops=2* is Janus at its best: two threads serve all subscribers. *Janus, default* has a thread for each.",
    f"- *{NOT_MEASURED}* is not measured: Janus's default configuration with more than {DEFAULT_SUBSCRIBERS} subscribers or "
    f"{DEFAULT_ROOMS} rooms, because it loses packets there; the thread of the rooms, which Janus does not have; and a server "
    "that was left out or failed, for the reason at the end of the part.",
    "- Load averages are of 1, 5 and 15 minutes.", ""]


class Goals:
    """A value is met if it is at most its limit."""

    def __init__(self):
        self.rows = []

    def add(self, name, limit, values, unit="", digits=2):
        if not values:
            return
        met = "met" if median(values) <= limit else "**missed**"
        self.rows.append(row(name, f"at most {limit:g}{unit}", spread(values, digits) + unit, met))

    def table(self):
        """With the parts that have been measured."""
        if not self.rows:
            return []
        return [
            "The goals are this project's own. A missed one is explained below, or in the part that measures it.", "",
            *head("", "goal", "measured", ""), *self.rows, ""]


def milliseconds(part, kind, shape=None, **wanted):
    both = [spread([median(part.values(kind, key, shape, **wanted))]) for key in (MEDIAN, P99)]
    return NOT_MEASURED if NOT_MEASURED in both else " / ".join(both)


def problems(part, shapes=(None,)):
    """A line for each server that failed."""
    lines = [
        f"- {NAMES[kind]}{f' with {shape} rooms' if shape else ''}: {problem}"
        for kind in NAMES for shape in shapes if (problem := part.problem(kind, shape))]
    return ["", "Failed:", *lines] if lines else []


def measured_cost(part, kind, shape=None, **wanted):
    steps = part.steps(kind, shape, **wanted)
    return spread([step[COST] for step in steps]) + lost(steps)


def lost_share(steps):
    return lost(steps).removeprefix(", loses ") or "none"


# One function for each part: adds goals, and returns lines.


def one_room(part, goals):
    kinds = part.kinds()
    counts = part.subscribers("ours")
    first = part.first("ours")
    lines = [
        f"One publisher, {first['rate']} bursts of {first['burst']} packets of {first['packetLength']} bytes a second, "
        f"SRTP {first['profile']}. Microseconds of all threads of the server for each packet that a subscriber received. "
        "Milliseconds from sending to receiving, p50 / p99, which include the generator's own.", "",
        *head("subscribers", *(f"{NAMES[kind]}, µs" for kind in kinds), "ours / event_loops=2",
              *(f"{NAMES[kind]}, ms" for kind in kinds))]
    for count in counts:
        lines.append(row(
            str(count), *(measured_cost(part, kind, subscribers=count) for kind in kinds),
            f"**{spread(part.ratios('ours', 'best', COST, subscribers=count), 2)}**",
            *(milliseconds(part, kind, subscribers=count) for kind in kinds)))
    few, many = (100, 400) if 400 in counts else (counts[-2:] if len(counts) > 1 else (0, 0))
    lines += ["", "Memory and idle cost:", "", *head("", *(NAMES[kind] for kind in kinds))]
    for key, name in (("privateMemory", "private memory, KiB"), ("threads", "threads"), ("descriptors", "descriptors")):
        cells = [
            spread([s for r in part.results(kind) if (s := slope(r, few, many, key)) is not None]) for kind in kinds]
        lines.append(row(f"{name}, of one subscriber, as the slope from {few} to {many}", *cells))
    for count in counts:
        shares = [
            spread([100 * v for v in part.values(kind, "idleCore", subscribers=count)], 2) for kind in kinds]
        media = spread([100 * v for v in part.values("ours", "idleMediaCore", subscribers=count)], 2)
        lines.append(row(f"{count} connected and silent, % of a core", *shares))
        lines.append(row(
            "of it on the thread of the rooms", *(media if kind == "ours" else NOT_MEASURED for kind in kinds)))
    goals.add("at 100 subscribers and bursts of 8, processor time beside Janus at its best", 0.25,
              part.ratios("ours", "best", COST, subscribers=100))
    memory = [s for r in part.results("ours") if (s := slope(r, few, many, "privateMemory")) is not None]
    goals.add(f"private memory of a subscriber, as the slope from {few} to {many}", 48, memory, " KiB", 1)
    goals.add("200 connected and silent, the thread of the rooms", 0.2,
              [100 * v for v in part.values("ours", "idleMediaCore", subscribers=200)], " % of a core")
    goals.add("200 connected and silent, the whole process", 0.8,
              [100 * v for v in part.values("ours", "idleCore", subscribers=200)], " % of a core")
    return [*lines, *problems(part)]


def single(part, goals):
    kernel = [step for one in part.rounds for step in one["kernel"]]
    cut = [step for one in part.rounds for step in one["cut"]]
    kinds = part.kinds()
    lines = [
        "One publisher, 240 packets of 1200 bytes a second, each alone. *Kernel* is a program that only encrypts with "
        "OpenSSL's EVP and calls `sendmmsg`, with as many keys and destinations, on the same core and path.", "",
        *head("subscribers", *(f"{NAMES[kind]}, µs" for kind in kinds), "kernel, µs", "ours / kernel",
              "kernel, bursts of 8 that it cuts (UDP_SEGMENT), µs")]
    for count in sorted({step["subscribers"] for step in kernel}):
        alone = [step for step in kernel if step["subscribers"] == count]
        in_bursts = [step[COST] for step in cut if step["subscribers"] == count]
        ratios = [
            ours / step[COST] for ours, step in zip(part.values("ours", COST, subscribers=count), alone)]
        lines.append(row(
            str(count), *(measured_cost(part, kind, subscribers=count) for kind in kinds),
            spread([step[COST] for step in alone], 2) + lost(alone), f"**{spread(ratios, 2)}**",
            spread(in_bursts, 2)))
        if count == 100:
            goals.add("single packets to 100 subscribers, beside the kernel's sendmmsg and EVP", 1.3, ratios)
    return [*lines, *problems(part)]


def fit_row(name, found):
    return row(name, spread([a for a, _, _ in found]), spread([b for _, b, _ in found], 2),
               f"{100 * max(error for _, _, error in found):.0f} %")


def rooms(part, goals, one):
    lines = [
        "Rooms with one publisher and 1, 2 or 3 subscribers: with two, rooms of three. All publishers together send "
        "12,000 packets of 1200 bytes a second in bursts of 8, spread evenly.", "",
        *head("rooms", "subscribers of each", *(f"{NAMES[kind]}, µs" for kind in part.kinds()), "ours / event_loops=2",
              *(f"{NAMES[kind]}, ms" for kind in part.kinds()))]
    shapes = part.shapes("ours")
    for shape in shapes:
        for count in part.subscribers("ours", shape):
            lines.append(row(
                shape, str(count), *(measured_cost(part, kind, shape, subscribers=count) for kind in part.kinds()),
                f"**{spread(part.ratios('ours', 'best', COST, shape, subscribers=count), 2)}**",
                *(milliseconds(part, kind, shape, subscribers=count) for kind in part.kinds())))
    lines += [
        "", "Time = a × packets in + b × packets out, without the work of a silent server, by least squares of relative "
        "errors:", "", *head("", "a, µs", "b, µs", "largest deviation")]
    for kind in part.kinds():
        if one and (found := fits(one, kind)):
            lines.append(fit_row(f"{NAMES[kind]}, one room of {', '.join(map(str, one.subscribers(kind)))}", found))
        for shape in part.shapes(kind):
            if found := fits(part, kind, shape):
                lines.append(fit_row(f"{NAMES[kind]}, {shape} rooms", found))
    if one and (alone := fits(one, "ours")) and (many := fits(part, "ours", shapes[-1])):
        whole = median([b for _, b, _ in alone])
        goals.add(f"b of {shapes[-1]} rooms of three beside one room's", 1.3, [b / whole for _, b, _ in many])
    return [*lines, *problems(part, shapes)]


def audio(part, _):
    first = part.first("ours", part.shapes("ours")[0])
    lines = [
        f"Rooms of three who all speak: {first['rate']} packets of {first['packetLength']} bytes a second each. Two hear "
        "each; in ours by audio slots, in Janus by a subscription.", "",
        *head("rooms", *(f"{NAMES[kind]}, µs" for kind in part.kinds()), "ours / event_loops=2",
              *(f"{NAMES[kind]}, % of the core" for kind in part.kinds()),
              *(f"{NAMES[kind]}, ms" for kind in part.kinds()))]
    shapes = part.shapes("ours")
    for shape in shapes:
        lines.append(row(
            shape, *(measured_cost(part, kind, shape) for kind in part.kinds()),
            f"**{spread(part.ratios('ours', 'best', COST, shape), 2)}**",
            *(spread([100 * v for v in part.values(kind, "serverCore", shape)], 0) for kind in part.kinds()),
            *(milliseconds(part, kind, shape) for kind in part.kinds())))
    return [*lines, *problems(part, shapes)]


def nearest(result, share):
    """The step whose server used most nearly this share of its core. None if none is near."""
    steps = [step for step in result["steps"] if abs(step["serverCore"] - share) < 0.07]
    return min(steps, key=lambda step: abs(step["serverCore"] - share), default=None)


def latency(part, goals):
    lines = [
        "Rooms of three who all publish single packets of 1200 bytes, spread evenly over time, and subscribe to the two "
        "others. The rate rises until a server uses 80 % of its core, loses packets, or the generator's core is busy. Times "
        "include the generator's own work: see its share.", "",
        *head("", "rooms", "% of the core", "packets out a second", "p50, ms", "p99, ms", "generator, % of its core", "lost")]
    for kind in part.kinds():
        for step in sorted(part.steps(kind), key=lambda step: step["packetsOut"] / step["seconds"]):
            lines.append(row(
                NAMES[kind], str(step["rooms"]), f"{100 * step['serverCore']:.0f}",
                f"{step['packetsOut'] / step['seconds']:.0f}", f"{step[MEDIAN]:.2f}", f"{step[P99]:.2f}",
                f"{100 * step['generatorCore']:.0f}", lost_share([step])))
    at_same, at_equal_load = [], []
    for ours, best in zip(part.results("ours"), part.results("best")):
        theirs = nearest(best, 0.6)
        if theirs is None:
            continue
        mine = nearest(ours, 0.6)
        if mine:
            at_equal_load.append(mine[P99] / theirs[P99])
        same = next((step for step in ours["steps"] if step["rate"] == theirs["rate"]), None)
        if same:
            at_same.append(same[P99] / theirs[P99])
    goals.add("p99 beside Janus, each at 60 % of its core", 1, at_equal_load)
    goals.add("p99 beside Janus, at the rate at which Janus uses 60 % of its core", 1, at_same)
    return [*lines, *problems(part)]


def last(part, goals):
    lines = [
        "One room. From the first packet of the publisher's burst until the last subscriber's packet, both as they pass the "
        "cable at the load's end: the kernel stamps them on the server's core. Beside it, packets × processor time of "
        "each, as measured in the same minutes without the work of a silent server.", "",
        *head("", "subscribers", "packets in a burst", "until the last packet, ms, median", "packets × time of each, ms",
              "ratio", "bursts seen")]
    for kind in part.kinds():
        for shape in part.shapes(kind):
            found = [ratio for result in part.results(kind, shape) if result["steps"] and (ratio := last_ratio(result))]
            if not found:
                continue
            result = part.first(kind, shape)
            ratios = [ratio for ratio, _, _ in found]
            seen = sum(len(one["bursts"]) for one in part.results(kind, shape))
            lines.append(row(
                NAMES[kind], str(result["steps"][0]["subscribers"]), shape,
                spread([took / 1000 for _, took, _ in found], 2),
                spread([computed / 1000 for _, _, computed in found], 2), f"**{spread(ratios, 2)}**", str(seen)))
            if kind == "ours":
                goals.add(
                    f"the last packet of a burst of {shape} leaves, beside packets × processor time of each", 1.3, ratios)
    return [*lines, *problems(part, part.shapes("ours"))]


def growth(part, kind, value):
    """(count, medians, ratios to the fewest subscribers) for each count."""
    counts = part.subscribers(kind)
    few = part.values(kind, value, subscribers=counts[0]) if counts else []
    return [
        (count, part.values(kind, value, subscribers=count),
         [v / w for v, w in zip(part.values(kind, value, subscribers=count), few)])
        for count in counts]


def growth_lines(part, goals, value, other, unit, digits, limit, name):
    """`other` is the same value with or without the work of a silent server."""
    with_or_without = "with those of a silent server" if other is all_count else "without the work of a silent server"
    lines = head("", "subscribers", unit, "beside the fewest", with_or_without, "beside the fewest", "lost")
    for kind in part.kinds():
        for count, values, ratios in growth(part, kind, value):
            steps = part.steps(kind, subscribers=count)
            others, other_ratios = [one[1:] for one in growth(part, kind, other) if one[0] == count][0]
            lines.append(row(
                NAMES[kind], str(count), spread(values, digits), spread(ratios, 2), spread(others, digits),
                spread(other_ratios, 2), lost_share(steps)))
            if kind == "ours" and count > part.subscribers(kind)[0]:
                goals.add(f"{name} of a packet at {count} subscribers beside {part.subscribers(kind)[0]}", limit, ratios)
    return [*lines, *problems(part)]


def scaling(part, goals):
    return [
        "One publisher, bursts of 8 packets of 1200 bytes, ten a second: as many as the generator can check at 1,000 "
        "subscribers. The work of a silent server is a larger share of the time here than at 30 bursts a second.", "",
        *growth_lines(
            part, goals, COST, net_cost, "µs for each packet and subscriber", 2, 1.3, "processor time")]


def calls(part, goals):
    return [
        "System calls of all threads for each packet and subscriber, by the kernel's tracepoint (`perf stat -e "
        "raw_syscalls:sys_enter`). Load as above.", "",
        *growth_lines(part, goals, all_count, net_count, "system calls", 4, 1.15, "system calls")]


def instructions(part, goals):
    return [
        "Instructions of our server in user space for each packet and subscriber, counted by callgrind: the machine need "
        "not have a counter for them. Callgrind's processor has no AVX-512, so OpenSSL may encrypt with other instructions "
        "than usual. One burst of 8 a second, because callgrind is slow.", "",
        *growth_lines(part, goals, net_count, all_count, "instructions, without those of a silent server", 0, 1.15, "instructions")]


SECTIONS = {
    "one-room": ("One room", one_room), "single": ("Single packets beside the kernel", single),
    "rooms": ("Many rooms", rooms), "audio": ("Audio", audio), "latency": ("Latency against load", latency),
    "last": ("The last subscriber's packet", last), "scaling": ("Time up to 1,000 subscribers", scaling),
    "calls": ("System calls", calls), "instructions": ("Instructions", instructions),
}


def cost_plot(one, kernel):
    lines = []
    for kind in filter(one.has_steps, one.kinds()):
        points = [(count, median(one.values(kind, COST, subscribers=count))) for count in one.subscribers(kind)]
        lines.append((NAMES[kind], COLORS[kind], False, points))
    steps = [step for each in kernel.rounds for step in each["cut"]] if kernel else []
    counts = sorted({step["subscribers"] for step in steps})
    if counts:
        points = [(count, median([s[COST] for s in steps if s["subscribers"] == count])) for count in counts]
        lines.append(("kernel and EVP alone", COLORS["kernel"], True, points))
    return svg([panel(
        lines, "subscribers of one room", "processor time, µs for each packet and subscriber",
        "Bursts of 8 packets of 1200 bytes, 30 a second", True, True, one.subscribers("ours"))])


def latency_plot(part):
    def lines(x):
        return [
            (f"{NAMES[kind].split(',')[0]}, {name}", COLORS[kind], dash, sorted((x(s), s[key]) for s in part.steps(kind)))
            for kind in filter(part.has_steps, part.kinds()) for key, name, dash in ((P99, "p99", False), (MEDIAN, "p50", True))]

    title = f"Rooms of three who all publish: {part.steps('ours')[0]['rooms']} rooms"
    return svg([
        panel(lines(lambda s: 100 * s["serverCore"]), "processor time of the server, % of a core", "delay, ms", title,
              False, True),
        panel(lines(lambda s: s["packetsOut"] / s["seconds"] / 1000), "packets received, thousand a second", "delay, ms",
              title, False, True)])


def page(contents, folder):
    """Writes the plots into the folder and returns the lines. `contents` is the numbers of each part."""
    parts = {name: Part(contents[name]) for name in SECTIONS if name in contents}
    goals, sections, plots = Goals(), [], []
    for name, part in parts.items():
        title, section = SECTIONS[name]
        arguments = (part, goals, parts.get("one-room")) if name == "rooms" else (part, goals)
        lines = section(*arguments) if part.has_steps("ours") else problems(part, part.shapes("ours") or (None,))
        sections += [f"## {title}", *measured_when(part), "", *lines, ""]
    for name, made, plot in (("one-room", cost_plot, COST_PLOT), ("latency", latency_plot, LATENCY_PLOT)):
        if name not in parts or not parts[name].has_steps("ours"):
            continue
        arguments = (parts[name], parts.get("single")) if name == "one-room" else (parts[name],)
        plots.append(f"![{SECTIONS[name][0]}]({write_file(folder, plot, made(*arguments))})")
    return [*LEGEND, *goals.table(), *plots, "", *sections]


def measured_when(part):
    """One line about the rounds of a part."""
    def words(key):
        return dict.fromkeys(facts[key] for facts in part.facts if key in facts)

    count = "One round" if len(part.facts) == 1 else f"{len(part.facts)} rounds"
    # Older rounds have no command.
    commands = f" by {', '.join(words('made by'))}" if words("made by") else ""
    dates = [facts["date"] for facts in part.facts]
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    loads = "; ".join(facts["load"] for facts in part.facts)
    return [
        f"{count}{commands}, {when}, commit {', '.join(words('commit'))}. Load average before each: {loads}."]
