internal import Glibc

/// Finds a camera's devices by its name or its USB port, which are more stable than its path.
package struct CameraPlaces: Sendable {
    /// The system's folder of devices. Tests use their own.
    private let devices: String
    private let classes: String

    package init(devices: String, classes: String) {
        self.devices = devices
        self.classes = classes
    }

    package static let system = CameraPlaces(devices: "/dev", classes: "/sys/class/video4linux")

    /// The devices with this name, in the order of their numbers. Empty if there are none.
    ///
    /// A name is a path, a name in /dev/v4l/by-id or by-path, a USB port as the kernel counts it (`1-1.2`), or as V4L2
    /// writes it, `usb-0000:00:14.0-1.2`.
    package func paths(of name: String) -> [String] {
        if name.isEmpty { return [] }
        if name.hasPrefix("/") { return access(name, F_OK) == 0 ? [name] : [] }
        for folder in ["by-id", "by-path"] {
            let link = "\(devices)/v4l/\(folder)/\(name)"
            if access(link, F_OK) == 0 { return [DeviceProbe.place(of: link)] }
        }
        return DeviceProbe.videoDevices(in: classes)
            .filter { isAt(name, DeviceProbe.place(of: "\(classes)/\($0)/device")) }
            .map { "\(devices)/\($0)" }
    }

    /// Whether a device's path in the device tree is at a USB port: `.../0000:00:14.0/usb1/1-1/1-1.2/1-1.2:1.0`.
    private func isAt(_ port: String, _ place: String) -> Bool {
        let steps = place.split(separator: "/")
        if steps.contains(where: { $0 == port }) { return true }
        guard port.hasPrefix("usb-") else { return false }
        // The controller's name may contain dashes; the port follows the last one.
        let rest = port.dropFirst(4)
        guard let dash = rest.lastIndex(of: "-") else { return false }
        let controller = rest[..<dash]
        let number = rest[rest.index(after: dash)...]
        guard let at = steps.firstIndex(of: controller) else { return false }
        return steps[at...].contains { step in
            step.split(separator: "-", maxSplits: 1).last.map { $0 == number } == true && step.first?.isNumber == true
                && step.contains("-")
        }
    }
}
