public import MediaAuthoring

extension BrokenCapturers {
    /// It does not mark its frames as keyframes, which all JPEGs are, so all of them are dropped.
    public struct Unmarked: Capturer {
        public static let summary = "Marks no keyframes"
        /// A JPEG file of 64x48 that ends after its headers.
        private static let picture: [UInt8] = [
            0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 48, 0, 64, 1, 1, 0x11, 0, 0xff, 0xd9,
        ]

        public init() {}

        public func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.mjpeg, width: 64, height: 48, framesPerSecond: 30)
        }

        public func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                try output.send(Self.picture, at: moment, isKeyframe: false)
            }
        }
    }

    /// It joins a running stream without waiting for a keyframe.
    public struct Headless: Capturer {
        public static let summary = "Begins in the middle of a stream"

        public init() {}

        public func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        public func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            while true {
                let moment = try await output.nextMoment()
                try output.send(difference, at: moment, isKeyframe: false)
            }
        }
    }

    /// It has one keyframe, at the beginning. A consumer that drops a frame receives nothing more.
    public struct Deaf: Capturer {
        public static let summary = "Ignores keyframe requests"

        public init() {}

        public func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        public func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
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
