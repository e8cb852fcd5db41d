internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The sound devices and libcamera's cameras of this machine, queried once without monitoring.
package enum DeviceProbe {
    /// libcamera's cameras by name, with the formats that they state without being opened. Empty without its plugin.
    package static func libraryCameras() -> [(name: String, formats: Caps?)] {
        GStreamer.load()
        guard let provider = gst_device_provider_factory_get_by_name("libcameraprovider") else { return [] }
        defer { gst_object_unref(provider) }
        let devices = gst_device_provider_get_devices(provider)
        defer { g_list_free(devices) }
        return items(of: devices).compactMap { item in
            defer { gst_object_unref(item) }
            let device = item.assumingMemoryBound(to: GstDevice.self)
            return takeString(gst_device_get_display_name(device)).map { name in
                (name, gst_device_get_caps(device).map(Caps.init(takingOwnership:)))
            }
        }
    }

    /// A microphone or loudspeaker, as the sound server describes it.
    package struct SoundDevice: Sendable, Equatable {
        package var identifier = ""
        /// The name to show.
        package var title = ""
        package var isDefault = false
        package var product: String?
        /// The number of its ALSA card.
        package var card: Int?
        /// The serial number and udev's path of a device on USB.
        package var serial: String?
        package var busPath: String?
        /// Empty if they are not known.
        package var ports: [SoundPort] = []
    }

    /// The microphones and loudspeakers of a sound server.
    package struct SoundDevices: Sendable, Equatable {
        package var sources: [SoundDevice] = []
        package var sinks: [SoundDevice] = []
    }

    /// Microphones and loudspeakers of PulseAudio, or of PipeWire as its replacement, without the monitors of loudspeakers.
    /// Both empty if there is no server. Nil if the server hangs: blocks for `AudioSystem.timeout` then.
    package static func soundDevices() -> SoundDevices? { list.answer() }

    /// All calls get the same provider, which lists devices once at a time.
    private static let list = SharedProbe("media.sound.devices", seconds: AudioSystem.timeout) { listSoundDevices() }

    private static func listSoundDevices() -> SoundDevices {
        GStreamer.load()
        guard let provider = gst_device_provider_factory_get_by_name("pulsedeviceprovider") else {
            return SoundDevices()
        }
        defer { gst_object_unref(provider) }
        var found = SoundDevices()
        // A provider that is not started would list them too, but leave its connection behind each time.
        guard gst_device_provider_start(provider) != 0 else { return found }
        defer { gst_device_provider_stop(provider) }
        let devices = gst_device_provider_get_devices(provider)
        defer { g_list_free(devices) }
        for item in items(of: devices) {
            let device = item.assumingMemoryBound(to: GstDevice.self)
            if gst_device_has_classes(device, "Audio/Source") != 0 {
                if let source = soundDevice(device) { found.sources.append(source) }
            } else if gst_device_has_classes(device, "Audio/Sink") != 0, let sink = soundDevice(device) {
                found.sinks.append(sink)
            }
            gst_object_unref(device)
        }
        return found
    }

    /// Nil for a monitor.
    private static func soundDevice(_ device: UnsafeMutablePointer<GstDevice>) -> SoundDevice? {
        guard let made = gst_device_create_element(device, nil) else { return nil }
        gst_object_ref_sink(made)
        guard let identifier = GStreamerObject(takingOwnership: made).value("device")?.text else { return nil }
        var found = SoundDevice(
            identifier: identifier, title: takeString(gst_device_get_display_name(device)) ?? "")
        guard let properties = gst_device_get_properties(device) else { return found }
        defer { gst_structure_free(properties) }
        func text(_ field: String) -> String? {
            gst_structure_get_string(properties, field).map { String(cString: $0) }
        }
        if text("device.class") == "monitor" { return nil }
        var isDefault: gboolean = 0
        gst_structure_get_boolean(properties, "is-default", &isDefault)
        found.isDefault = isDefault != 0
        found.product = text("device.product.name") ?? text("alsa.card_name")
        found.card = text("alsa.card").flatMap { Int($0) }
        (found.serial, found.busPath) = (text("device.serial"), text("device.bus_path") ?? text("device.bus-path"))
        return found
    }
}
