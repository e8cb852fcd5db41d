import GStreamerKit
import MediaGraph

/// The planner's view of a file whose video would pass undecoded. Asked only then, because it reads the first seconds.
protocol FileEnvironment: PlanEnvironment {
    /// The H.264 of a file. Nil if it cannot be read. Blocks for some milliseconds, 2 s at most.
    func encodedVideo(of path: String) -> EncodedFileVideo?
}

extension SystemEnvironment: FileEnvironment {
    fileprivate static let glanceLimit = 2.0

    func encodedVideo(of path: String) -> EncodedFileVideo? {
        EncodedVideoGlance.look(into: path, seconds: Self.glanceLimit)
    }
}

/// The choice of the formats in which a file's streams leave the node: decoded, or as they are in the file.
enum FileStreams {
    /// A subscriber that joins waits for the file's next keyframe, because nobody can request one.
    private static let longestWait = 4.0

    /// The format of the video. Notes the choice.
    static func video(_ request: NodeRequest, _ info: MediaFileInfo, _ plan: inout NodePlan) -> MediaFormat {
        let raw = MediaFormat.rawVideo(
            width: info.width, height: info.height,
            framesPerSecond: info.framesPerSecond > 0 ? info.framesPerSecond : nil)
        guard let encoding = info.videoEncoding, request.text("format") == "auto" else { return raw }
        var own = raw
        (own.kind, own.encoding) = (.encodedVideo, encoding)
        let decoded = FormatAlternative("I420 from \(encoding)", raw, work: Work(decodes: 1))
        let choice = request.choice("video", among: [decoded, FormatAlternative("its own \(encoding)", own)])
        guard choice.format.codec != nil else {
            plan.note(choice)
            return raw
        }
        // Only a stream that would pass is looked at.
        let video = (request.environment as? any FileEnvironment)?.encodedVideo(of: info.path)
        if let obstacle = obstacle(to: video) {
            plan.passedOver.append("its own \(encoding): \(obstacle)")
            return raw
        }
        plan.note(choice)
        if let video {
            plan.notes.append(
                "the video passes undecoded, with a keyframe at least each \(max(video.keyframeInterval, 0.1).short) s; none can "
                    + "be requested")
        }
        return own
    }

    /// Why the video does not pass. Nil if it does. The same for all readers, so that another reader changes nothing.
    private static func obstacle(to video: EncodedFileVideo?) -> String? {
        guard let video, let parameters = video.parameters else {
            return "the file gave no keyframe that tells its profile"
        }
        // Others, such as AVI and MPEG-TS, give only some frames a time, or do not mark keyframes.
        if video.container == nil {
            return "only MP4, MOV and Matroska state the time and kind of each frame"
        }
        if !video.isRead {
            return "its first seconds took longer to read than \(SystemEnvironment.glanceLimit.short) s"
        }
        if !video.hasAllTimes { return "some of its frames have no time, or are cut off by an edit list" }
        if !video.beginsWithKeyframe { return "it does not begin with a keyframe" }
        // Neither browsers nor the timestamps of packets and MP4 are ready for frames in another order.
        if let obstacle = parameters.obstacleForPeers { return obstacle }
        if video.keyframeInterval > longestWait {
            return
                "its keyframes are up to \(video.keyframeInterval.short) s apart, and a viewer that joins would wait for the next"
        }
        return nil
    }

    /// The format of the audio. Notes the choice.
    static func audio(_ request: NodeRequest, _ info: MediaFileInfo, _ plan: inout NodePlan) -> MediaFormat {
        guard let encoding = info.audioEncoding, request.text("format") == "auto" else { return .rawAudio }
        let decoded = FormatAlternative("audio decoded from \(encoding)", .rawAudio, work: Work(decodes: 1))
        let own = FormatAlternative(
            "its own \(encoding)", MediaFormat(.encodedAudio, encoding, sampleRate: 48_000, channels: 2))
        let choice = request.choice("audio", among: [decoded, own])
        plan.note(choice)
        return choice.format
    }
}
