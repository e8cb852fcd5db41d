import GStreamerKit
import MediaGraph
import Testing

@Suite struct PadContainmentTests {
    /// The frames of a branch whose sibling fails silently, and the errors on the bus.
    private func run(
        _ answer: ErrorContainment, returning flow: String = "error"
    ) throws -> (passed: Int, errors: [PipelineFailure]) {
        let errors = Record<PipelineFailure>()
        let over = Moment()
        let pipeline = Pipeline { message in
            switch message {
            case .error(let failure):
                errors.add(failure)
                if failure.path.first == "pattern" { over.happened() }
            case .endOfStream: over.happened()
            default: break
            }
        }
        let source = try Element("videotestsrc", name: "pattern", ["num-buffers": 20])
        let tee = try Element("tee")
        // No element follows it, which it reports as an error.
        let failing = try Element(
            "errorignore", name: "failing", ["ignore-notlinked": true, "convert-to": .text(flow)])
        let end = try Element("fakesink", ["sync": false, "async": false])
        for element in [source, tee, failing, end] { pipeline.add(element) }
        try source.link(tee)
        for element in [failing, end] {
            let branch = try #require(tee.requestPad("src_%u"))
            #expect(branch.link(element.sink))
        }
        failing.sink.containErrors { answer }
        let passed = Record<Void>()
        end.sink.onBuffer { _ in
            passed.add(())
            return .pass
        }
        #expect(pipeline.play())
        #expect(over.wait())
        pipeline.stop()
        return (passed.entries.count, errors.entries)
    }

    @Test(
        "A contained error or end of a branch stops no other branch, and is reported once for its element",
        arguments: ["error", "eos"])
    func reported(flow: String) throws {
        let (passed, errors) = try run(.reported, returning: flow)
        #expect(passed == 20)
        #expect(errors.map { $0.path.first } == ["failing"])
        #expect(errors.first?.detail.contains("reason \(flow)") == true)
    }

    @Test("An error can be contained silently, and passes upstream otherwise")
    func others() throws {
        let silent = try run(.silent)
        #expect(silent.passed == 20 && silent.errors.isEmpty)
        let open = try run(.none)
        #expect(open.passed < 20 && open.errors.map { $0.path.first } == ["pattern"])
    }
}
