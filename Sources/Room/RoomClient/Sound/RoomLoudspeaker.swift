internal import ClientCore
internal import MediaNodes
internal import RoomProtocol

/// The loudspeaker as the application of one room hears of it: each change once, from the first audio of the room on. On the loop
/// only.
final class RoomLoudspeaker {
    /// Whether the application was told that it is away.
    private(set) var isAway = false
    private let report: (LoudspeakerEvent) -> Void

    init(report: @escaping (LoudspeakerEvent) -> Void) { self.report = report }

    /// An event of the device.
    func handle(_ event: MediaEvent) {
        switch event {
        case .deviceWaiting(_, let cause): lack(.waiting(RoomError(cause)))
        case .deviceLost(_, let cause): lack(.lost(RoomError(cause)))
        case .deviceReturned: plays()
        default: break
        }
    }

    private func lack(_ event: LoudspeakerEvent) {
        guard !isAway else { return }
        isAway = true
        report(event)
    }

    /// A loudspeaker that was there from the beginning has no event.
    func plays() {
        guard isAway else { return }
        isAway = false
        report(.returned)
    }
}
