import BrokenPlugin
import MediaTesting
import Testing

/// Without a sanitizer all of this passes: no fault is visible from outside.
@Suite(.serialized) struct BrokenPluginTests {
    private static let options = Conformance.Options(
        seconds: 0.5, reopenings: 5, checks: ["formats", "timestamps", "cancel"])

    @Test func overrunning() async {
        let report = await Conformance.test(Overrunning.init, nil, Self.options)
        #expect(report.isPassed, "\(report)")
    }

    @Test func racing() async {
        let report = await Conformance.test(Racing.init, nil, Self.options)
        #expect(report.isPassed, "\(report)")
    }
}
