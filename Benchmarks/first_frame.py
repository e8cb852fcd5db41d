"""How soon a viewer sees a video that it subscribes to, and a screen that another participant begins to share."""
from benchmark_program import build
from figures import head, load_average, page_parser, row, run_json, write_page

GOALS = {"alone": 40, "besideAnother": 40, "screenShare": 300}
NAMES = {
    "alone": "`subscribe` to the first frame captured after it, nobody else watches",
    "besideAnother": "the same, another viewer watches",
    "anyFrame": "`subscribe` to any frame, nobody else watches",
    "screenShare": "`requestScreenShare` to the first frame of the screen",
    "extensionStart": "`requestScreenShare` to `broadcastStarted`",
}


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def table(result):
    lines = head("from … to …", "goal, ms", "median", "95th percentile", "longest", "runs")
    for key, name in NAMES.items():
        values = result[key]
        figures = [f"{value:.0f}" for value in (share(values, 0.5), share(values, 0.95), max(values))]
        lines.append(row(name, str(GOALS.get(key, "")), f"**{figures[0]}**", *figures[1:], str(len(values))))
    return lines


def main(arguments, facts):
    parser = page_parser("first-frame", __doc__)
    parser.add_argument("--subscriptions", type=int, default=50, help="of each kind (50)")
    parser.add_argument("--shares", type=int, default=20, help="screen shares (20)")
    options = parser.parse_args(arguments)
    program, load = build("benchmarks"), load_average()
    result = run_json(
        [program, "first-frame", "--subscriptions", str(options.subscriptions), "--shares", str(options.shares)], 900)
    lines = [
        "Publisher, viewers and room server are in one process, on loopback: VP8, 640x480 at 30 frames/s, and a screen of "
        "1280x720. Every participant is in the room before. Between two subscriptions lie 0.2 to 1.7 s. The extension "
        "is a program that `requestScreenShare` starts; it passes on a frame every 33 ms.", "", *table(result)]
    write_page(options.output, "first-frame", "time to the first frame", facts, lines, load)
    return []
