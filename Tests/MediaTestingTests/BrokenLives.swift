import Glibc
import MediaAuthoring
import MediaTesting
import Synchronization

extension BrokenCapturers {
    /// It needs 150 ms to close its source.
    struct Lingering: Capturer {
        static let summary = "Returns late"

        init() {}

        func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 10) }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            var count = 0
            defer { if count > 1 { usleep(150_000) } }
            while true {
                try await output.draw { paint(&$0, 60) }
                count += 1
            }
        }
    }

    /// It opens its device for 150 ms and ignores cancellation meanwhile.
    struct SlowStarter: Capturer {
        static let summary = "Cannot be stopped while it starts"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            usleep(150_000)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It ignores all errors.
    struct Swallowing: Capturer {
        static let summary = "Hides errors"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while !Task.isCancelled { try? await output.draw { paint(&$0, 60) } }
        }
    }

    /// It accepts a rate of zero, and waits for the first frame without end.
    struct Overreaching: Capturer {
        static let summary = "Allows settings that it cannot use"
        @Setting("Frames per second", in: 0...60, unit: "frames/s") var fps = 30

        init() {}

        func format() -> PictureFormat {
            PictureFormat(width: 64, height: 48, framesPerSecond: Double(max(fps, 1)))
        }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while fps == 0 { try await output.wait(seconds: 1) }
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It waits for a lost device.
    struct Ghost: Rehearsed, Capturer {
        static let summary = "Reports nothing when its device is lost"
        private static let isThere = Mutex(true)

        static var rehearsal: Rehearsal {
            Rehearsal(
                vanish: { isThere.withLock { $0 = false } }, restore: { isThere.withLock { $0 = true } })
        }

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true {
                while !Self.isThere.withLock({ $0 }) { try await output.wait(seconds: 0.01) }
                try await output.draw { paint(&$0, 60) }
            }
        }
    }

    /// Its error for a missing device has two words.
    struct Terse: Rehearsed, Capturer {
        static let summary = "Reports little when it fails"
        @Setting("Which device") var device = "first"

        static var rehearsal: Rehearsal { Rehearsal(failing: [["device": "second"]]) }

        init() {}

        func format() throws -> PictureFormat {
            if device != "first" { throw MediaError(code: "broken", message: "Open failed") }
            return BrokenCapturers.format
        }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It never closes its file descriptors.
    struct LeakingDescriptors: Capturer {
        static let summary = "Leaves a file descriptor behind"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }

    /// It starts a thread that never ends.
    struct LeakingThreads: Capturer {
        static let summary = "Leaves a thread behind"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
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
    struct LeakingMemory: Capturer {
        static let summary = "Leaves memory behind"
        private static let kept = Mutex<[[UInt8]]>([])

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            let picture = [UInt8](repeating: 60, count: 1_000_000)
            Self.kept.withLock { $0.append(picture) }
            while true { try await output.draw { paint(&$0, 60) } }
        }
    }
}
