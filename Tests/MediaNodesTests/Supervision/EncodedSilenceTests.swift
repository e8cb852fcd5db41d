import GStreamerKit
import MediaGraph
import Synchronization
import TestSupport
import Testing

@testable import MediaNodes

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

        private static func aac(_ rate: Int, _ channels: Int) -> MediaFormat {
            MediaFormat(.encodedAudio, "aac", sampleRate: rate, channels: channels)
        }

        @Test(arguments: [(96_000, 1), (44_100, 2), (7350, 2)])
        func `silence of AAC has the configuration of a frame`(_ rate: Int, _ channels: Int) throws {
            let silence = try #require(EncodedSilence(Self.aac(rate, channels)))
            #expect(EncodedSilence(adts: silence.frame) == silence)
            var frame = silence.frame
            // MPEG-2, the main profile, with a checksum.
            (frame[1], frame[2]) = (0xf8, frame[2] & 0x3f)
            let other = try #require(EncodedSilence(adts: frame))
            #expect(other.duration == silence.duration && other.frame.dropFirst(3) == silence.frame.dropFirst(3))
            #expect(other.frame[1] == 0xf9 && other.frame[2] == frame[2])
            // More channels, and a reserved rate.
            frame[3] |= 0xc0
            #expect(EncodedSilence(adts: frame) == nil)
            #expect(EncodedSilence(adts: Array(silence.frame.prefix(6))) == nil)
            frame = silence.frame
            frame[2] |= 0x3c
            #expect(EncodedSilence(adts: frame) == nil)
        }

        @Test func `the first frame of AAC decides its silence`() throws {
            // As of a clock of 90 kHz.
            let promise = Self.aac(90_000, 1)
            #expect(EncodedSilence(promise) == nil)
            let silence = try #require(EncodedSilence(Self.aac(16_000, 1)))
            let source = PushSource(try Element("appsrc", PushSource.properties))
            var track = SourceTrack(source, promise, .silence(.unknown), .init())
            _ = track.pass(try #require(MediaBuffer(silence.frame)), at: 0)
            guard case .silence(.encoded(let own)) = track.standIn else {
                Issue.record("\(track.standIn)")
                return
            }
            #expect(own == silence)
        }

        /// As of a network camera whose first packets were late.
        @Test func `encoded audio whose times run back is dropped until they go on`() throws {
            let pipeline = Pipeline { _ in }
            let (first, end) = (try Element("appsrc", PushSource.properties), try Element("fakesink", ["sync": false]))
            pipeline.add(first)
            pipeline.add(end)
            try first.link(end)
            _ = pipeline.play()
            defer { pipeline.stop() }
            let silence = try #require(EncodedSilence(Self.cases[1].format))
            var track = SourceTrack(PushSource(first), Self.cases[1].format, .silence(.encoded(silence)), .init())
            let packet = try #require(MediaBuffer(silence.frame))
            func passed(_ milliseconds: [UInt64]) -> [UInt64] {
                milliseconds.filter { track.pass(packet, at: $0 * 1_000_000).isPushed }
            }
            #expect(passed([200, 220, 240]) == [200, 220, 240])
            // Clocks differ a little: this one begins 3 ms before the end of the former.
            #expect(passed([257]) == [257])
            #expect(passed([120, 140, 200, 240, 256, 260, 280]) == [260, 280])
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
