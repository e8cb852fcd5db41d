import Glibc
import MediaGraph
import Testing
import TestSupport

@testable import GStreamerKit

/// A file's headers state the same as its decoded streams.
@Suite struct FileGlanceTests {
    /// A container and its streams.
    struct Format: Sendable, CustomTestStringConvertible {
        var muxer: String
        var video: [String] = []
        var audio: [String] = []
        /// Whether the headers describe the file completely, without decoding.
        var isPlain: Bool

        var testDescription: String { ([muxer] + video + audio).joined(separator: " ") }
    }

    private static let formats = [
        Format(muxer: "mp4mux", video: ["x264enc", "h264parse"], isPlain: true),
        Format(muxer: "mp4mux", video: ["x264enc", "h264parse"], audio: ["avenc_aac", "aacparse"], isPlain: true),
        Format(muxer: "matroskamux", video: ["vp8enc"], audio: ["opusenc"], isPlain: true),
        Format(muxer: "matroskamux", video: ["x264enc", "h264parse"], audio: ["flacenc", "flacparse"], isPlain: true),
        Format(muxer: "webmmux", video: ["vp9enc"], audio: ["vorbisenc"], isPlain: true),
        Format(muxer: "avimux", video: ["jpegenc"], isPlain: false),
        Format(muxer: "oggmux", video: ["theoraenc"], audio: ["vorbisenc"], isPlain: false),
        Format(muxer: "wavenc", isPlain: true),
    ]

    @Test("Headers of any file type state the same as decoding", arguments: formats)
    func same(format: Format) throws {
        let path = try write(format)
        defer { unlink(path) }
        let decoded = try #require(contents(FileDiscovery.discover(path)))
        #expect(decoded.hasVideo == !format.video.isEmpty)
        #expect(contents(FileDiscovery.discover(path, trustingHeads: true)) == decoded)
        let glance = FileGlance.look(into: path, seconds: 10)
        #expect(glance == .found(decoded) || !format.isPlain && glance == nil)
    }

    @Test("The clip's headers state all properties")
    func shippedClip() throws {
        let decoded = try #require(contents(FileDiscovery.discover(Checkout.clip)))
        #expect(FileGlance.look(into: Checkout.clip, seconds: 10) == .found(decoded))
    }

    @Test("The headers of a truncated file are not trusted")
    func cutOff() throws {
        let whole = try #require(fopen(Checkout.clip, "rb"))
        defer { fclose(whole) }
        var bytes = [UInt8](repeating: 0, count: 500_000)
        let count = fread(&bytes, 1, bytes.count, whole)
        let path = try temporaryPath()
        defer { unlink(path) }
        let file = try #require(fopen(path, "wb"))
        fwrite(bytes, 1, count, file)
        fclose(file)
        guard case .unreadable = FileDiscovery.discover(path, trustingHeads: true) else {
            Issue.record("half of a file was taken for a whole one")
            return
        }
    }

    private func contents(_ answer: DiscoveredFile) -> MediaFileInfo? {
        if case .found(let contents) = answer { contents } else { nil }
    }

    private func temporaryPath() throws -> String {
        var template = Array("/tmp/glance-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        close(descriptor)
        return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    /// A second of a test pattern and a tone.
    private func write(_ format: Format) throws -> String {
        let path = try temporaryPath()
        let end = Moment()
        let pipeline = Pipeline { message in
            switch message {
            case .endOfStream: end.happened()
            case .error(let failure): Issue.record("\(failure)")
            default: break
            }
        }
        defer { pipeline.stop() }
        let muxer = try Element(format.muxer)
        let sink = try Element("filesink", ["location": .text(path)])
        var chains: [[Element]] = []
        if !format.video.isEmpty {
            chains.append(
                try [
                    Element("videotestsrc", ["num-buffers": 25]),
                    .filter("video/x-raw,format=I420,width=176,height=144,framerate=25/1"),
                ] + format.video.map { try Element($0) })
        }
        if !format.audio.isEmpty || format.video.isEmpty {
            chains.append(
                try [Element("audiotestsrc", ["num-buffers": 44]), Element("audioconvert")]
                    + format.audio.map { try Element($0) })
        }
        for element in chains.joined() + [muxer, sink] { pipeline.add(element) }
        try muxer.link(sink)
        for chain in chains {
            for (from, to) in zip(chain, chain.dropFirst()) { try from.link(to) }
            try chain[chain.count - 1].link(muxer)
        }
        #expect(pipeline.play())
        #expect(end.wait(seconds: 60))
        return path
    }
}
