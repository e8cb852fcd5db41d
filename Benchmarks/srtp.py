"""SRTP on OpenSSL beside libsrtp2: sealing and opening, without sessions and sockets."""
import os
import tempfile

from benchmark_program import build, build_malloc_counter
from figures import Failure, load_average, median, page_parser, ratios, run_json, spread, write_page


def microseconds(nanoseconds):
    return spread([value / 1000 for value in nanoseconds], 2)


def table(report, counted):
    lines = [
        "Microseconds of processor time per packet; median of the rounds (min to max). Both libraries run in one thread, in "
        "turn, and a ratio is the median of those of the rounds. A packet is sealed and opened in its own buffer, so "
        "nothing is copied; the buffers fit into the second-level cache. Lengths are without the tag. Packets of 45 SSRCs "
        "alternate.",
        "",
        "| profile | bytes | SSRCs | seal: OpenSSL | libsrtp2 | ratio | open: OpenSSL | libsrtp2 | ratio | allocations of a "
        "packet, seal and open: OpenSSL | libsrtp2 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    costs = zip(report["costs"][::2], report["costs"][1::2], counted["costs"][::2], counted["costs"][1::2])
    for ours, theirs, our_counts, their_counts in costs:
        cells = [ours["profile"], str(ours["length"]), str(ours["ssrcs"])]
        for key in ("seal", "open"):
            ratio = median(ratios(ours[key], theirs[key]))
            cells += [microseconds(ours[key]), microseconds(theirs[key]), f"**{ratio:.2f}**"]
        for counts in (our_counts, their_counts):
            cells.append(", ".join(
                f"{median(counts[key]):.2f}" for key in ("sealAllocations", "openAllocations")))
        lines.append(f"| {' | '.join(cells)} |")
    return lines + [
        "",
        "Allocations are counted by a preloaded malloc, in a run of its own.",
        "",
    ]


def main(arguments, facts):
    parser = page_parser("srtp", __doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each library")
    parser.add_argument("--build", default="Built in release.", help="a sentence about the program that is measured")
    options = parser.parse_args(arguments)
    program = build("benchmarks")

    def run(rounds, **environment):
        return run_json([program, "srtp", "--rounds", str(rounds)], 600, env={**os.environ, **environment})

    load = load_average()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        counter = build_malloc_counter(folder)
        report = run(options.rounds)
        counted = run(1, LD_PRELOAD=counter, MALLOC_COUNTER_FILE=os.path.join(folder, "counts"))
    if not all(median(cost["sealAllocations"]) > 0 for cost in counted["costs"][1::2]):
        raise Failure("The malloc counter does not count the allocations of libsrtp2.")
    write_page(
        options.output, "srtp", "SRTP on OpenSSL beside libsrtp2", facts,
        [options.build, "", *table(report, counted)], load)
    return []
