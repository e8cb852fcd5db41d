internal import CGLib
internal import CGStreamer
internal import Glibc
package import MediaGraph

/// The devices of this machine, queried once without monitoring.
package enum DeviceProbe {
    /// The sizes and rates listed for a device that supports ranges of them.
    private static let usualSizes = [
        (320, 180), (320, 240), (640, 360), (640, 480), (800, 600), (960, 540), (1024, 768), (1280, 720), (1920, 1080),
        (2560, 1440), (3840, 2160),
    ]
    private static let usualRates: [Double] = [5, 10, 15, 20, 24, 25, 30, 50, 60]

    // MARK: Cameras

    /// `/dev/video0` and so on, in the order of their numbers.
    package static func videoDevicePaths() -> [String] {
        videoDevices(in: "/dev").map { "/dev/" + $0 }
    }

    /// The formats of a device that captures video; none for one that does not (an encoder, a metadata node).
    package static func formats(of path: String) -> [CameraFormat] {
        // Reads the kernel's list first: GStreamer is slow to refuse devices that cannot capture.
        guard openingProblem(of: path) == nil, GStreamer.has("v4l2src"),
            let source = try? Element("v4l2src", ["device": .text(path)])
        else { return [] }
        defer { source.close() }
        guard source.setState(.ready), let caps = source.source.queriedCaps else { return [] }
        return formats(in: caps)
    }

    /// Each pixel format and size once: devices list the same mode for several kinds of interlacing or colour.
    package static func formats(in caps: Caps) -> [CameraFormat] {
        var found: [CameraFormat] = []
        for format in caps.structures.flatMap(formats(in:)) {
            let place = found.firstIndex {
                ($0.pixelFormat, $0.width, $0.height) == (format.pixelFormat, format.width, format.height)
            }
            if let place {
                found[place].framesPerSecond = Set(found[place].framesPerSecond + format.framesPerSecond).sorted()
            } else {
                found.append(format)
            }
        }
        return found
    }

    private static func formats(in structure: FormatStructure) -> [CameraFormat] {
        let names: [String]
        switch structure.name {
        case "video/x-raw": names = structure.texts("format")
        case "image/jpeg": names = ["MJPG"]
        case "video/x-h264": names = ["H264"]
        default: return []
        }
        let rates = Array(Set(rates(in: structure))).sorted()
        return names.flatMap { name in
            sizes(in: structure).map { CameraFormat(pixelFormat: name, width: $0, height: $1, framesPerSecond: rates) }
        }
    }

    private static func sizes(in structure: FormatStructure) -> [(Int, Int)] {
        let widths = structure.integers("width")
        let heights = structure.integers("height")
        guard let width = widths.last, let height = heights.last else { return [] }
        guard structure.isRange("width") || structure.isRange("height") else { return [(width, height)] }
        // The largest size is what the driver can address, not what the sensor delivers.
        let usual = usualSizes.filter { (widths[0]...width).contains($0) && (heights[0]...height).contains($1) }
        return usual.isEmpty ? [(width, height)] : usual
    }

    private static func rates(in structure: FormatStructure) -> [Double] {
        let rates = structure.fractions("framerate")
        if structure.isRange("framerate"), let slowest = rates.first, let fastest = rates.last {
            return usualRates.filter { $0 >= slowest && $0 <= fastest }
        }
        // Omits rates outside of the range of `fps`.
        return rates.filter { $0 >= 1 && $0 <= 240 }
    }

    /// Why a device cannot be opened. Nil if it can.
    package static func openingProblem(of path: String) -> String? {
        let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        close(descriptor)
        return nil
    }

    /// Whether this process has a device open. Its own cameras can pass from node to node.
    package static func isOpenHere(_ path: String) -> Bool {
        let place = place(of: path)
        return entries(of: "/proc/self/fd").contains { self.place(of: "/proc/self/fd/\($0)") == place }
    }

    /// Whether another program captures from a camera. Many can open it, but only one can capture. Requests a buffer,
    /// so a program that begins to capture at that moment is refused.
    package static func isTaken(_ path: String) -> Bool {
        if isOpenHere(path) { return false }
        let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        // The buffer is freed with the descriptor.
        return requestBuffers(1, captureTypes[0], of: descriptor) == EBUSY
    }

    /// The usual capture type, and the one with separate planes.
    static let captureTypes: [UInt32] = [1, 9]

    /// Requests buffers from a device. Returns the driver's `errno`, or 0 on success.
    static func requestBuffers(_ count: UInt32, _ type: UInt32, of descriptor: Int32) -> Int32 {
        // struct v4l2_requestbuffers of videodev2.h: count, type, memory (1 is mmap), and two words more.
        var request: [UInt32] = [count, type, 1, 0, 0]
        // VIDIOC_REQBUFS is _IOWR('V', 8, 20 bytes).
        return ioctl(descriptor, 0xc014_5608, &request) < 0 ? errno : 0
    }

    /// Whether a device exists. Its file may outlive it while a program has it open.
    package static func exists(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return ![ENOENT, ENOTDIR, ENODEV, ENXIO].contains(errno) }
        close(descriptor)
        return true
    }

    /// The target of a path, as the kernel reports it for an open descriptor. The path itself if it has none.
    package static func place(of path: String) -> String {
        guard let place = realpath(path, nil) else { return path }
        defer { free(place) }
        return String(cString: place)
    }

    package static func name(of path: String) -> String {
        let file = "/sys/class/video4linux/" + (path.split(separator: "/").last ?? "") + "/name"
        var text: UnsafeMutablePointer<CChar>?
        g_file_get_contents(file, &text, nil, nil)
        let name = takeString(text)?.prefix { $0 != "\n" } ?? ""
        return name.isEmpty ? path : String(name)
    }

    /// A stable path: by the camera's serial number, or without one by its USB port.
    package static func stablePath(of path: String) -> String? {
        ["/dev/v4l/by-id", "/dev/v4l/by-path"].lazy
            .compactMap { folder in
                entries(of: folder).sorted().map { "\(folder)/\($0)" }.first { place(of: $0) == path }
            }
            .first
    }

    /// `video0` and so on, in the order of their numbers.
    static func videoDevices(in folder: String) -> [String] {
        entries(of: folder).filter { $0.hasPrefix("video") }
            .compactMap { name in Int(name.dropFirst(5)).map { (number: $0, name: name) } }
            .sorted { $0.number < $1.number }
            .map(\.name)
    }

    static func entries(of folder: String) -> [String] {
        guard let directory = g_dir_open(folder, 0, nil) else { return [] }
        defer { g_dir_close(directory) }
        return Array(sequence(state: directory) { g_dir_read_name($0).map { String(cString: $0) } })
    }

    // MARK: Sound

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
