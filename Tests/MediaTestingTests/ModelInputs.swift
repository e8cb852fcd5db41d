import MediaAuthoring
import MediaTesting
import Synchronization

/// A correct node: a live setting, a part that can be absent, and no state that depends on the size.
struct ModelProcessor: Rehearsed, Processor {
    static let summary = "Paints frames grey"
    @Setting("Which table of shades") var table = "first"
    @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100

    static var rehearsal: Rehearsal { Rehearsal(failing: [["table": "second"]]) }

    mutating func process(_ frame: inout MutableVideoFrame) throws {
        guard table == "first" else {
            throw MediaError(
                code: "model.absent", message: "There is no table \"\(table)\"; there is \"first\", so give that one.")
        }
        frame.fill(luma: UInt8(shade))
    }
}

/// The processor of the article "Change frames".
struct Negative: Processor {
    static let summary = "Inverts the brightness"

    mutating func process(_ frame: inout MutableVideoFrame) {
        frame.withPlane(.luma) { luma, _ in
            for offset in 0..<luma.byteCount {
                let sample = luma.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                luma.storeBytes(of: 255 - sample, toByteOffset: offset, as: UInt8.self)
            }
        }
    }
}

/// Another result for the same frame, every time.
struct Flickering: Processor {
    static let summary = "Draws noise"
    private var generator = SystemRandomNumberGenerator()

    init() {}

    mutating func process(_ frame: inout MutableVideoFrame) {
        let shade = UInt8.random(in: 16...235, using: &generator)
        let other = UInt8.random(in: 16...235, using: &generator)
        frame.fill(luma: shade, chromaBlue: other)
    }
}

/// Is fast enough for small frames only, as in a debug build.
struct Heavy: Processor {
    static let summary = "Takes 50 ns per pixel"

    mutating func process(_ frame: inout MutableVideoFrame) {
        block(seconds: Double(frame.width * frame.height) * 50e-9)
    }
}

/// A correct node: a live setting, a screen that can be absent or disappear, and one kept frame.
struct ModelRenderer: Rehearsed, Renderer {
    static let summary = "Shows frames on a fictitious screen"
    @Setting("Which screen") var screen = "first"
    @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100

    static let isThere = Mutex(true)

    static var rehearsal: Rehearsal {
        Rehearsal(
            failing: [["screen": "second"]], vanish: { isThere.withLock { $0 = false } },
            restore: { isThere.withLock { $0 = true } })
    }

    func render(_ media: RenderStream<VideoFrame>) async throws {
        guard screen == "first" else {
            throw MediaError(
                code: "model.absent", message: "There is no screen \"\(screen)\"; there is \"first\", so give that one."
            )
        }
        var shown: VideoFrame?
        for await frame in media {
            guard Self.isThere.withLock({ $0 }) else {
                throw MediaError(
                    code: "model.lost", message: "The screen \"\(screen)\" has gone away; plug it in and start again.")
            }
            shown = frame
            _ = shown?.barCode
        }
    }
}

/// Reads audio.
struct Meter: Renderer {
    static let summary = "Measures the loudest sample"

    func render(_ media: RenderStream<AudioChunk>) async throws {
        var loudest = 0
        for await chunk in media {
            loudest = max(loudest, chunk.samples.map { abs(Int($0)) }.max() ?? 0)
        }
    }
}
