import Glibc
public import MediaAuthoring
import Synchronization

extension BrokenCapturers {
    /// It needs 150 ms to close its source.
    public struct Lingering: Capturer {
        public static let summary = "Returns late"

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

    /// It opens its device for 150 ms and ignores cancellation meanwhile.
    public struct SlowStarter: Capturer {
        public static let summary = "Cannot be stopped while it starts"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            usleep(150_000)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It ignores all errors.
    public struct Swallowing: Capturer {
        public static let summary = "Hides errors"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while !Task.isCancelled { try? await output.draw { paint(&$0, 60) } }
        }
    }

    /// It accepts a rate of zero, and waits for the first frame without end.
    public struct Overreaching: Capturer {
        public static let summary = "Allows settings that it cannot use"
        @Setting("Frames per second", in: 0...60, unit: "frames/s") public var fps = 30

        public init() {}

        public func format() -> PictureFormat {
            PictureFormat(width: 64, height: 48, framesPerSecond: Double(max(fps, 1)))
        }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while fps == 0 { try await output.wait(seconds: 1) }
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It waits for a lost device.
    public struct Ghost: Rehearsed, Capturer {
        public static let summary = "Reports nothing when its device is lost"
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

    /// Its error for a missing device has two words.
    public struct Terse: Rehearsed, Capturer {
        public static let summary = "Reports little when it fails"
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

    /// It never closes its file descriptors.
    public struct LeakingDescriptors: Capturer {
        public static let summary = "Leaves a file descriptor behind"

        public init() {}

        public func format() -> PictureFormat { BrokenCapturers.format }

        public func capture(into output: CaptureOutput<PictureFormat>) async throws {
            _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It starts a thread that never ends.
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

    /// It keeps the last frame of every capture.
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
