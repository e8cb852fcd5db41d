/// Events that wait for the owner. A newer event replaces an older one of the same kind and stream, which bounds the
/// queue to streams times kinds.
struct EventQueue {
    private var waiting: [PeerSessionEvent] = []

    mutating func push(_ event: PeerSessionEvent) {
        if let index = waiting.firstIndex(where: { $0.isReplaced(by: event) }) {
            waiting[index] = event
        } else {
            waiting.append(event)
        }
    }

    var isEmpty: Bool { waiting.isEmpty }

    mutating func pop() -> PeerSessionEvent? { waiting.isEmpty ? nil : waiting.removeFirst() }
}

extension PeerSessionEvent {
    fileprivate func isReplaced(by newer: PeerSessionEvent) -> Bool {
        switch (self, newer) {
        case (.keyframeRequested(let old), .keyframeRequested(let new)): old == new
        case (.refused(let old, _), .refused(let new, _)): old == new
        case (.lossBeyondRepair(let old), .lossBeyondRepair(let new)): old == new
        case (.senderReport(let old, _), .senderReport(let new, _)): old == new
        case (.bye(let old), .bye(let new)): old == new
        case (.unauthenticated, .unauthenticated), (.roundTrip, .roundTrip), (.sendingRate, .sendingRate),
            (.silent, .silent), (.heard, .heard):
            true
        default: false
        }
    }
}
