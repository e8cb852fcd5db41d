"""The delay of one room's packets while another room fills and a publisher bursts.

The room server runs in a process of its own.
"""
from benchmark_program import build
from figures import load_average, median, page_parser, run_json, say, spread, write_page


def table(runs, about_build):
    first = runs[0]
    priority = "with precedence over" if all(run["probeHasPriority"] for run in runs) else "on the same terms as"
    lines = [
        f"A publisher and a receiver of one room, {first['packetsPerSecond']} packets of 1200 bytes a second, beside a room "
        f"that {first['participants']} participants join; each announces audio and sends a packet a second. Then a "
        f"publisher with {first['burstReceivers']} subscribers sends {first['burst']} packets in one burst. Delays are "
        "from sending to receiving, through the server, on one clock. The server has a process of its own. All clients "
        f"share another, whose threads compete for the same cores; the measured clients run {priority} them. "
        f"{len(runs)} runs, {about_build}; median (min to max).",
        "",
        "| while | seconds | p50, ms | p99, ms | longest, ms | core used by the rooms | packets, missing |",
        "|---|---|---|---|---|---|---|",
    ]
    for index, phase in enumerate(first["phases"]):
        phases = [run["phases"][index] for run in runs]
        figures = [
            spread([phase["seconds"] for phase in phases], 1), spread([phase["p50"] for phase in phases], 2),
            f"**{spread([phase['p99'] for phase in phases], 2)}**", spread([phase["max"] for phase in phases], 1),
            f"{100 * median([phase['load'] for phase in phases]):.0f} %",
            f"{sum(phase['packets'] for phase in phases)}, {sum(phase['missing'] for phase in phases)}",
        ]
        lines.append(f"| {phase['name']} | {' | '.join(figures)} |")
    return lines + [""]


def main(arguments, facts):
    parser = page_parser("busy", __doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs")
    parser.add_argument("--build", default="built in release", help="words about the program that is measured")
    options = parser.parse_args(arguments)
    program = build("benchmarks")
    load = load_average()
    runs = []
    for number in range(1, options.rounds + 1):
        say(f"busy: run {number} of {options.rounds}")
        runs.append(run_json([program, "busy"], 300))
    write_page(options.output, "busy-room", "a busy room beside another", facts, table(runs, options.build), load)
    return []
