public import MediaGraph

extension BrokenCapturers {
    /// It says of none of its pictures that it is a keyframe, as every JPEG is: all of them are dropped.
    public struct Unmarked: Capturer {
        public static let summary = "Marks no keyframes"
        /// A JPEG file of 64x48 that ends behind its headers.
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

    /// It joins a stream that runs already, and waits for no keyframe.
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

    /// It has one keyframe, at the beginning: what drops a picture once gets nothing more.
    public struct Deaf: Capturer {
        public static let summary = "Hears no request for a keyframe"

        public init() {}

        public func format() -> EncodedPictureFormat {
            EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
        }

        public func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
            var isFirst = true
            while true {
                let moment = try await output.nextMoment()
                // takeKeyframeRequest() was to be asked.
                let picture = isFirst ? keyframe(width: 64, height: 48) : difference
                try output.send(picture, at: moment, isKeyframe: isFirst)
                isFirst = false
            }
        }
    }
}
