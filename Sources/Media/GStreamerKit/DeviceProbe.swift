internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The sound devices and libcamera's cameras of this machine, queried once without monitoring.
package enum DeviceProbe {
    /// The names of libcamera's cameras. Empty without its plugin.
    package static func libraryCameras() -> [String] {
        GStreamer.load()
        guard let provider = gst_device_provider_factory_get_by_name("libcameraprovider") else { return [] }
        defer { gst_object_unref(provider) }
        let devices = gst_device_provider_get_devices(provider)
        defer { g_list_free(devices) }
        return items(of: devices).compactMap { item in
            defer { gst_object_unref(item) }
            return takeString(gst_device_get_display_name(item.assumingMemoryBound(to: GstDevice.self)))
        }
    }

    /// Microphones and loudspeakers of the first sound system that responds, without the monitors of loudspeakers.
    package static func soundDevices() -> (sources: [AudioDevice], sinks: [AudioDevice]) {
        GStreamer.load()
        for name in ["pulsedeviceprovider", "alsadeviceprovider"] {
            guard let provider = gst_device_provider_factory_get_by_name(name) else { continue }
            defer { gst_object_unref(provider) }
            var sources: [AudioDevice] = []
            var sinks: [AudioDevice] = []
            let devices = gst_device_provider_get_devices(provider)
            for item in items(of: devices) {
                let device = item.assumingMemoryBound(to: GstDevice.self)
                if gst_device_has_classes(device, "Audio/Source") != 0 {
                    if let found = soundDevice(device) { sources.append(found) }
                } else if gst_device_has_classes(device, "Audio/Sink") != 0, let found = soundDevice(device) {
                    sinks.append(found)
                }
                gst_object_unref(device)
            }
            g_list_free(devices)
            if !sources.isEmpty || !sinks.isEmpty { return (sources, sinks) }
        }
        return ([], [])
    }

    /// Nil for a monitor.
    private static func soundDevice(_ device: UnsafeMutablePointer<GstDevice>) -> AudioDevice? {
        guard let made = gst_device_create_element(device, nil) else { return nil }
        gst_object_ref_sink(made)
        guard let identifier = GStreamerObject(takingOwnership: made).value("device")?.text else { return nil }
        var isDefault: gboolean = 0
        if let properties = gst_device_get_properties(device) {
            defer { gst_structure_free(properties) }
            let kind = gst_structure_get_string(properties, "device.class").map { String(cString: $0) }
            if kind == "monitor" { return nil }
            gst_structure_get_boolean(properties, "is-default", &isDefault)
        }
        return AudioDevice(
            identifier: identifier, name: takeString(gst_device_get_display_name(device)) ?? "",
            isDefault: isDefault != 0)
    }
}
