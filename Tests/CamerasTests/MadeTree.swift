import Cameras
import Foundation
import TestSupport

/// A made-up sysfs.
final class MadeTree {
    private let folder = TemporaryFolder()
    private static let controller = "devices/pci0000:00/0000:00:14.0"
    var tree: DeviceTree { DeviceTree(root: folder.path) }

    func write(_ file: String, _ text: String) throws {
        try write(file, Data("\(text)\n".utf8))
    }

    private func write(_ file: String, _ data: Data) throws {
        let path = folder.file(file)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try data.write(to: URL(fileURLWithPath: path))
    }

    /// A USB device at a port such as `1-1.2`, below its hubs.
    func plug(
        _ port: String, serial: String? = nil, product: String? = nil, speed: String = "480",
        descriptors: [UInt8]? = nil
    ) throws {
        let device = Self.device(port)
        try write("\(device)/speed", speed)
        if let serial { try write("\(device)/serial", serial) }
        if let product { try write("\(device)/product", product) }
        if let descriptors { try write("\(device)/descriptors", Data(descriptors)) }
    }

    /// The place of a device's folder, with those of the hubs above it.
    private static func device(_ port: String) -> String {
        let parts = port.split(separator: "-")
        let (bus, numbers) = (parts[0], parts[1].split(separator: "."))
        let steps = numbers.indices.map { "\(bus)-\(numbers[...$0].joined(separator: "."))" }
        return "\(controller)/usb\(bus)/\(steps.joined(separator: "/"))"
    }

    /// A video device of a USB port's interface.
    func addVideo(_ number: Int, name: String, at port: String, interface: Int = 0) throws {
        try addVideo(number, name: name, below: "\(Self.device(port))/\(port):1.\(interface)")
    }

    /// A video device below any device.
    func addVideo(_ number: Int, name: String, below parent: String) throws {
        let place = "\(parent)/video4linux/video\(number)"
        try write("\(place)/name", name)
        let links = folder.file("class/video4linux")
        let files = FileManager.default
        try files.createDirectory(atPath: links, withIntermediateDirectories: true)
        try files.createSymbolicLink(
            atPath: "\(links)/video\(number)", withDestinationPath: "../../\(place)")
        try files.createSymbolicLink(
            atPath: folder.file("\(place)/device"), withDestinationPath: "../..")
    }

    /// A sound card of a USB port, or on another bus, with these devices, such as `0c` to record and `0p` to play.
    func addCard(_ number: Int, id: String, at port: String? = nil, devices: [String]) throws {
        let parent = port.map { "\(Self.device($0))/\($0):1.0" } ?? "\(Self.controller)/../0000:00:1f.3"
        let place = "\(parent)/sound/card\(number)"
        try write("\(place)/id", id)
        let links = folder.file("class/sound")
        let files = FileManager.default
        try files.createDirectory(atPath: links, withIntermediateDirectories: true)
        try files.createSymbolicLink(atPath: "\(links)/card\(number)", withDestinationPath: "../../\(place)")
        try files.createSymbolicLink(atPath: folder.file("\(place)/device"), withDestinationPath: "../..")
        for device in devices {
            try write("class/sound/pcmC\(number)D\(device)/dev", "116:1")
        }
    }

    func cameras(metadata: Set<Int> = []) -> [CameraPlace] {
        CameraPlace.all(in: tree) { path in !metadata.contains { path == "/dev/video\($0)" } }
    }
}

/// Descriptors of a UVC camera: a device, a configuration, a control interface, and one streaming interface with these
/// endpoints (`wMaxPacketSize`) in its alternate settings.
func descriptors(
    packets: [UInt16], interval: UInt8 = 1, isBulk: Bool = false, companion: UInt16? = nil
) -> [UInt8] {
    var bytes: [UInt8] = [18, 1, 0, 2, 239, 2, 1, 64, 0x6d, 4, 0x2d, 8, 0, 0, 1, 2, 3, 1]
    bytes += [9, 2, 0, 0, 2, 1, 0, 128, 250]
    bytes += [9, 4, 0, 0, 1, 14, 1, 0, 0]
    // A descriptor of the class, and an interrupt endpoint.
    bytes += [13, 36, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1]
    bytes += [7, 5, 0x83, 3, 16, 0, 6]
    if !isBulk { bytes += [9, 4, 1, 0, 0, 14, 2, 0, 0] }
    for (index, packet) in packets.enumerated() {
        bytes += [9, 4, 1, UInt8(isBulk ? index : index + 1), 1, 14, 2, 0, 0]
        bytes += [7, 5, 0x81, isBulk ? 2 : 5, UInt8(packet & 255), UInt8(packet >> 8), interval]
        if let companion { bytes += [6, 48, 0, 0, UInt8(companion & 255), UInt8(companion >> 8)] }
    }
    // The camera's microphone is another class.
    bytes += [9, 4, 3, 1, 1, 1, 2, 0, 0, 9, 5, 0x84, 5, 100, 0, 4, 0, 0]
    return bytes
}
