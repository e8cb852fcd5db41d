import FrameSocket
import GStreamerKit
import MediaGraph

/// The settings and limits that nodes with frames of other processes share.
enum FedSource {
    static let settings =
        [
            SettingContract(
                "away", Camera.Away.settingDomain, default: "freeze",
                "Output while no frames come: the last frame, or a grey slate; end ends the node with an error")
        ] + Slate.settings

    /// The limits of a device that delivers this format, `timeout` seconds apart at most.
    static func limits(_ format: FrameFormat, timeout: Double) -> SourceSupervisor.Limits {
        var limits = SourceSupervisor.Limits()
        // A busy machine delays other processes.
        limits.quiet = 0.5
        // Programs take a while to start.
        limits.firstStandIn = min(4, timeout)
        // A stand-in is a keyframe, and after it, the stream goes on with the next one.
        if Encoding.named(format.encoding.name)?.repeater != nil { (limits.quiet, limits.fill) = (1, 1) }
        limits.longestPaced = timeout
        limits = limits.paced(format.framesPerSecond)
        limits.quiet = min(limits.quiet, timeout)
        (limits.silent, limits.pause, limits.firstFrame) = (timeout, timeout, timeout)
        limits.longestBackoff = 30
        limits.chance = .random(in: 0...1)
        return limits
    }
}

extension MediaError {
    init(_ error: FrameSocketError) { self.init(code: error.code, message: error.message) }
}
