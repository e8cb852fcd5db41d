package import MediaGraph

/// A camera that was opened for a wish. It gives usable frames with their capture times, and notices of everything else.
///
/// Threads: one thread at a time uses a session. `waker` and the release of frames are for any thread.
// @unchecked: the thread that opens it hands it over to the thread that reads it.
package final class CameraSession: @unchecked Sendable {
    package enum Item: Sendable {
        /// A usable frame, with the time of its capture on the clock of the system.
        case frame(CapturedFrame, Duration)
        case notice(CameraNotice)
        /// `waker` was used.
        case woken
    }

    /// As many as drivers usually make. The graph holds some for a few frame times.
    private static let buffers = 6
    /// The shortest time between two requests because of gaps.
    private static let repairInterval = Duration.seconds(1)
    /// `V4L2_CID_EXPOSURE_AUTO_PRIORITY`: whether the camera may expose for longer than a frame time.
    private static let slowsInTheDark: UInt32 = 0x009a_0903
    /// `V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME`
    static let forcesKeyframe: UInt32 = 0x0099_09e5

    package let place: CameraPlace
    /// The mode that the driver chose, which may differ from the wish in every part.
    package let layout: CaptureLayout
    package let waker: Waker
    private let system: CameraSystem
    private let device: any CaptureDevice
    /// The node that captures, for the messages of others.
    private let owner: String
    /// The modes that serve the wish, the best first.
    private let ranked: [CaptureMode]
    package let controls: [DeviceControl]
    /// The values of controls that were set, by identifier.
    private var settings: [UInt32: Int] = [:]
    /// The values that those had before. Without controls whose driver does not tell them.
    private var originals: [UInt32: Int] = [:]
    private var check: FrameCheck
    private var rate: RateWatch
    private var notices: NoticeQueue
    /// When a keyframe was last requested because of a gap.
    private var repaired: Duration?

    package var counts: FrameCheck.Counts { check.counts }

    /// The state of one session with which the next one of the same node goes on.
    package struct History: Sendable {
        package fileprivate(set) var counts = FrameCheck.Counts()
        fileprivate var notices = NoticeQueue()

        package init() {}
    }

    package var history: History {
        var history = History()
        (history.counts, history.notices) = (check.counts, notices)
        return history
    }

    /// Frames in a second that arrive: at first those of the mode, then as measured. Nil while it is unknown.
    package var pace: Double? { rate.pace }

    /// Opens a camera, sets its controls, and chooses its mode. The presets of a bound name are set first. With `auto`,
    /// cameras without a mode are passed over. A control that the camera refuses becomes a notice.
    ///
    /// - Parameters:
    ///   - identity: as for `CameraSystem.find`.
    ///   - owner: the node that captures, for the messages of others.
    ///   - history: that of an earlier session, which goes on.
    /// - Throws: the errors of `CameraSystem.open`, `CaptureWish.choose` and `CaptureDevice.configure`.
    package init(
        _ name: String, of system: CameraSystem, identity: CameraPlace.Identity? = nil, _ wish: CaptureWish,
        controls values: ControlValues = ControlValues(), owner: String = "", after history: History = History()
    ) throws(MediaError) {
        // Only a choice needs the check: a camera in use refuses by itself.
        let isChoice = try system.isChoice(name)
        let presets = try system.presets(of: name)
        var found: (ranked: [CaptureMode], controls: [DeviceControl], layout: CaptureLayout)?
        let opened = try system.open(name, identity: identity, mayReserve: isChoice) {
            place, device throws(MediaError) in
            device.followSource()
            let offers = try device.formats()
            let mode = try wish.choose(from: offers, of: place.name)
            let controls = try device.controls()
            let layout = try Self.configure(device, mode, at: place, of: system)
            try layout.check(of: place.name)
            try wish.check(layout.mode, of: place.name)
            found = (wish.ranked(offers), controls, layout)
        }
        guard let found else { preconditionFailure("a camera that was opened was prepared") }
        (place, device, self.system, self.owner) = (opened.place, opened.device, system, owner)
        (ranked, controls, layout, waker) = (found.ranked, found.controls, found.layout, opened.device.waker)
        check = FrameCheck(layout, counts: history.counts)
        rate = RateWatch(layout)
        notices = history.notices
        notices.reopen(place.name)
        for value in presets.merging(values).values {
            do throws(MediaError) {
                try set(value)
            } catch {
                notices.add(CameraNotice(.controlRefused, error.message))
            }
        }
    }

    deinit { close() }

    private static func configure(
        _ device: any CaptureDevice, _ mode: CaptureMode, at place: CameraPlace, of system: CameraSystem
    ) throws(MediaError) -> CaptureLayout {
        do throws(MediaError) {
            return try device.configure(mode)
        } catch {
            throw system.owners.explain(error, at: place)
        }
    }

    /// Starts to stream.
    ///
    /// - Throws: the errors of `CaptureDevice.start`. For a bus without room, the message has the modes that fit.
    package func start() throws(MediaError) {
        var conflicts: [String] = []
        if let usb = place.usb {
            let modes = [layout.mode] + ranked.filter { $0 != layout.mode }
            conflicts = system.buses.add(BusUser(place.name, usb, modes), ObjectIdentifier(self))
        }
        do throws(MediaError) {
            try device.start(buffers: Self.buffers)
        } catch {
            system.buses.remove(ObjectIdentifier(self))
            guard error.code == MediaError.Code.cameraBandwidth, !conflicts.isEmpty else {
                throw system.owners.explain(error, at: place)
            }
            throw MediaError(
                code: error.code, message: ([error.message] + conflicts).joined(separator: " "))
        }
        if !owner.isEmpty { system.owners.add(owner, at: place.path, ObjectIdentifier(self)) }
        for conflict in conflicts { notices.add(CameraNotice(.bus, conflict)) }
    }

    /// The next frame or notice. Blocks up to `timeout`.
    ///
    /// - Returns: nil after the timeout.
    /// - Throws: `camera.lost`, `camera.failed`; `camera.changed` if the source has another size now. Only `close` is
    ///   useful then.
    package func next(within timeout: Duration) throws(MediaError) -> Item? {
        let end = system.clock.now + timeout
        while true {
            if let notice = notices.next(system.clock.now) { return .notice(notice) }
            guard let item = try device.next(within: max(end - system.clock.now, .zero)) else { return nil }
            switch item {
            case .woken: return .woken
            case .controlChanged(let identifier, let value): changed(identifier, value)
            case .sourceChanged:
                throw MediaError(
                    code: MediaError.Code.cameraChanged,
                    message:
                        "The source of the camera \(place.name) has another size or timing than \(layout.mode.size) now. It "
                        + "is opened again.")
            case .frame(let frame): if let time = judge(frame) { return .frame(frame, time) }
            }
        }
    }

    /// Sets controls. If one is refused, those before it get their former values again.
    ///
    /// - Throws: `camera.control`, `camera.lost`.
    package func set(_ values: ControlValues) throws(MediaError) {
        try values.check(controls, of: place.name)
        var changed: [(control: DeviceControl, former: Int?, setting: Int?)] = []
        do throws(MediaError) {
            for value in values.values {
                let control = try value.control(among: controls, of: place.name)
                changed.append((control, formerValue(of: control), settings[control.identifier]))
                try set(value)
            }
        } catch {
            // The refused one has not changed.
            for (control, former, setting) in changed.dropLast().reversed() {
                if let former { try? device.set(control, to: former) }
                settings[control.identifier] = setting
            }
            throw error
        }
    }

    /// Gives controls the values that they had before they were set first.
    ///
    /// - Throws: `camera.control`, `camera.lost`.
    package func reset(_ names: [String]) throws(MediaError) {
        for control in controls where names.contains(control.name) {
            settings[control.identifier] = nil
            if let value = originals.removeValue(forKey: control.identifier) { try device.set(control, to: value) }
        }
    }

    private func set(_ value: ControlValues.Value) throws(MediaError) {
        let control = try value.control(among: controls, of: place.name)
        let former = formerValue(of: control)
        try device.set(control, to: value.value)
        if settings[control.identifier] == nil { originals[control.identifier] = former }
        settings[control.identifier] = value.value
    }

    /// Nil for a control that has no value to return to.
    private func formerValue(of control: DeviceControl) -> Int? {
        control.kind == .button ? nil : try? device.value(of: control)
    }

    /// Whether `requestKeyframe` has an effect. Any thread.
    package var takesKeyframeRequests: Bool { keyframeControl != nil }

    private var keyframeControl: DeviceControl? { controls.first { $0.identifier == Self.forcesKeyframe } }

    /// Asks a camera that encodes for a keyframe. Does nothing if it takes no requests.
    package func requestKeyframe() {
        guard let keyframeControl else { return }
        do throws(MediaError) {
            try device.set(keyframeControl, to: 1)
        } catch {
            notices.add(CameraNotice(.controlRefused, error.message))
        }
    }

    /// Stops and closes the camera. Frames that are still held stay readable.
    package func close() {
        system.buses.remove(ObjectIdentifier(self))
        system.owners.remove(ObjectIdentifier(self))
        device.close()
    }

    // MARK: Frames

    /// The time of a usable frame.
    private func judge(_ frame: CapturedFrame) -> Duration? {
        let before = check.counts
        let verdict = check.judge(frame, at: system.clock.now)
        if (check.counts.lost, check.counts.damaged) != (before.lost, before.damaged) { repair() }
        if check.counts.wrongTimes > before.wrongTimes {
            notices.add(
                CameraNotice(
                    .wrongTimestamps,
                    "The camera \(place.name) gives wrong timestamps: they jump or run back (\(check.counts.wrongTimes) so "
                        + "far). The frames' arrival counts instead."))
        }
        guard case .usable(let time) = verdict else {
            notices.add(
                CameraNotice(
                    .damagedFrames,
                    "The camera \(place.name) delivers damaged frames, which are dropped (\(check.counts.damaged) so far). "
                        + "Check its cable and hub."))
            return nil
        }
        switch rate.captured(at: time, number: frame.sequence) {
        case .fell(let actual): notices.add(fell(to: actual))
        case .returned:
            notices.add(CameraNotice(.rateReturned, "The camera \(place.name) delivers its full rate again."))
        case nil: break
        }
        return time
    }

    /// Later frames of H.264 depend on the missing one, and receivers cannot notice that it is missing.
    private func repair() {
        let now = system.clock.now
        guard layout.mode.format.isH264, repaired.map({ now - $0 >= Self.repairInterval }) ?? true else { return }
        repaired = now
        requestKeyframe()
    }

    private func fell(to rate: Double) -> CameraNotice {
        let requested = layout.mode.rate?.short ?? "all"
        let actual = FrameRate("\((rate * 10).rounded() / 10)")?.short ?? "\(rate)"
        let prevention = controls.first { $0.identifier == Self.slowsInTheDark }
        let isPreventable = prevention.map { (try? device.value(of: $0)) == 1 } ?? false
        let advice =
            if let prevention, isPreventable {
                "It exposes for longer in the dark: set controls: \(prevention.name)=0 to keep the rate."
            } else {
                "Give it more light, or set a shorter exposure."
            }
        return CameraNotice(
            .rateFell, "The camera \(place.name) delivers \(actual) of \(requested) frames/s. \(advice)")
    }

    private func changed(_ identifier: UInt32, _ value: Int?) {
        guard let value, let set = settings[identifier], set != value,
            let control = controls.first(where: { $0.identifier == identifier })
        else { return }
        notices.add(
            CameraNotice(
                .controlChanged,
                "The driver of the camera \(place.name), or another program, changed \(control.name) from \(set) to "
                    + "\(value)."))
    }
}
