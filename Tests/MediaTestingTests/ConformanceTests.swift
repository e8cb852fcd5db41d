import Foundation
import MediaAuthoring
@testable import MediaTesting
import Testing
import TestSupport

/// Serialized, because the checks measure the whole process. Only `Model` and `Blocking` use the machine's clock.
@Suite(.serialized) struct ConformanceTests {
    /// Shorter than the default, because each check also runs on every broken capturer.
    static func short(_ clock: any StandClock = SkippedTime(), reopenings: Int = 30) -> Conformance.Options {
        var options = Conformance.Options(seconds: 1.2, reopenings: reopenings)
        options.clock = clock
        options.settling = Settling(seconds: 0.2, nap: 0.1)
        return options
    }

    private func test(
        _ make: @escaping @Sendable () -> any Capturer, _ clock: any StandClock = SkippedTime()
    ) async -> ConformanceReport {
        func open<Kind: Capturer>(_ first: Kind) async -> ConformanceReport {
            await Conformance.test({ make() as? Kind ?? first }, nil, Self.short(clock))
        }
        return await open(make())
    }

    @Test(
        "A capturer that is broken in one way fails that check, and no other",
        arguments: BrokenCapturers.all.indices)
    func broken(_ index: Int) async {
        let (check, capturer) = BrokenCapturers.all[index]
        let report = await test(capturer)
        #expect(report.failures == [check], "\(report)")
        #expect(!report.isPassed)
        #expect(report.description.contains("docs/plugin-conformance.md#\(check)"))
    }

    @Test("There is a broken capturer for every check")
    func complete() {
        #expect(Set(BrokenCapturers.all.map(\.check)) == Set(Conformance.checks(for: .capturer).map(\.name)))
    }

    @Test("A correct capturer passes every check")
    func model() async {
        // `make soak` opens it as often as the kit does by default.
        let reopenings = ProcessInfo.processInfo.environment["CONNECTLIVE_SOAK"] == nil ? 60 : 500
        let report = await Conformance.test(Model.init, nil, Conformance.Options(reopenings: reopenings))
        #expect(report.isPassed, "\(report)")
        #expect(report.applicable == report.results.count, "\(report)")
    }

    @Test("Devices with their own pace, audio, and encoded video pass too")
    func others() async {
        let kinds: [(@Sendable () -> any Capturer, any StandClock)] = [
            (Blocking.init, MachineClock()), (Tone.init, SkippedTime()), (Encoded.init, SkippedTime()),
            (Answering.init, SkippedTime()), (Periodic.init, SkippedTime()),
        ]
        for (kind, clock) in kinds {
            let report = await test(kind, clock)
            #expect(report.isPassed, "\(report)")
            #expect(report.applicable >= 8, "\(report)")
        }
    }

    @Test("A capturer with a low rate is watched for longer, and one that is too slow is not judged")
    func rates() async {
        let leisurely = await test(Leisurely.init)
        #expect(leisurely.isPassed, "\(leisurely)")
        #expect(leisurely.applicable >= 11, "\(leisurely)")
        var options = Self.short()
        options.checks = ["formats", "timestamps", "clock", "pacing", "slow-consumer"]
        let tardy = await Conformance.test(Tardy.init, nil, options)
        #expect(tardy.applicable == 5 && tardy.isPassed, "\(tardy)")
        let glacial = await Conformance.test(Glacial.init, nil, options)
        #expect(glacial.applicable == 0, "\(glacial)")
        #expect(glacial["pacing"]?.words.contains("every 20.0 s") == true, "\(glacial)")
    }

    @Test("Messages at the ends of a range are checked too")
    func wordsOfSettings() async {
        let report = await test(Curt.init)
        #expect(report.failures == ["errors"], "\(report)")
    }

    @Test("A keyframe of H.264 has to be marked as one")
    func unmarked() async {
        var options = Self.short()
        options.checks = ["formats"]
        let report = await Conformance.test(HalfMarked.init, nil, options)
        #expect(
            report["formats"]?.words.contains("not marked as a keyframe, but has an IDR slice") == true, "\(report)")
    }

    @Test("A report survives writing and reading as JSON")
    func json() async throws {
        var options = Self.short()
        options.checks = ["formats", "format-change"]
        let report = await Conformance.test(Tone.init, nil, options)
        #expect(report.results.map(\.check) == ["formats", "format-change"])
        #expect(report.applicable == 1 && report["format-change"]?.verdict == .notApplicable)
        let bytes = try JSONEncoder().encode(report)
        #expect(try JSONDecoder().decode(ConformanceReport.self, from: bytes) == report)
        #expect(String(decoding: bytes, as: UTF8.self).contains("\"not-applicable\""))
    }

    @Test("Every check has a paragraph in the documentation")
    func documentation() throws {
        let page = try Checkout.text("docs/plugin-conformance.md")
        let headings = page.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { $0.dropFirst(3) }
        for check in Conformance.Group.allCases.flatMap(Conformance.checks) {
            #expect(headings.contains(Substring(check.name)), "\(check.name)")
        }
    }
}
