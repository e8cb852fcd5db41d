import Foundation
import GraphFile
import MediaGraph
import Testing
import TestSupport

/// Reading ends soon and with messages, whatever a file contains.
@Suite struct HostileInputTests {
    /// Valid texts, as seeds for mutation.
    private static let seeds: [String] = {
        let folder = Checkout.folder.appending(path: "pipelines")
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let shipped = files.sorted().compactMap { name in
            try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
        }
        return shipped + [
            "variables: {a: x}\nchains:\n  - - {node: camera, name: a, fps: \"${a:-5}\"}\n    - tee: [scale, {to: "
                + "m.in1}]\n      branch: b\n    - {element: videobalance, settings: {to: 3}}\n    - mixer\n    - "
                + "'null'\n",
            "{\"chains\": [[{\"node\": \"file\", \"path\": \"x\"}, \"window\"], [{\"from\": \"file.audio\"}, "
                + "\"opus-encoder\"]]}",
        ]
    }()

    private static let pieces = [
        "\t", "\n", "\r\n", "${", "}", "${a:-b}", "- ", "- - ", ": ", "{", "[", "]", "\"", "'", "&a ", "*a", "!!str ",
        "|", ">",
        "#", "%", "@", "---\n", "...\n", "null", "~", "\u{0}", "\u{FEFF}", "\u{2028}", "é", "1e999", "<<: ", "? ",
        "tee: ",
        "to: ", "from: ", "name: ", "settings: ", "chains: ", "optional: ", "\\u", "$$",
    ]

    @Test(arguments: 0..<8) func `mutations of valid files never trap`(seed: UInt64) {
        var random = Seeded(seed)
        for _ in 0..<400 {
            guard let seedText = Self.seeds.randomElement(using: &random) else { return }
            var bytes = Array(seedText.utf8)
            for _ in 0..<Int.random(in: 1...6, using: &random) { mutate(&bytes, &random) }
            let reading = GraphReading(bytes, values: ["a": "1"], catalogue: TestKinds())
            // Every problem can be printed, and every graph can be written.
            #expect(reading.report(path: "x").utf8.count < 1_000_000)
            #expect(reading.problems.allSatisfy { !$0.message.isEmpty })
            _ = reading.document.yaml(with: TestKinds())
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ random: inout Seeded) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let end = min(bytes.count, place + Int.random(in: 0...20, using: &random))
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes.removeSubrange(place..<end)
        case 1: bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: 0...bytes.count, using: &random))
        case 2: bytes.insert(contentsOf: (Self.pieces.randomElement(using: &random) ?? "").utf8, at: place)
        case 3: if place < bytes.count { bytes[place] = .random(in: 0...255, using: &random) }
        case 4: bytes.removeSubrange(place...)
        default:
            var lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
            lines.shuffle(using: &random)
            bytes = Array(lines.joined(separator: [10]))
        }
    }

    /// Name and text: a naive reader would take far longer than the limit for each, or all memory.
    private static let bombs: [(String, String)] = [
        ("open lists", String(repeating: "[", count: 500_000)),
        ("open maps", String(repeating: "{a: ", count: 200_000)),
        ("dashes", String(repeating: "- ", count: 400_000)),
        ("questions", String(repeating: "? ", count: 400_000)),
        ("closed lists", String(repeating: "[", count: 900) + String(repeating: "]", count: 900)),
        ("flat lists", "[" + String(repeating: "[],", count: 300_000) + "]"),
        (
            "aliases",
            "a0: &a0 [x, x]\n" + (1...60).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1)]\n" }.joined()
        ),
        (
            "aliases as keys",
            "a0: &a0 [x, x]\n" + (1...11).map { "a\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1)]\n" }.joined()
                + "*a11 : 1\n"
        ),
        ("steps", "chains:\n  -\n" + String(repeating: "    - null\n", count: 90_000)),
        ("settings", "chains: [[{node: camera, " + (0..<15_000).map { "w\($0): 1, " }.joined() + "}]]"),
        ("repeated keys", (0..<2000).map { "a\($0): 1\na\($0): 2\n" }.joined()),
        ("variables", "chains: [[\"" + String(repeating: "${", count: 400_000) + "\"]]"),
        ("names", "chains: [[\"" + String(repeating: "camera", count: 150_000) + "\"]]"),
        (
            "variables of a kind",
            "chains: [[camera" + (0..<20_000).map { ", \"${v\($0):-window}\"" }.joined() + "]]"
        ),
        ("comments", String(repeating: "# *a *b\n", count: 100_000)),
        ("spaces", String(repeating: " ", count: 900_000)),
        ("line breaks", String(repeating: "\n", count: 900_000) + "@"),
    ]

    @Test(.timeLimit(.minutes(1)), arguments: bombs.map(\.0))
    func `files designed to be slow are fast`(name: String) throws {
        let text = try #require(Self.bombs.first { $0.0 == name }).1
        let start = ContinuousClock.now
        let reading = read(text)
        let report = reading.report(path: "x")
        #expect(!reading.problems.isEmpty)
        #expect(reading.problems.count <= 101)
        #expect(report.utf8.count < 100_000)
        // For a debug build on a busy machine; the worst text takes a fraction of this.
        #expect(ContinuousClock.now - start < .seconds(20), "\(name)")
    }

    @Test func `a file of ten megabytes is refused without parsing`() {
        let bytes = [UInt8](repeating: UInt8(ascii: "a"), count: 10_000_000)
        let start = ContinuousClock.now
        let reading = GraphReading(bytes, catalogue: TestKinds())
        #expect(reading.problems.map(\.message) == ["The file is larger than 1000000 bytes. Split the graph."])
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test func `nested tees are read at any practical depth`() {
        var nested = "{node: window, name: w}"
        for level in 0..<15 { nested = "{tee: [{node: scale, name: s\(level)}, \(nested)]}" }
        #expect(read("chains: [[camera, \(nested), null]]").problems.isEmpty)
    }
}
