import MediaAuthoring
import MediaTesting
import Synchronization

extension BrokenCapturers {
    /// Its frames are smaller than stated.
    struct Misstated: Capturer {
        static let summary = "States another size than it sends"

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 640, height: 480, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                // The size of the device, not of the request.
                try output.send(keyframe(width: 320, height: 240), at: moment, isKeyframe: true)
            }
        }
    }

    /// It does not draw the lower half of its frames.
    struct HalfDrawn: Capturer {
        static let summary = "Draws half of its frames"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true { try await output.draw { paint(&$0, 60, rows: 0.5) } }
        }
    }

    /// It stamps every tenth frame before the previous one.
    struct Backwards: Capturer {
        static let summary = "Sends times that go back"

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            var count = 0
            while true {
                var moment = try await output.nextMoment()
                count += 1
                if count.isMultiple(of: 10) { moment.nanoseconds -= 50_000_000 }
                try output.send(keyframe(width: 64, height: 48), at: moment, isKeyframe: true)
            }
        }
    }

    /// It counts periods of a clock that is slow by two parts per thousand.
    struct Drifting: Capturer {
        static let summary = "Sends times of another clock"

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            let start = try await output.nextMoment()
            var moment = start
            while true {
                let elapsed = Double(moment.nanoseconds - start.nanoseconds) * 0.998
                let time = MediaTime(nanoseconds: start.nanoseconds + UInt64(elapsed))
                try output.send(keyframe(width: 64, height: 48), at: time, isKeyframe: true)
                moment = try await output.nextMoment()
            }
        }
    }

    /// It sends every frame in half the stated time.
    struct Rushed: Capturer {
        static let summary = "Sends more frames than it states"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            while true {
                try output.send { paint(&$0, 60) }
                try await output.wait(seconds: 0.016)
            }
        }
    }

    /// It offers a frame until it is accepted, and falls behind more and more.
    struct Clinging: Capturer {
        static let summary = "Waits for a slow consumer"

        init() {}

        func format() -> PictureFormat { BrokenCapturers.format }

        func capture(into output: CaptureOutput<PictureFormat>) async throws {
            var time = output.now
            while true {
                while try !output.send(at: time, { paint(&$0, 60) }) { try await output.wait(seconds: 0.015) }
                time.nanoseconds += 33_333_333
                try await output.wait(until: time)
            }
        }
    }

    /// It begins to send frames of another size without notice.
    struct Unannounced: Capturer {
        static let summary = "Changes its format without notice"
        @Setting("Width of the frames", in: 64...128, unit: "pixels", isChangeable: true) var width = 64

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: width, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                // change(to:) has to be called first.
                try output.send(keyframe(width: width, height: 48), at: moment, isKeyframe: true)
            }
        }
    }
}
