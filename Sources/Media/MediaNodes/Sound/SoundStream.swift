import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Notices that a sound server has moved the stream of an element to a device that is not accepted, because its own one is gone or
/// the default has changed. Nobody asked for that device, which may be the microphone of another room.
final class SoundStream: Sendable {
    private struct State {
        var buffers = 0
        /// A server that hangs does not answer.
        var isAsking = false
    }

    /// Between two checks, in buffers of about 10 ms.
    private static let interval = 50

    /// Weak, because a probe of the element holds this.
    private let element: WeakBox<Element>
    /// Nil if the server may choose any device.
    private let accepts: (@Sendable (String) -> Bool)?
    private let moved: @Sendable () -> Void
    private let state = Mutex(State())
    /// The server's answer takes a round trip, for which no audio waits.
    private let questions = DispatchQueue(label: "media.sound.stream")

    /// - Parameters:
    ///   - device: the device that was asked for. Nil for the default, which the server may change.
    ///   - accepts: whether the default may be a device.
    ///   - moved: called on a queue of its own.
    init(
        _ element: Element, device: String?, accepts: (@Sendable (String) -> Bool)? = nil,
        moved: @escaping @Sendable () -> Void
    ) {
        self.element = WeakBox(element)
        self.moved = moved
        // An alias, such as @DEFAULT_SINK@, is the server's choice.
        let chosen = device.flatMap { $0.hasPrefix("@") ? nil : $0 }
        self.accepts = element.has("current-device") ? chosen.map { chosen in { $0 == chosen } } ?? accepts : nil
    }

    /// Counts a buffer. Does not block.
    func count() {
        guard let accepts else { return }
        let isDue = state.withLock { state in
            state.buffers += 1
            guard state.buffers % Self.interval == 0, !state.isAsking else { return false }
            state.isAsking = true
            return true
        }
        guard isDue else { return }
        questions.async { [weak self] in
            guard let self else { return }
            let current = element.value?.value("current-device")?.text ?? ""
            state.withLock { $0.isAsking = false }
            if !current.isEmpty, !accepts(current) { moved() }
        }
    }
}
