import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

private func packet(
    _ payload: [UInt8], flags: UInt8 = 0x80, after header: [UInt8] = [], number: UInt16 = 7, timestamp: UInt8 = 1,
    source: UInt8 = 2
) -> [UInt8] {
    [flags, 111, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, timestamp, 0, 0, 0, 0, source] + header + payload
}

/// Opus silence of 20 ms.
private let silence: [UInt8] = [0xf8, 0xff, 0xfe]

extension MediaNodesTests {
    @Suite struct StreamBeginningTests {
        private func begins(_ bytes: [UInt8], _ encoding: String) -> Bool {
            beginsStream(bytes.span.bytes, encoding: encoding)
        }

        @Test("The first packet of a VP8 keyframe begins a stream, whatever its descriptor has")
        func vp8() {
            #expect(begins(packet([0x10, 0x10]), "vp8"))
            #expect(!begins(packet([0x10, 0x11]), "vp8"))
            #expect(!begins(packet([0x00, 0x10]), "vp8"))
            #expect(!begins(packet([0x11, 0x10]), "vp8"))
            // A picture id of two bytes, TL0PICIDX and TID.
            #expect(begins(packet([0x90, 0xe0, 0x81, 0x01, 0x01, 0x01, 0x10]), "vp8"))
            #expect(!begins(packet([0x90, 0xe0, 0x81, 0x01, 0x01, 0x01, 0x11]), "vp8"))
        }

        @Test("The first packet of the lowest spatial layer of a VP9 keyframe begins a stream")
        func vp9() {
            #expect(begins(packet([0x08, 0x82]), "vp9"))
            #expect(!begins(packet([0x48, 0x86]), "vp9"))
            #expect(!begins(packet([0x00, 0x82]), "vp9"))
            #expect(begins(packet([0xa8, 0x81, 0x01, 0x00, 0x01, 0x82]), "vp9"))
            #expect(!begins(packet([0xa8, 0x81, 0x01, 0x03, 0x01, 0x82]), "vp9"))
        }

        @Test("The layer frames of a VP9 frame above the lowest do not begin another one")
        func spatialLayers() {
            /// The payload of a packet behind one with this timestamp.
            func joined(_ payload: [UInt8], after last: UInt8 = 1) -> [UInt8]? {
                var (joiner, bytes) = (SpatialLayerJoiner(), packet(payload))
                #expect(joiner.take(packet([0xe8, 0x81, 0x01, 0x00, 0x01, 0x86], timestamp: last).span.bytes) == nil)
                guard let change = joiner.take(bytes.span.bytes) else { return nil }
                bytes[change.place] = change.byte
                return Array(bytes.dropFirst(12))
            }
            #expect(joined([0xec, 0x81, 0x01, 0x03, 0x01, 0x86]) == [0xe4, 0x81, 0x01, 0x03, 0x01, 0x86])
            #expect(joined([0xec, 0x01, 0x43, 0x01, 0x86]) == [0xe4, 0x01, 0x43, 0x01, 0x86])
            // The lowest one, and a packet that begins no frame, stay as they are.
            #expect(joined([0xec, 0x81, 0x01, 0x40, 0x01, 0x86]) == nil)
            #expect(joined([0xe4, 0x81, 0x01, 0x03, 0x01, 0x86]) == nil)
            #expect(joined([0x08, 0x82]) == nil)
            // The first one of a frame whose lowest layer is missing begins it.
            #expect(joined([0xec, 0x81, 0x01, 0x03, 0x01, 0x86], after: 0) == nil)
            for length in 0..<18 {
                var joiner = SpatialLayerJoiner()
                for _ in 0..<2 {
                    _ = joiner.take(
                        Array(packet([0xec, 0x81, 0x01, 0x03, 0x01, 0x86]).prefix(length)).span.bytes)
                }
            }
        }

        @Test("Parameter sets begin an H.264 stream, alone or in an aggregate")
        func h264() {
            #expect(begins(packet([0x67, 0x42]), "h264"))
            #expect(begins(packet([0x78, 0x00, 0x02, 0x67, 0x42]), "h264"))
            #expect(!begins(packet([0x65, 0x88]), "h264"))
            #expect(!begins(packet([0x7c, 0x85]), "h264"))
        }

        @Test("Sources and extensions of the header are skipped")
        func header() {
            #expect(begins(packet([0x67], flags: 0x82, after: .init(repeating: 0x11, count: 8)), "h264"))
            #expect(begins(packet([0x67], flags: 0x90, after: [0xbe, 0xde, 0, 1, 1, 2, 3, 4]), "h264"))
            #expect(!begins(packet([0x67], flags: 0x90, after: [0xbe, 0xde, 0xff, 0xff]), "h264"))
        }

        @Test("Truncated packets begin nothing", arguments: ["vp8", "vp9", "h264", "opus"])
        func truncated(encoding: String) {
            let whole = packet(
                [0x90, 0xe0, 0x81, 0x01, 0x01, 0x01, 0x10], flags: 0x92, after: .init(repeating: 0, count: 12))
            for length in 0..<24 { #expect(!begins(Array(whole.prefix(length)), encoding)) }
            for length in 24...whole.count { _ = begins(Array(whole.prefix(length)), encoding) }
        }

        @Test("The first packet is passed on without a second one")
        func alone() async throws {
            let longestWait = 5000
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.rtpInput("in", codec: AudioCodec.opus, latency: longestWait)
                        Node.null("end")
                    }
                })
            try await pipeline.start()
            let input = try #require(pipeline.rtpInput("in"))
            let start = ContinuousClock.now
            let only = packet(silence)
            input.push(only, ends: [only.count])
            await eventually("a frame") { pipeline.statistics.rtpInputs["in"]?.framesReceived == 1 }
            // The jitter buffer gives up its wait for a second packet after that time.
            #expect(ContinuousClock.now - start < .milliseconds(longestWait))
            await pipeline.stop()
        }

        @Test("A later stream of the same input may have lower sequence numbers")
        func later() async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.rtpInput("in", codec: AudioCodec.opus)
                        Node.null("end")
                    }
                })
            try await pipeline.start()
            let input = try #require(pipeline.rtpInput("in"))
            for (source, first) in [(UInt8(2), UInt16(12_000)), (3, 3000)] {
                for place in 0..<UInt16(20) {
                    let next = packet(
                        silence, number: first + place, timestamp: UInt8(place) * 4 + source, source: source)
                    input.push(next, ends: [next.count])
                }
                await eventually("the stream \(source)") {
                    pipeline.statistics.rtpInputs["in"]?.framesReceived ?? 0 >= 20 * (Int(source) - 1)
                }
            }
            await pipeline.stop()
        }
    }
}
