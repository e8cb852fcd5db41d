import Glibc
import MediaAuthoring
import MediaTesting

/// Processors with one fault each, and the name of the check that each fails.
enum BrokenProcessors {
    static let all: [(check: String, processor: @Sendable () -> any Processor)] = [
        ("sizes", Skewed.init), ("sizes", Picky.init), ("format-change", Fixed.init), ("speed", Sluggish.init),
        ("failure-while-starting", Hiding.init), ("settings", Overreaching.init), ("live-settings", Startled.init),
        ("reopening", Leaking.init), ("errors", Terse.init),
    ]

    struct Broken: Error {}

    /// It mistakes a row's length for the stride.
    struct Skewed: Processor {
        static let summary = "Ignores the stride"

        mutating func process(_ frame: inout MutableVideoFrame) {
            let (width, height) = (frame.width, frame.height)
            frame.withPlane(.luma) { luma, _ in
                // A row begins at y * stride.
                for offset in 0..<width * height / 2 {
                    luma.storeBytes(of: 16, toByteOffset: offset, as: UInt8.self)
                }
            }
        }
    }

    /// It refuses frames with an odd width.
    struct Picky: Processor {
        static let summary = "Needs pairs of pixels"

        mutating func process(_ frame: inout MutableVideoFrame) throws {
            guard frame.width.isMultiple(of: 2) else {
                throw MediaError(
                    code: "broken.odd", message: "The width \(frame.width) is odd. Give it frames with an even width.")
            }
        }
    }

    /// It initializes itself for the first size, and for no other.
    struct Fixed: Processor {
        static let summary = "Knows only the first size"
        private var size: Int?

        init() {}

        mutating func process(_ frame: inout MutableVideoFrame) throws {
            let now = frame.width * frame.height
            guard size ?? now == now else {
                throw MediaError(
                    code: "broken.size", message: "The size of the frames has changed. Start the graph again.")
            }
            size = now
        }
    }

    /// It waits for another device with every frame.
    struct Sluggish: Processor {
        static let summary = "Takes longer than a frame lasts"

        mutating func process(_ frame: inout MutableVideoFrame) { block(seconds: 0.04) }
    }

    /// It works without the file that it needs.
    struct Hiding: Rehearsed, Processor {
        static let summary = "Hides that its file is missing"
        @Setting("Which file") var file = "first"

        static var rehearsal: Rehearsal { Rehearsal(failing: [["file": "second"]]) }

        mutating func process(_ frame: inout MutableVideoFrame) { if file == "first" { frame.fill(luma: 100) } }
    }

    /// It accepts a size of zero, and its error has no message.
    struct Overreaching: Processor {
        static let summary = "Allows settings that it cannot use"
        @Setting("The size of a block", in: 0...64, unit: "pixels") var block = 8

        mutating func process(_ frame: inout MutableVideoFrame) throws {
            if block == 0 { throw Broken() }
        }
    }

    /// It reads its setting for each frame, and handles only the first value.
    struct Startled: Processor {
        static let summary = "Fails when a setting changes"
        @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100
        private var first: Int?

        init() {}

        mutating func process(_ frame: inout MutableVideoFrame) throws {
            guard first ?? shade == shade else { throw Broken() }
            first = shade
        }
    }

    /// It never closes its file descriptor.
    struct Leaking: Processor {
        static let summary = "Leaves a file descriptor behind"
        private var descriptor: Int32?

        init() {}

        mutating func process(_ frame: inout MutableVideoFrame) {
            if descriptor == nil { descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC) }
        }
    }

    /// Its error for a missing file has two words.
    struct Terse: Rehearsed, Processor {
        static let summary = "Reports little when it fails"
        @Setting("Which file") var file = "first"

        static var rehearsal: Rehearsal { Rehearsal(failing: [["file": "second"]]) }

        mutating func process(_ frame: inout MutableVideoFrame) throws {
            if file != "first" { throw MediaError(code: "broken.file", message: "Open failed") }
        }
    }
}

/// Blocks the thread, like a call into a device's library.
func block(seconds: Double) {
    usleep(UInt32(seconds * 1e6))
}
