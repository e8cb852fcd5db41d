import MediaAuthoring
import MediaTesting

/// VP8 of 64x48: headers without data.
private enum Picture {
    static let keyframe: [UInt8] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 48, 0]
    static let difference: [UInt8] = [0x11, 0, 0]
    static let format = EncodedPictureFormat(.vp8, width: 64, height: 48, framesPerSecond: 30)
}

/// An encoder that makes a keyframe for the first frame and on request.
struct Answering: Capturer {
    static let summary = "Keyframes on request"

    func format() -> EncodedPictureFormat { Picture.format }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        var isFirst = true
        while true {
            let moment = try await output.nextMoment()
            let isKeyframe = output.takeKeyframeRequest() || isFirst
            try output.send(isKeyframe ? Picture.keyframe : Picture.difference, at: moment, isKeyframe: isKeyframe)
            isFirst = false
        }
    }
}

/// A device that ignores keyframe requests and sends a keyframe each second. The capturer joins it in mid-stream.
struct Periodic: Capturer {
    static let summary = "A keyframe each second"

    func format() -> EncodedPictureFormat { Picture.format }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        var number = 20
        while true {
            let moment = try await output.nextMoment()
            let isKeyframe = number.isMultiple(of: 30)
            try output.send(isKeyframe ? Picture.keyframe : Picture.difference, at: moment, isKeyframe: isKeyframe)
            number += 1
        }
    }
}

/// Every third frame of H.264 has an IDR slice and is not marked as a keyframe.
struct HalfMarked: Capturer {
    static let summary = "Marks the first keyframe only"

    func format() -> EncodedPictureFormat {
        EncodedPictureFormat(.h264, width: 320, height: 240, framesPerSecond: 30)
    }

    func capture(into output: CaptureOutput<EncodedPictureFormat>) async throws {
        var number = 0
        while true {
            let moment = try await output.nextMoment()
            let picture = number.isMultiple(of: 3) ? Encoded.h264 : [0, 0, 0, 1, 0x41, 0x9a, 0x02]
            try output.send(picture, at: moment, isKeyframe: number == 0 || output.takeKeyframeRequest())
            number += 1
        }
    }
}
