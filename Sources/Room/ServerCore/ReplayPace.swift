internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// Limits how often the consumers of one client begin with a replay, which sends up to 512 KiB faster than any live
/// stream. On the loop only.
final class ReplayPace {
    /// As many at once as a client has video receivers.
    static let burst = 20

    private let loop: Loop
    private var pace = Pace(burst: burst, interval: .milliseconds(500))

    init(loop: Loop) { self.loop = loop }

    /// The replay with which a consumer begins now. Nil if the consumer has to wait for a keyframe, which is requested.
    func replay(of layer: StreamLayer) -> Replay? {
        guard pace.delay(now: loop.now) == nil else {
            layer.requestKeyframe()
            return nil
        }
        let replay = layer.replay()
        if replay != nil { pace.count(now: loop.now) }
        return replay
    }
}
