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

/// Notices that wait to be read. A kind that repeats comes once a minute, with the latest message; refused controls and
/// buses once a minute for each message.
struct NoticeQueue: Sendable {
    private static let interval = Duration.seconds(60)

    private struct Subject: Sendable, Hashable {
        let kind: CameraNotice.Kind
        let camera: String
        /// Nil if the latest message of the kind counts.
        let message: String?
    }

    private var camera = ""
    private var waiting: [CameraNotice] = []
    private var given: [Subject: Duration] = [:]

    /// Continues with another opening, perhaps of another camera. Waiting notices are dropped.
    mutating func reopen(_ camera: String) {
        (self.camera, waiting) = (camera, [])
    }

    mutating func add(_ notice: CameraNotice) {
        let subject = subject(of: notice)
        waiting = waiting.filter { self.subject(of: $0) != subject } + [notice]
    }

    private func subject(of notice: CameraNotice) -> Subject {
        switch notice.kind {
        case .damagedFrames, .wrongTimestamps, .controlChanged, .rateFell, .rateReturned:
            Subject(kind: notice.kind, camera: camera, message: nil)
        case .controlRefused, .bus: Subject(kind: notice.kind, camera: camera, message: notice.message)
        }
    }

    mutating func next(_ now: Duration) -> CameraNotice? {
        guard !waiting.isEmpty else { return nil }
        let place = waiting.firstIndex { given[subject(of: $0)].map { now >= $0 + Self.interval } ?? true }
        guard let place else { return nil }
        let notice = waiting.remove(at: place)
        given = given.filter { now < $0.value + Self.interval }
        given[subject(of: notice)] = now
        return notice
    }
}
