import MediaGraph
import MediaNodes
import Testing
import TestSupport

/// Sends JPEG headers of 320x240, whatever it states.
private struct JPEGSender: Capturer {
    enum Claim: String, SettingChoice { case h264, larger }
    static let summary = "States another format than it sends"
    @Setting("Stated format") var claim: Claim

    func format() -> EncodedPictureFormat {
        claim == .h264
            ? EncodedPictureFormat(.h264, width: 320, height: 240, framesPerSecond: 30)
            : EncodedPictureFormat(.mjpeg, width: 640, height: 480, framesPerSecond: 30)
    }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 240, 1, 64, 1, 1, 0x11, 0, 0xff, 0xd9]
        while true { try output.send(jpeg, at: try await output.nextMoment(), isKeyframe: true) }
    }
}

/// Stamps each third frame 100 ms too early.
private struct Backwards: Capturer {
    static let summary = "Has capture times that go back"

    func format() -> PictureFormat { PictureFormat(width: 160, height: 120, framesPerSecond: 60) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number = 0
        while true {
            number += 1
            var time = output.now
            if number.isMultiple(of: 3) { time.nanoseconds -= 100_000_000 }
            try output.send(at: time) { $0.fill(luma: 100) }
            try await Task.sleep(for: .milliseconds(16))
        }
    }
}

extension MediaNodesTests {
    /// Capturers that break their stated promises in a running graph.
    @Suite struct LyingCapturerTests {
        private let registry: NodeRegistry

        init() throws {
            registry = try NodeRegistry.builtIn.adding(.capturer(JPEGSender.init), .capturer(Backwards.init))
        }

        @Test(
            "A capturer that sends another format than stated fails with a message",
            arguments: [
                ("h264", "it is a JPEG instead of H.264"), ("larger", "it is 320x240 instead of 640x480"),
            ])
        func misstated(claim: String, words: String) async throws {
            let graph = MediaGraph {
                Chain {
                    JPEGSender.node(["claim": .text(claim)], name: "liar")
                    Node.null("end")
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: registry)
            await #expect {
                try await pipeline.start()
            } throws: { error in
                guard let error = error as? MediaError else { return false }
                return error.code == MediaError.Code.nodeFormat && error.node == "liar" && error.message.contains(words)
            }
        }

        @Test("Decreasing capture times are replaced, no frame is lost, and the capturer is reported once")
        func backwards() async throws {
            let graph = MediaGraph {
                Chain {
                    Backwards.node(name: "clock")
                    Node.frames("view")
                }
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), registry: registry)
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count >= 20 }
            await pipeline.stop()
            let times = seen.pictures.all.map(\.time)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
            let warnings = seen.events.all.compactMap { event -> String? in
                if case .warning("clock", let message) = event { message } else { nil }
            }
            #expect(warnings.count == 1)
            #expect(warnings.first?.contains("[node.time]") == true)
        }
    }
}
