import GStreamerKit
import MediaGraph
import Synchronization

/// Notices that a sound server has moved the stream of an element to another device, because its own one is gone. Nobody asked
/// for that one, which may be the microphone of another room.
final class SoundStream: Sendable {
    private struct State {
        var buffers = 0
        var first: String?
    }

    /// Between two checks, in buffers of about 10 ms.
    private static let interval = 50

    /// Weak, because a probe of the element holds this.
    private let element: WeakBox<Element>
    private let isNamed: Bool
    private let state = Mutex(State())

    /// - Parameter device: the device that was asked for. Nil for the default, which the server may change.
    init(_ element: Element, device: String?) {
        self.element = WeakBox(element)
        isNamed = device != nil && element.has("current-device")
    }

    /// Counts a buffer. Whether the stream was moved.
    func hasMoved() -> Bool {
        guard isNamed else { return false }
        let isDue = state.withLock { state in
            state.buffers += 1
            return state.buffers % Self.interval == 0
        }
        guard isDue, let device = element.value?.value("current-device")?.text, !device.isEmpty else { return false }
        return state.withLock { state in
            state.first = state.first ?? device
            return state.first != device
        }
    }
}
