import Cameras
import TestSupport

extension MadeTree {
    var tree: DeviceTree { DeviceTree(root: root) }

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
