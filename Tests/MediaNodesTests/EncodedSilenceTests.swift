import GStreamerKit
import MediaGraph
import Synchronization
import TestSupport
import Testing

extension MediaNodesTests {
    @Suite struct EncodedSilenceTests {
        struct Case: CustomTestStringConvertible, Sendable {
            let format: MediaFormat
            let caps: String
            let elements: [String]

            init(_ encoding: String, rate: Int, channels: Int, _ caps: String, _ elements: [String]) {
                format = MediaFormat(.encodedAudio, encoding, sampleRate: rate, channels: channels)
                (self.caps, self.elements) = (caps, elements)
            }

            var testDescription: String { "\(format)" }
        }

        static let cases = [
            Case(
                "opus", rate: 48_000, channels: 2, "audio/x-opus,rate=48000,channels=2,channel-mapping-family=0",
                ["opusdec"]),
            Case("pcmu", rate: 8000, channels: 1, "audio/x-mulaw,rate=8000,channels=1", ["mulawdec"]),
            Case("pcma", rate: 8000, channels: 1, "audio/x-alaw,rate=8000,channels=1", ["alawdec"]),
            Case(
                "aac", rate: 16_000, channels: 1, "audio/mpeg,mpegversion=4,stream-format=adts",
                ["aacparse", "avdec_aac"]),
            Case(
                "aac", rate: 44_100, channels: 2, "audio/mpeg,mpegversion=4,stream-format=adts",
                ["aacparse", "avdec_aac"]),
        ]

        @Test func `an impossible format has no silence`() {
            for (encoding, rate, channels) in [
                ("pcmu", 0, 1), ("pcma", 8000, 0), ("pcmu", Int.max, 1), ("pcma", 8000, Int.max), ("aac", 12_345, 1),
                ("aac", 48_000, 6), ("flac", 48_000, 2),
            ] {
                #expect(
                    EncodedSilence(
                        MediaFormat(.encodedAudio, encoding, sampleRate: rate, channels: channels)) == nil)
            }
        }

        @Test(arguments: cases)
        func `a decoder plays silence of the right length`(_ test: Case) async throws {
            let silence = try #require(EncodedSilence(test.format))
            let pipeline = Pipeline { message in
                if case .error(let failure) = message { Issue.record("\(failure.message) \(failure.detail)") }
            }
            let first = try Element(
                "appsrc", PushSource.properties.merging(["is-live": false, "caps": .text(test.caps)]) { $1 })
            var chain = [first]
            for factory in test.elements + ["audioconvert"] { chain.append(try Element(factory)) }
            chain.append(
                try Element(
                    "capsfilter",
                    ["caps": .text("audio/x-raw,format=S16LE,channels=\(test.format.channels ?? 1)")]))
            chain.append(try Element("fakesink", ["sync": false]))
            for element in chain { pipeline.add(element) }
            for (one, next) in zip(chain, chain.dropFirst()) { try one.link(next) }
            let bytes = Mutex(0)
            let loudest = Mutex(0)
            chain[chain.count - 1].sink.takeBuffers { buffer, _ in
                let samples = buffer.bytes
                bytes.withLock { $0 += samples.count }
                for index in stride(from: 0, to: samples.count - 1, by: 2) {
                    let sample = Int(Int16(bitPattern: UInt16(samples[index]) | UInt16(samples[index + 1]) << 8))
                    loudest.withLock { $0 = max($0, abs(sample)) }
                }
            }
            _ = pipeline.play()
            let source = PushSource(first)
            for index in 0..<50 {
                _ = source.push(
                    silence.frame.span.bytes, timestamp: UInt64(index) * silence.duration, duration: silence.duration)
            }
            source.endOfStream()
            // Decoders of AAC keep a frame back.
            let whole = 49 * silence.duration * UInt64(test.format.sampleRate ?? 0) / 1_000_000_000
            await eventually("the audio") { bytes.withLock { $0 } >= Int(whole) * 2 * (test.format.channels ?? 1) - 64 }
            pipeline.stop()
            #expect(loudest.withLock { $0 } <= 8)
        }
    }
}
