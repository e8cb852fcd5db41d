/// An alternate setting of a camera's streaming interface, and the bandwidth that it reserves.
package struct AlternateSetting: Sendable, Hashable {
    package let number: Int
    /// Bytes of payload in a second. 0 for a bulk endpoint, which reserves nothing.
    package let bytesPerSecond: Int

    package init(_ number: Int, bytesPerSecond: Int) {
        self.number = number
        self.bytesPerSecond = bytesPerSecond
    }
}

/// Reads the alternate settings of the video streaming interfaces (class 14, subclass 2) from a device's descriptors, as
/// sysfs has them in `descriptors`: the device's, then those of each configuration (USB 3.2, section 9.6).
///
/// - Parameter speed: of the device in Mbit/s.
/// - Returns: the settings that have a video endpoint, the smallest first.
package func alternateSettings(in descriptors: [UInt8], speed: Int) -> [AlternateSetting] {
    var settings: [AlternateSetting] = []
    var setting: Int?
    var endpoint: Endpoint?
    var configurations = 0
    var start = 0

    func finishEndpoint() {
        if let found = endpoint, let setting {
            settings.append(AlternateSetting(setting, bytesPerSecond: found.bytesPerSecond(speed)))
        }
        endpoint = nil
    }

    while start + 2 <= descriptors.count {
        let length = Int(descriptors[start])
        guard length >= 2, start + length <= descriptors.count else { break }
        let part = Array(descriptors[start..<(start + length)])
        start += length
        switch (part[1], length) {
        case (2, _):
            configurations += 1
            // Only one configuration is active, and cameras have one.
            if configurations > 1 {
                finishEndpoint()
                return settings.sorted { $0.bytesPerSecond < $1.bytesPerSecond }
            }
        case (4, 9...):
            finishEndpoint()
            setting = part[5] == 14 && part[6] == 2 ? Int(part[3]) : nil
        case (5, 7...):
            finishEndpoint()
            if part[2] & 0x80 != 0, part[3] & 1 == 1 || part[3] & 3 == 2 { endpoint = Endpoint(part) }
            // Interrupt endpoints carry no video.
            if part[3] & 3 == 3 { endpoint = nil }
        case (0x30, 6...):
            endpoint?.bytesPerInterval = Int(part[4]) | Int(part[5]) << 8
        default: break
        }
    }
    finishEndpoint()
    return settings.sorted { $0.bytesPerSecond < $1.bytesPerSecond }
}

private struct Endpoint {
    let isBulk: Bool
    /// wMaxPacketSize: bytes of a packet, and in bits 11 and 12 the further packets of a microframe.
    let packet: Int
    let interval: Int
    /// Of the companion descriptor of USB 3.
    var bytesPerInterval: Int?

    init(_ part: [UInt8]) {
        isBulk = part[3] & 3 == 2
        packet = Int(part[4]) | Int(part[5]) << 8
        interval = Int(part[6])
    }

    func bytesPerSecond(_ speed: Int) -> Int {
        if isBulk { return 0 }
        let payload = bytesPerInterval ?? (packet & 0x7ff) * (1 + min(packet >> 11 & 3, 2))
        // Frames of 1 ms up to 12 Mbit/s, else microframes of 125 µs.
        let frames = speed <= 12 ? 1000 : 8000
        return payload * frames >> (max(1, min(interval, 16)) - 1)
    }
}
