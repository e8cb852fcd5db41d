/// A behaviour of a camera that people should know of, while it goes on.
package struct CameraNotice: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case damagedFrames
        case wrongTimestamps
        case rateFell
        case rateReturned
        /// The driver, or another program, changed a control that was set.
        case controlChanged
        case controlRefused
        case bus
    }

    package let kind: Kind
    /// One or more sentences.
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

/// Notices that wait to be read. A kind that repeats comes once a minute, with the latest message.
struct NoticeQueue {
    private static let interval = Duration.seconds(60)

    private var waiting: [CameraNotice] = []
    private var given: [CameraNotice.Kind: Duration] = [:]

    mutating func add(_ notice: CameraNotice) {
        waiting.removeAll { $0.kind == notice.kind && notice.kind != .controlRefused && notice.kind != .bus }
        waiting.append(notice)
    }

    mutating func next(_ now: Duration) -> CameraNotice? {
        guard !waiting.isEmpty else { return nil }
        let place = waiting.firstIndex { notice in
            switch notice.kind {
            case .damagedFrames, .wrongTimestamps, .controlChanged, .rateFell, .rateReturned:
                given[notice.kind].map { now >= $0 + Self.interval } ?? true
            case .controlRefused, .bus: true
            }
        }
        guard let place else { return nil }
        let notice = waiting.remove(at: place)
        given[notice.kind] = now
        return notice
    }
}
