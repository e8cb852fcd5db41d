import Cameras
import MediaGraph
import Synchronization

/// The controls of a node as set last, which its camera has whenever it is open. Any thread.
final class CameraControls: Sendable {
    private struct State {
        var values: ControlValues
        /// The names among them that the setting `controls` has given.
        var listed: Set<String>
        /// The open camera.
        var capture: CameraCapture?
        /// The controls of the camera that was open last.
        var known: (camera: String, controls: [DeviceControl])?
    }

    private let state: Mutex<State>

    /// - Parameter listed: those of the setting `controls`.
    init(_ values: ControlValues, listed: ControlValues = ControlValues()) {
        state = Mutex(State(values: values.merging(listed), listed: Set(listed.values.map(\.name))))
    }

    /// The controls of a node's settings.
    convenience init(_ instance: NodeInstance) {
        let text = instance.isGiven("controls") ? instance.text("controls") : ""
        self.init(
            (try? ControlValues(of: instance)) ?? ControlValues(), listed: (try? ControlValues(text)) ?? ControlValues()
        )
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
            // Under the lock, so that the camera gets values in the order in which they are kept.
            return (before, state.capture, state.capture?.queue(new))
        }
        do throws(MediaError) {
            try capture?.wait(for: answer)
        } catch {
            state.withLock { $0.values.replace(new, with: before) }
            throw error
        }
        let names = Set(new.values.map(\.name))
        state.withLock { $0.listed = setting == "controls" ? $0.listed.union(names) : $0.listed.subtracting(names) }
    }

    /// Checks controls against those of the open camera, or of the last one. Before the first one, every value passes.
    ///
    /// - Throws: `camera.control`.
    func check(_ setting: String, to value: SettingValue) throws(MediaError) {
        let new = try ControlValues(setting, value)
        if let known = state.withLock({ $0.known }) { try new.check(known.controls, of: known.camera) }
    }

    /// Forgets the controls of a setting, which the camera then has as before, if it is open.
    ///
    /// - Throws: `camera.control`; `camera.silent` if the driver does not respond.
    func reset(_ setting: String) throws(MediaError) {
        let (capture, answer) = state.withLock { state in
            let names = setting == "controls" ? state.listed.sorted() : [setting]
            for name in names { state.values.remove(name) }
            state.listed.subtract(names)
            return (state.capture, state.capture?.queueReset(names))
        }
        try capture?.wait(for: answer)
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
