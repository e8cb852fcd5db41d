"""Divides the tests of the bundle into units: what one process runs."""
import re
from dataclasses import dataclass, field

# Each suite of these targets is a unit, because one after the other they would take minutes. Other targets are one unit.
DIVIDED = {"MediaNodesTests", "GStreamerKitTests", "ConnectLiveSDKTests", "RoomClientTests", "PeerIOTests",
           "RoomSimulationTests", "connectliveTests"}
# The suite that holds all others of its target.
OUTER = {"MediaNodesTests", "SDKTests"}
# Only make soak runs these suites.
SOAK = re.compile("Soak/")
# Tests of these units build plugins in one folder, which one process at a time may use. Together they take longest.
WORKBENCH = ["PluginTestTests", "connectliveTests/PluginCommandTests", "PluginLoaderTests",
             "RoomClientTests/OwnCapturerTests"]
# These start first, the longest first, so that no lane works alone at the end.
LONGEST = WORKBENCH + [
    "MediaNodesTests/BuiltInConformanceTests", "connectliveTests/ShippedPipelinesTests", "PeerSessionTests",
    "RoomSimulationTests/LayerTests", "RoomSimulationTests/FaultTests", "RoomSimulationTests/PipeTests",
    "RoomSimulationTests/SpeakerTests", "RoomSimulationTests/RoamingTests",
    "MediaNodesTests/RecordingTests", "connectliveTests/NetworkNamespaceTests", "RTPTests", "connectliveTests/RunTests",
    "connectliveTests/ChromiumTests", "MediaNodesTests/RTSPTests", "MediaNodesTests/EchoTests",
    "connectliveTests/GraphCommandTests", "MediaNodesTests/ProcessTests", "MediaTestingTests",
    "connectliveTests/AiortcTests", "GraphFileTests", "connectliveTests/CallTests", "MediaNodesTests/CodecTests",
    "connectliveTests/PipelinesPageTests", "RoomServerTests", "MediaNodesTests/ExecTests", "ConnectLiveSDKTests/Calls",
    "MediaNodesTests/NetworkTests", "ConnectLiveSDKTests/Failures", "connectliveTests/ControlSocketTests",
]


@dataclass
class Unit:
    name: str
    # Regular expressions for the runner's --filter and --skip: any of them is enough.
    filter: list
    skip: list = field(default_factory=list)
    tests: list = field(default_factory=list)

    @property
    def needs(self):
        """The resource that no other unit may use at the same time."""
        return "workbench" if self.name in WORKBENCH else None

    def command(self, bundle):
        """Not `swift test`, which loses up to 4 KB of output when the process ends within a UTF-8 character."""
        filters = [word for pattern in self.filter for word in ("--filter", pattern)]
        skips = [word for pattern in self.skip for word in ("--skip", pattern)]
        return [str(bundle), "--testing-library", "swift-testing", "--no-parallel", *filters, *skips]


def read_patterns(text):
    """The patterns of Tests/timed.txt or Tests/soak.txt: a line each; empty lines and those that begin with # do not count."""
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def divide(tests, targets, timed):
    """The units that may run beside others, the longest first, and those that have to run alone.

    `tests` are the names that the bundle lists, such as "RTPTests.RTCPTests/reports()"; `timed` is what read_patterns gives."""
    beside, alone = {}, {}
    long = [test for test in tests if SOAK.search(test)]
    for test in tests:
        if test in long:
            continue
        target, _, path = test.partition(".")
        if target not in targets:
            continue
        name, pattern = unit(target, path)
        patterns = [word for word in timed if re.search(word, test)]
        if patterns:
            found = alone.setdefault(name, Unit(f"{name} (timed)", []))
            found.filter += [word for word in patterns if word not in found.filter]
        else:
            found = beside.setdefault(name, Unit(name, [pattern]))
        found.tests.append(test)
    for name, found in beside.items():
        found.skip = list(alone[name].filter) if name in alone else []
        if any(re.search(pattern, test) for pattern in found.filter for test in long):
            found.skip.append(SOAK.pattern)
    rank = {name: number for number, name in enumerate(LONGEST)}
    order = sorted(beside.values(), key=lambda unit: (rank.get(unit.name, len(rank)), -len(unit.tests)))
    return order, list(alone.values())


def soak(tests, patterns):
    """The units that make soak runs."""
    found = {}
    for test in tests:
        if any(re.search(pattern, test) for pattern in patterns):
            target, _, path = test.partition(".")
            name, pattern = unit(target, path)
            found.setdefault(name, Unit(name, [pattern])).tests.append(test)
    return list(found.values())


def unit(target, path):
    """The name of the unit that a test belongs to, and the pattern of the unit's tests."""
    if target not in DIVIDED:
        return target, rf"^{target}\."
    suites = path.split("/")[:-1]
    outer = suites[0] + "/" if len(suites) > 1 and suites[0] in OUTER else ""
    if outer:
        suites = suites[1:]
    if not suites:
        # Functions outside of suites: their names begin in lower case or with a quotation mark.
        return f"{target}/functions", rf"^{target}\.[^A-Z]"
    return f"{target}/{suites[0]}", rf"^{target}\.{outer}{suites[0]}/"
