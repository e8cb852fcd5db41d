import Glibc
public import MediaGraph
import Synchronization

extension BrokenCapturers {
    /// It takes 150 ms to close what it has read from.
    public struct Lingering: Capturer {
        public static let summary = "Leaves late"

        public init() {}

        public func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 10) }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            var count = 0
            defer { if count > 1 { usleep(150_000) } }
            while true {
                try await output.draw { paint(&$0, 60) }
                count += 1
            }
        }
    }

    /// It opens its device for 150 ms and looks at nothing meanwhile.
    public struct SlowStarter: Capturer {
        public static let summary = "Cannot be stopped while it starts"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            usleep(150_000)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It goes on whatever it is told.
    public struct Swallowing: Capturer {
        public static let summary = "Keeps errors to itself"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while !Task.isCancelled { try? await output.draw { paint(&$0, 60) } }
        }
    }

    /// It takes no pictures a second for a rate, and waits for the first one for ever.
    public struct Overreaching: Capturer {
        public static let summary = "Allows what it cannot do"
        @Setting("Pictures per second", in: 0...60, unit: "frames/s") public var fps = 30

        public init() {}

        public func format() -> PictureFormat {
            PictureFormat(width: 64, height: 48, framesPerSecond: Double(max(fps, 1)))
        }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while fps == 0 { try await output.wait(seconds: 1) }
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It waits for a device that is gone.
    public struct Ghost: Rehearsed {
        public static let summary = "Says nothing when its device is gone"
        private static let isThere = Mutex(true)

        public static var rehearsal: Rehearsal {
            Rehearsal(
                vanish: { isThere.withLock { $0 = false } }, restore: { isThere.withLock { $0 = true } })
        }

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true {
                while !Self.isThere.withLock({ $0 }) { try await output.wait(seconds: 0.01) }
                try await output.draw { paint(&$0, 60) }
            }
        }
    }

    /// It has an error for an absent device, in two words.
    public struct Terse: Rehearsed {
        public static let summary = "Says little when it fails"
        @Setting("Which device") public var device = "first"

        public static var rehearsal: Rehearsal { Rehearsal(failing: [["device": "second"]]) }

        public init() {}

        public func format() throws -> PictureFormat {
            if device != "first" { throw MediaError(code: "broken", message: "Open failed") }
            return BrokenCapturers.format
        }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It never closes what it opens.
    public struct LeakingDescriptors: Capturer {
        public static let summary = "Leaves a file descriptor behind"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It starts a thread that nobody ends.
    public struct LeakingThreads: Capturer {
        public static let summary = "Leaves a thread behind"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            var thread = pthread_t()
            pthread_create(
                &thread, nil,
                { _ in
                    while true { pause() }
                }, nil)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It keeps the last picture of every capture.
    public struct LeakingMemory: Capturer {
        public static let summary = "Leaves memory behind"
        private static let kept = Mutex<[[UInt8]]>([])

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            let picture = [UInt8](repeating: 60, count: 1_000_000)
            Self.kept.withLock { $0.append(picture) }
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }
}
