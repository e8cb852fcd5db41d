import Foundation

/// A made-up sysfs.
public final class MadeTree {
    private let folder = TemporaryFolder()
    private static let controller = "devices/pci0000:00/0000:00:14.0"
    public var root: String { folder.path }

    public init() {}

    public func write(_ file: String, _ text: String) throws {
        try write(file, Data("\(text)\n".utf8))
    }

    private func write(_ file: String, _ data: Data) throws {
        let path = folder.file(file)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try data.write(to: URL(fileURLWithPath: path))
    }

    /// A USB device at a port such as `1-1.2`, below its hubs.
    public func plug(
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
    public func addVideo(_ number: Int, name: String, at port: String, interface: Int = 0) throws {
        try addVideo(number, name: name, below: "\(Self.device(port))/\(port):1.\(interface)")
    }

    /// A video device below any device.
    public func addVideo(_ number: Int, name: String, below parent: String) throws {
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
    public func addCard(_ number: Int, id: String, at port: String? = nil, devices: [String]) throws {
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
}
