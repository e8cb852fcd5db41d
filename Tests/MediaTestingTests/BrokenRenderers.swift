import Glibc
import MediaAuthoring
import MediaTesting
import Synchronization

/// Renderers with one fault each, and the name of the check that each fails.
enum BrokenRenderers {
    static let all: [(check: String, renderer: @Sendable () -> any Renderer)] = [
        ("sizes", Picky.init), ("format-change", Fixed.init), ("gaps", Impatient.init), ("holding", Hoarding.init),
        ("holding", Keeping.init), ("end", Endless.init), ("cancel", Lingering.init),
        ("stop-while-starting", SlowStarter.init), ("failure-while-starting", Hiding.init),
        ("settings", Overreaching.init), ("live-settings", Startled.init), ("reopening", Leaking.init),
        ("vanishing", Ghost.init), ("errors", Terse.init),
    ]

    struct Broken: Error {}

    /// It refuses frames with an odd width.
    struct Picky: Renderer {
        static let summary = "Needs pairs of pixels"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            for await frame in media where !frame.width.isMultiple(of: 2) {
                throw MediaError(
                    code: "broken.odd", message: "The width \(frame.width) is odd. Give it frames with an even width.")
            }
        }
    }

    /// It initializes itself for the first size, and for no other.
    struct Fixed: Renderer {
        static let summary = "Knows only the first size"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            var size: Int?
            for await frame in media {
                let now = frame.width * frame.height
                guard size ?? now == now else {
                    throw MediaError(
                        code: "broken.size", message: "The size of the frames has changed. Start the graph again.")
                }
                size = now
            }
        }
    }

    /// It mistakes a gap for the end.
    struct Impatient: Renderer {
        static let summary = "Returns after a gap"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            var last: MediaTime?
            for await frame in media {
                if let last, frame.captureTime.seconds(since: last) > 1 { return }
                last = frame.captureTime
            }
        }
    }

    /// It keeps all frames until it returns.
    struct Hoarding: Renderer {
        static let summary = "Keeps every frame"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            var frames: [VideoFrame] = []
            // The samples have to be copied.
            for await frame in media { frames.append(frame) }
            frames.removeAll()
        }
    }

    /// It never releases the last frame.
    struct Keeping: Renderer {
        static let summary = "Keeps the last frame"
        private static let last = Mutex<VideoFrame?>(nil)

        func render(_ media: RenderStream<VideoFrame>) async throws {
            for await frame in media { Self.last.withLock { $0 = frame } }
        }
    }

    /// It waits for more after the end.
    struct Endless: Renderer {
        static let summary = "Returns only when it is cancelled"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            for await _ in media {}
            try await Task.sleep(for: .seconds(3600))
        }
    }

    /// It needs 150 ms to close its screen.
    struct Lingering: Renderer {
        static let summary = "Returns late"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            var count = 0
            defer { if count > 1 { block(seconds: 0.15) } }
            for await _ in media { count += 1 }
        }
    }

    /// It opens its screen for 150 ms and ignores cancellation meanwhile.
    struct SlowStarter: Renderer {
        static let summary = "Cannot be stopped while it starts"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            block(seconds: 0.15)
            for await _ in media {}
        }
    }

    /// It continues without the screen that it needs.
    struct Hiding: Rehearsed, Renderer {
        static let summary = "Hides that its screen is missing"
        @Setting("Which screen") var screen = "first"

        static var rehearsal: Rehearsal { Rehearsal(failing: [["screen": "second"]]) }

        func render(_ media: RenderStream<VideoFrame>) async throws {
            for await frame in media where screen == "first" { _ = frame.barCode }
        }
    }

    /// It accepts zero as the number of frames, and its error has no message.
    struct Overreaching: Renderer {
        static let summary = "Allows settings that it cannot use"
        @Setting("Show one frame of so many", in: 0...60) var every = 1

        func render(_ media: RenderStream<VideoFrame>) async throws {
            if every == 0 { throw Broken() }
            for await _ in media {}
        }
    }

    /// It reads its setting for each frame, and handles only the first value.
    struct Startled: Renderer {
        static let summary = "Fails when a setting changes"
        @Setting("How bright", in: 16...235, isChangeable: true) var shade = 100

        func render(_ media: RenderStream<VideoFrame>) async throws {
            let first = shade
            for await _ in media where shade != first { throw Broken() }
        }
    }

    /// It never closes its file descriptor.
    struct Leaking: Renderer {
        static let summary = "Leaves a file descriptor behind"

        func render(_ media: RenderStream<VideoFrame>) async throws {
            _ = open("/dev/null", O_RDONLY | O_CLOEXEC)
            for await _ in media {}
        }
    }

    /// It continues without its screen.
    struct Ghost: Rehearsed, Renderer {
        static let summary = "Reports nothing when its screen is lost"
        private static let isThere = Mutex(true)

        static var rehearsal: Rehearsal {
            Rehearsal(
                vanish: { isThere.withLock { $0 = false } }, restore: { isThere.withLock { $0 = true } })
        }

        func render(_ media: RenderStream<VideoFrame>) async throws {
            for await frame in media where Self.isThere.withLock({ $0 }) { _ = frame.barCode }
        }
    }

    /// Its error for a missing screen has two words.
    struct Terse: Rehearsed, Renderer {
        static let summary = "Reports little when it fails"
        @Setting("Which screen") var screen = "first"

        static var rehearsal: Rehearsal { Rehearsal(failing: [["screen": "second"]]) }

        func render(_ media: RenderStream<VideoFrame>) async throws {
            if screen != "first" { throw MediaError(code: "broken.screen", message: "Open failed") }
            for await _ in media {}
        }
    }
}
