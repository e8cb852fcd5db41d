"""Joins of a room in which a subscriber is already: the time to the first packet beside Janus, and to the first frame.

Subscribers join one after the other, each when the one before has a keyframe, and stay. Servers and load generator run
as in janus.py. Needs root, two cores, and Debian's package janus.
"""
from benchmark_program import build
from figures import Failure, load_average, page_parser, run_json, say, spread, write_page
from janus_numbers import NAMES
from joined_namespaces import check_machine
from room_servers import LOAD_CORE, janus_version, serving

# The default configuration of Janus, with a thread for each subscriber, is too busy for the last joins.
KINDS = ["ours", "best"]
# Seconds between the first frame of the other viewer and the join.
WATCHED = {"a keyframe that is 0.2 s old": "0.2", "a keyframe that is 3 s old": "3"}


def measure_joins(kind, program, joins):
    with serving(kind, program) as (server, joined):
        return run_json(
            joined.inside(
                joined.load, program, "room-joins", *server.load_options(), "--joins", str(joins), core=LOAD_CORE), 400)


def joins_table(runs):
    lines = [
        "| | first packet, ms, p50 | p95 | longest | first keyframe, ms, p50 | p95 | longest | keyframes | joins a second |",
        "|---" * 9 + "|"]
    for kind in KINDS:
        results = runs[kind]
        figures = [
            spread([result[event][key] for result in results])
            for event in ("packet", "keyframe") for key in ("median", "p95", "max")]
        keyframes = spread([result["keyframes"] for result in results], 0)
        rate = spread([result["joins"] / result["seconds"] for result in results])
        lines.append(f"| {NAMES[kind]} | {' | '.join(figures)} | {keyframes} | {rate} |")
    return lines


def calls_table(calls):
    lines = [
        "| the other viewer's stream began with | first frame, ms | of it until connected | until subscribed |",
        "|---" * 4 + "|"]
    for name, results in calls.items():
        figures = [spread([r[key] for r in results]) for key in ("firstFrameMs", "connectedMs", "subscribedMs")]
        lines.append(f"| {name} | **{figures[0]}** | {figures[1]} | {figures[2]} |")
    return lines


def page(runs, calls, options):
    first = runs["ours"][0]
    return [
        "## Join to first packet", "",
        f"One room with one publisher, {first['packetsPerSecond']} packets of 1200 bytes a second in 30 bursts. One "
        f"subscriber is there; {first['joins']} more join one after the other, each when the one before has a keyframe, "
        "and stay. Times are from before the connection to the server: WebSocket, joining, ICE, DTLS and subscribing are "
        "in them. *Keyframes* are those that the joins cost the publisher. The server is alone on a core, in another "
        f"network namespace than the load generator. {options.rounds} round(s), in turn; median (min to max).", "",
        *joins_table(runs), "", "## Join to first frame", "",
        "A publisher, a viewer that is there, the room server and the measured viewer on the SDK in one process, on "
        "loopback: 640x480 at 30 frames/s, VP8. From `connect` of the measured viewer to its first rendered frame, as in "
        f"`make bench`. {options.calls} runs of each; median (min to max).", "", *calls_table(calls), ""]


def main(arguments, facts):
    parser = page_parser("joins", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each server (3)")
    parser.add_argument("--joins", type=int, default=200, help="of each round (200)")
    parser.add_argument("--calls", type=int, default=10, help="of each kind (10)")
    options = parser.parse_args(arguments)
    check_machine()
    version = janus_version()
    program = build("benchmarks")
    load = load_average()
    runs, problems = {kind: [] for kind in KINDS}, []
    calls = {name: [] for name in WATCHED}
    for number in range(1, options.rounds + 1):
        for kind in KINDS:
            say(f"joins: round {number} of {options.rounds}, {NAMES[kind]}")
            try:
                runs[kind].append(measure_joins(kind, program, options.joins))
            except Failure as problem:
                problems.append(f"joins: {NAMES[kind]}: {problem}")
    for number in range(1, options.calls + 1):
        for name, seconds in WATCHED.items():
            say(f"joins: call {number} of {options.calls}, {name}")
            try:
                calls[name].append(run_json([program, "call", "--seconds", "1", "--warm-up", "0", "--watched", seconds], 90))
            except Failure as problem:
                problems.append(f"joins: call: {problem}")
    if not all(runs.values()) or not all(calls.values()):
        return problems
    wrong = sum(run[key] for run in runs["ours"] for key in ("missing", "wrong"))
    if wrong:
        problems.append(f"joins: our server lost or changed {wrong} packets.")
    facts = [*facts, ("Janus", version)]
    write_page(options.output, "joins", "joins beside Janus", facts, page(runs, calls, options), load)
    return problems
