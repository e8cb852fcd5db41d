import MediaAuthoring
import MediaTesting

extension BrokenCapturers {
    /// It does not mark its frames as keyframes, which all JPEGs are, so all of them are dropped.
    struct Unmarked: Capturer {
        static let summary = "Marks no keyframes"
        /// A JPEG file of 64x48 that ends after its headers.
        private static let picture: [UInt8] = [
            0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0, 0xff, 0xd9,
        ]

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.mjpeg, width: 64, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                try output.send(Self.picture, at: moment, isKeyframe: false)
            }
        }
    }

    /// It joins a running stream without waiting for a keyframe.
    struct Headless: Capturer {
        static let summary = "Begins in the middle of a stream"

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                try output.send(difference, at: moment, isKeyframe: false)
            }
        }
    }

    /// It has one keyframe, at the beginning. A consumer that drops a frame receives nothing more.
    struct Deaf: Capturer {
        static let summary = "Ignores keyframe requests"

        init() {}

        func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            var isFirst = true
            while true {
                let moment = try await output.nextMoment()
                // It has to call takeKeyframeRequest().
                let picture = isFirst ? keyframe(width: 64, height: 48) : difference
                try output.send(picture, at: moment, isKeyframe: isFirst)
                isFirst = false
            }
        }
    }
}
