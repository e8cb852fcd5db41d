import Foundation
import GStreamerKit
import Testing

/// A fake device tree in the kernel's layout: two cameras of two devices each on a hub.
@Suite struct CameraPlacesTests {
    private let root: URL
    private let places: CameraPlaces

    init() throws {
        let files = FileManager.default
        root = files.temporaryDirectory.appendingPathComponent("camera-places-\(UUID().uuidString)")
        let classes = root.appendingPathComponent("sys/class/video4linux")
        let devices = root.appendingPathComponent("dev")
        for folder in ["by-id", "by-path"] {
            try files.createDirectory(
                at: devices.appendingPathComponent("v4l/\(folder)"), withIntermediateDirectories: true)
        }
        for (number, port) in [(0, "1-1.2"), (1, "1-1.2"), (2, "1-1.3"), (3, "1-1.3"), (10, "2-1.2")] {
            let bus = port.first.map(String.init) ?? ""
            let place = root.appendingPathComponent(
                "sys/devices/pci0000:00/0000:00:\(bus == "1" ? "14" : "15").0/usb\(bus)/\(bus)-1/\(port)/\(port):1.0")
            try files.createDirectory(at: place, withIntermediateDirectories: true)
            let entry = classes.appendingPathComponent("video\(number)")
            try files.createDirectory(at: entry, withIntermediateDirectories: true)
            try files.createSymbolicLink(at: entry.appendingPathComponent("device"), withDestinationURL: place)
            let device = devices.appendingPathComponent("video\(number)")
            try Data().write(to: device)
            try files.createSymbolicLink(
                at: devices.appendingPathComponent("v4l/by-id/usb-Camera-index\(number)"), withDestinationURL: device)
        }
        places = CameraPlaces(devices: devices.path, classes: classes.path)
    }

    private func names(_ device: String) -> [String] {
        defer { try? FileManager.default.removeItem(at: root) }
        return places.paths(of: device).map { URL(fileURLWithPath: $0).lastPathComponent }
    }

    @Test(
        "A camera is found by its USB port, as written by the kernel and by V4L2",
        arguments: [
            ("1-1.2", ["video0", "video1"]), ("1-1.3", ["video2", "video3"]), ("2-1.2", ["video10"]),
            ("usb-0000:00:14.0-1.2", ["video0", "video1"]), ("usb-0000:00:15.0-1.2", ["video10"]),
            ("1-1.4", []), ("usb-0000:00:14.0-1.4", []), ("usb-0000:00:99.0-1.2", []), ("usb-", []), ("", []),
        ])
    func port(_ device: String, _ found: [String]) {
        #expect(names(device) == found)
    }

    @Test("A camera is found by its name, and by a path")
    func name() {
        #expect(names("usb-Camera-index2") == ["video2"])
        #expect(places.paths(of: "/dev/null") == ["/dev/null"])
        #expect(places.paths(of: "/dev/video97").isEmpty)
    }
}
