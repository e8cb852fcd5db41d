import Cameras
import MediaGraph
import Synchronization

/// The controls of a node as set last, which its camera has whenever it is open. Any thread.
final class CameraControls: Sendable {
    private struct State {
        var values: ControlValues
        /// The controls that each setting has set.
        var names: [String: [String]] = [:]
        /// The open camera.
        var capture: CameraCapture?
        /// The controls of the camera that was open last.
        var known: (camera: String, controls: [DeviceControl])?

        /// Gives an open camera the values of these controls that are kept, or else the driver's default ones.
        func setBack(_ names: [String]) {
            var former = ControlValues()
            for name in names {
                let control = known?.controls.first { $0.name == name }
                guard let control, control.kind != .button, !control.isReadOnly else { continue }
                former.set(name, to: values.values.first { $0.name == name }?.value ?? control.standard)
            }
            if !former.values.isEmpty { _ = capture?.queue(former) }
        }
    }

    private let state: Mutex<State>

    init(_ values: ControlValues) { state = Mutex(State(values: values)) }

    /// The controls of a node's settings.
    convenience init(_ instance: NodeInstance) {
        self.init((try? ControlValues(of: instance)) ?? ControlValues())
    }

    /// The values for a camera that is opened now.
    var values: ControlValues { state.withLock { $0.values } }

    /// A camera has opened with values of before, and has not started. It gets those that were set meanwhile.
    func attach(_ capture: CameraCapture, openedWith values: ControlValues) {
        state.withLock { state in
            state.capture = capture
            state.known = (capture.cameraName, capture.controls)
            if state.values != values { _ = capture.queue(state.values) }
        }
    }

    func detach() {
        let former = state.withLock { state in
            defer { state.capture = nil }
            return state.capture
        }
        withExtendedLifetime(former) {}
    }

    /// Changes controls, now if the camera is open, and whenever it opens. A refused value is forgotten. While the camera
    /// is away, the controls of the last opening decide; before the first one, every value is kept.
    ///
    /// - Throws: `camera.control`; `camera.silent` if the driver does not respond.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) {
        let new = try ControlValues(setting, value)
        let known = state.withLock { $0.capture == nil ? $0.known : nil }
        if let known { try new.check(known.controls, of: known.camera) }
        let (before, capture, answer) = state.withLock { state in
            let before = state.values
            state.values.merge(new)
            state.names[setting] = new.values.map(\.name)
            // Under the lock, so that the camera gets values in the order in which they are kept.
            return (before, state.capture, state.capture?.queue(new))
        }
        do throws(MediaError) {
            try capture?.wait(for: answer)
        } catch {
            // The camera may have taken some of the values.
            state.withLock { state in
                state.values.replace(new, with: before)
                state.setBack(new.values.map(\.name))
            }
            throw error
        }
    }

    /// Forgets the values of a setting. An open camera gets the driver's default values again. Does not block.
    func reset(_ setting: String) {
        state.withLock { state in
            let names = state.names.removeValue(forKey: setting) ?? [setting]
            for name in names { state.values.remove(name) }
            state.setBack(names)
        }
    }
}

extension ControlValues {
    /// Undoes `merge`, unless another value was set since.
    fileprivate mutating func replace(_ new: ControlValues, with before: ControlValues) {
        for value in new.values where values.contains(value) {
            remove(value.name)
            if let former = before.values.first(where: { $0.name == value.name }) {
                set(former.name, to: former.value)
            }
        }
    }
}
