internal import ClientCore
internal import MediaNodes
internal import RoomProtocol

/// The loudspeaker of a room. Each audio stream that is heard opens it for itself, and the application gets one event. On the loop
/// only.
final class RoomLoudspeaker {
    /// The streams that do without it.
    private var streams: Set<Int> = []
    /// Whether the application was told that it is away.
    private(set) var isAway = false
    private let report: (LoudspeakerEvent) -> Void

    init(report: @escaping (LoudspeakerEvent) -> Void) { self.report = report }

    /// An event of a stream's device.
    func handle(_ event: MediaEvent, of stream: Int) {
        switch event {
        case .deviceWaiting(_, let cause): lack(.waiting(RoomError(cause)), stream)
        case .deviceLost(_, let cause): lack(.lost(RoomError(cause)), stream)
        case .deviceReturned: play(stream)
        default: break
        }
    }

    private func lack(_ event: LoudspeakerEvent, _ stream: Int) {
        streams.insert(stream)
        guard !isAway else { return }
        isAway = true
        report(event)
    }

    /// A stream plays. One that begins while the loudspeaker is there has no event.
    func play(_ stream: Int) {
        streams.remove(stream)
        guard isAway, streams.isEmpty else { return }
        isAway = false
        report(.returned)
    }

    /// A stream has ended, which does not say that the loudspeaker is back.
    func end(_ stream: Int) { streams.remove(stream) }
}
