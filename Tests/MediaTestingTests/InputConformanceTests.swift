import MediaAuthoring
@testable import MediaTesting
import Testing

/// The checks of nodes with inputs: processors and renderers.
extension ConformanceTests {
    private func test(
        processor make: @escaping @Sendable () -> any Processor, _ options: Conformance.Options = short(reopenings: 20)
    ) async -> ConformanceReport {
        func open<Kind: Processor>(_ first: Kind) async -> ConformanceReport {
            await Conformance.test({ make() as? Kind ?? first }, nil, options)
        }
        return await open(make())
    }

    private func test(
        renderer make: @escaping @Sendable () -> any Renderer, _ options: Conformance.Options = short(reopenings: 20)
    ) async -> ConformanceReport {
        func open<Kind: Renderer>(_ first: Kind) async -> ConformanceReport {
            await Conformance.test({ make() as? Kind ?? first }, nil, options)
        }
        return await open(make())
    }

    @Test(
        "A processor that is broken in one way fails that check, and no other", arguments: BrokenProcessors.all.indices)
    func brokenProcessor(_ index: Int) async {
        let (check, processor) = BrokenProcessors.all[index]
        let report = await test(processor: processor)
        #expect(report.failures == [check], "\(report)")
        #expect(report.description.contains("docs/plugin-conformance.md#\(check)"))
    }

    @Test(
        "A renderer that is broken in one way fails that check, and no other", arguments: BrokenRenderers.all.indices)
    func brokenRenderer(_ index: Int) async {
        let (check, renderer) = BrokenRenderers.all[index]
        // It waits without a clock, so a skipping clock would wait for it forever.
        let isEndless = renderer() is BrokenRenderers.Endless
        let clock: any StandClock = isEndless ? MachineClock() : SkippedTime()
        let report = await test(renderer: renderer, Self.short(clock, reopenings: 20))
        #expect(report.failures == [check], "\(report)")
        #expect(report.description.contains("docs/plugin-conformance.md#\(check)"))
    }

    @Test("There is a broken processor and a broken renderer for each of their checks")
    func completeInputs() {
        let processors = Conformance.checks(for: .processor).map(\.name)
        #expect(Set(BrokenProcessors.all.map(\.check)) == Set(processors))
        let renderers = Conformance.checks(for: .renderer).map(\.name)
        #expect(Set(BrokenRenderers.all.map(\.check)) == Set(renderers))
    }

    @Test("A correct processor and a correct renderer pass every check")
    func modelInputs() async {
        let processor = await test(processor: ModelProcessor.init)
        #expect(processor.isPassed, "\(processor)")
        #expect(processor.applicable == processor.results.count, "\(processor)")
        let renderer = await test(renderer: ModelRenderer.init)
        #expect(renderer.isPassed, "\(renderer)")
        #expect(renderer.applicable == renderer.results.count, "\(renderer)")
    }

    @Test("A processor without settings, one with another result each time, and a renderer of audio pass")
    func otherInputs() async {
        let kinds: [@Sendable () -> any Processor] = [Negative.init, Flickering.init]
        for kind in kinds {
            let report = await test(processor: kind)
            #expect(report.isPassed && report.applicable >= 3, "\(report)")
        }
        let meter = await test(renderer: Meter.init, Self.short())
        #expect(meter.isPassed && meter.applicable == 5, "\(meter)")
        #expect(meter["holding"]?.verdict == .notApplicable, "\(meter)")
    }

    @Test("A processor that is only too slow for large frames fails if it was built with optimization")
    func heavy() async {
        for isOptimized in [false, true] {
            var options = Self.short()
            options.checks = ["speed"]
            options.isOptimized = isOptimized
            let report = await test(processor: Heavy.init, options)
            #expect(report["speed"]?.verdict == (isOptimized ? .failed : .notApplicable), "\(report)")
        }
    }
}
