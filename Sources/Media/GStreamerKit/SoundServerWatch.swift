internal import CPulse
internal import Dispatch
internal import MediaGraph

/// Follows the sound server of this user: PulseAudio, or PipeWire as its replacement. GStreamer's list of devices reports neither
/// a new default device nor the end of the server.
package final class SoundServerWatch: Sendable {
    private let connection: SoundServerConnection

    /// Follows the server until the value is released.
    ///
    /// - Parameter changed: gets the devices at first and after each change, without the monitors of loudspeakers. Nil if the
    ///   server has ended. Called on a queue of the watch.
    package init(changed: @escaping @Sendable (DeviceProbe.SoundDevices?) -> Void) {
        connection = SoundServerConnection(changed)
        connection.queue.async { [connection] in connection.open() }
    }

    deinit {
        // The loop's thread ends there, and the connection with it.
        connection.queue.async { [connection] in connection.close() }
    }
}

/// A connection to the sound server, which begins again when the server has ended.
// @unchecked: the loop's lock guards the state. The loop's thread holds it in all callbacks.
private final class SoundServerConnection: @unchecked Sendable {
    /// Between two attempts to connect, in seconds. One costs a call of the system.
    private static let pause = 1.0

    let queue = DispatchQueue(label: "media.sound.server")
    private let changed: @Sendable (DeviceProbe.SoundDevices?) -> Void
    /// Nil before it is opened, and after it was closed.
    private var loop: OpaquePointer?
    private var context: OpaquePointer?
    /// The answers to the questions that are being asked.
    private var found = DeviceProbe.SoundDevices()
    private var (defaultSource, defaultSink) = ("", "")
    private var isAsking = false
    private var mustAskAgain = false
    /// The devices that were reported last. Nil while there is no server.
    private var reported: DeviceProbe.SoundDevices?

    init(_ changed: @escaping @Sendable (DeviceProbe.SoundDevices?) -> Void) { self.changed = changed }

    /// On the queue.
    func open() {
        guard let made = pa_threaded_mainloop_new() else { return }
        loop = made
        guard pa_threaded_mainloop_start(made) == 0 else { return close() }
        connect()
    }

    /// On the queue. Nothing is called afterwards.
    func close() {
        guard let loop else { return }
        pa_threaded_mainloop_lock(loop)
        dropContext()
        self.loop = nil
        pa_threaded_mainloop_unlock(loop)
        pa_threaded_mainloop_stop(loop)
        pa_threaded_mainloop_free(loop)
    }

    /// On the queue.
    private func connect() {
        guard let loop else { return }
        pa_threaded_mainloop_lock(loop)
        defer { pa_threaded_mainloop_unlock(loop) }
        guard let made = pa_context_new(pa_threaded_mainloop_get_api(loop), "connectlive") else { return }
        context = made
        pa_context_set_state_callback(made, { _, data in SoundServerConnection.at(data).stateChanged() }, address)
        if pa_context_connect(made, nil, PA_CONTEXT_NOAUTOSPAWN, nil) < 0 { lost() }
    }

    private func dropContext() {
        guard let context else { return }
        self.context = nil
        pa_context_set_state_callback(context, nil, nil)
        pa_context_set_subscribe_callback(context, nil, nil)
        pa_context_disconnect(context)
        pa_context_unref(context)
    }

    // MARK: On the loop's thread, or with its lock

    private func stateChanged() {
        guard let context else { return }
        switch pa_context_get_state(context) {
        case PA_CONTEXT_READY:
            pa_context_set_subscribe_callback(
                context, { _, _, _, data in SoundServerConnection.at(data).ask() }, address)
            // A plug in a jack is a change of the card.
            let kinds = [
                PA_SUBSCRIPTION_MASK_SINK, PA_SUBSCRIPTION_MASK_SOURCE, PA_SUBSCRIPTION_MASK_CARD,
                PA_SUBSCRIPTION_MASK_SERVER,
            ]
            let mask = pa_subscription_mask_t(rawValue: kinds.reduce(0) { $0 | $1.rawValue })
            forget(pa_context_subscribe(context, mask, nil, nil))
            ask()
        case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED: lost()
        default: break
        }
    }

    /// The server has ended, or none responds.
    private func lost() {
        guard context != nil else { return }
        dropContext()
        (isAsking, mustAskAgain) = (false, false)
        report(nil)
        queue.asyncAfter(deadline: .now() + Self.pause) { [weak self] in self?.connect() }
    }

    /// Asks for the default devices and then for all. The server answers in this order.
    private func ask() {
        guard !isAsking, let context else {
            mustAskAgain = true
            return
        }
        (isAsking, mustAskAgain, found) = (true, false, DeviceProbe.SoundDevices())
        forget(
            pa_context_get_server_info(
                context,
                { _, info, data in
                    guard let info = info?.pointee else { return }
                    let connection = SoundServerConnection.at(data)
                    connection.defaultSource = text(info.default_source_name)
                    connection.defaultSink = text(info.default_sink_name)
                }, address))
        forget(
            pa_context_get_source_info_list(
                context,
                { _, info, _, data in
                    guard let info = info?.pointee, info.monitor_of_sink == UInt32.max else { return }
                    let connection = SoundServerConnection.at(data)
                    let name = text(info.name)
                    connection.found.sources.append(
                        .init(
                            name, title: text(info.description), isDefault: name == connection.defaultSource,
                            info.proplist, ports(info)))
                }, address))
        forget(
            pa_context_get_sink_info_list(
                context,
                { _, info, end, data in
                    let connection = SoundServerConnection.at(data)
                    guard end == 0, let info = info?.pointee else { return connection.answered() }
                    let name = text(info.name)
                    connection.found.sinks.append(
                        .init(
                            name, title: text(info.description), isDefault: name == connection.defaultSink,
                            info.proplist, ports(info)))
                }, address))
    }

    private func answered() {
        isAsking = false
        // The list is older than the change.
        if mustAskAgain { return ask() }
        report(found)
    }

    private func report(_ devices: DeviceProbe.SoundDevices?) {
        guard devices != reported else { return }
        reported = devices
        queue.async { [changed] in changed(devices) }
    }

    private func forget(_ operation: OpaquePointer?) {
        if let operation { pa_operation_unref(operation) }
    }

    /// Valid up to `close`, which ends all callbacks.
    private var address: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private static func at(_ address: UnsafeMutableRawPointer?) -> SoundServerConnection {
        guard let address else { preconditionFailure("a callback without its connection") }
        return Unmanaged<SoundServerConnection>.fromOpaque(address).takeUnretainedValue()
    }
}

private func text(_ string: UnsafePointer<CChar>?) -> String { string.map { String(cString: $0) } ?? "" }

private func ports(_ source: pa_source_info) -> [SoundPort] {
    UnsafeBufferPointer(start: source.ports, count: Int(source.n_ports)).compactMap { port in
        port.map {
            SoundPort(
                text($0.pointee.name), type: $0.pointee.type, isActive: $0 == source.active_port,
                availability: $0.pointee.available)
        }
    }
}

private func ports(_ sink: pa_sink_info) -> [SoundPort] {
    UnsafeBufferPointer(start: sink.ports, count: Int(sink.n_ports)).compactMap { port in
        port.map {
            SoundPort(
                text($0.pointee.name), type: $0.pointee.type, isActive: $0 == sink.active_port,
                availability: $0.pointee.available)
        }
    }
}

extension SoundPort {
    fileprivate init(_ name: String, type: UInt32, isActive: Bool, availability: Int32) {
        self.init(
            name, Kind(type: type, name: name), isActive: isActive,
            isUnplugged: UInt32(bitPattern: availability) == PA_PORT_AVAILABLE_NO.rawValue)
    }
}

extension SoundPort.Kind {
    /// The kind that libpulse's type of a port tells, or else its name.
    fileprivate init(type: UInt32, name: String) {
        switch pa_device_port_type_t(rawValue: type) {
        case PA_DEVICE_PORT_TYPE_SPEAKER: self = .speaker
        case PA_DEVICE_PORT_TYPE_HEADPHONES: self = .headphones
        case PA_DEVICE_PORT_TYPE_HEADSET: self = .headset
        case PA_DEVICE_PORT_TYPE_HANDSET, PA_DEVICE_PORT_TYPE_EARPIECE: self = .earpiece
        case PA_DEVICE_PORT_TYPE_LINE: self = .line
        case PA_DEVICE_PORT_TYPE_HDMI, PA_DEVICE_PORT_TYPE_TV: self = .display
        default: self.init(name: name)
        }
    }
}

extension DeviceProbe.SoundDevice {
    fileprivate init(
        _ name: String, title: String, isDefault: Bool, _ properties: OpaquePointer?, _ ports: [SoundPort]
    ) {
        func property(_ key: String) -> String? { pa_proplist_gets(properties, key).map { String(cString: $0) } }
        self.init(
            identifier: name, title: title, isDefault: isDefault,
            product: property("device.product.name") ?? property("alsa.card_name"),
            card: property("alsa.card").flatMap { Int($0) }, serial: property("device.serial"),
            busPath: property("device.bus_path") ?? property("device.bus-path"), ports: ports)
    }
}
