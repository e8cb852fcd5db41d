/// The bandwidth that a mode takes on its bus.
package struct BusCost: Sendable, Hashable {
    /// Bytes in a second, with the bus's overhead for packets.
    package let bytesPerSecond: Int
    /// Whether the bus reserves the bandwidth, so that a start fails (`ENOSPC`) if it is taken. A bulk endpoint shares.
    package let isReserved: Bool
    /// Whether the size of compressed frames was estimated.
    package let isEstimate: Bool

    package init(bytesPerSecond: Int, isReserved: Bool, isEstimate: Bool) {
        self.bytesPerSecond = bytesPerSecond
        self.isReserved = isReserved
        self.isEstimate = isEstimate
    }
}

/// A camera's wishes on a bus: its modes, the best first.
package struct BusUser: Sendable {
    package let name: String
    package let usb: USBPlace
    package let modes: [CaptureMode]

    package init(_ name: String, _ usb: USBPlace, _ modes: [CaptureMode]) {
        self.name = name
        self.usb = usb
        self.modes = modes
    }

    /// The bytes in a second that the bus reserves for a mode. 0 for a camera that shares what is free; nil if unknown.
    func reserved(for mode: CaptureMode) -> Int? {
        usb.cost(of: mode).map { $0.isReserved ? $0.bytesPerSecond : 0 }
    }
}

extension USBPlace {
    /// Bytes in a second that cameras can use on the bus, of the device's own speed. A device of a slower speed behind a
    /// hub counts as if the bus were as slow.
    ///
    /// USB 2.0 (section 5.6.4) gives 80 % of a microframe to isochronous transfers: 6000 of 7500 bytes. At 12 Mbit/s it is
    /// 90 % of a frame of 1500 bytes. USB 3 loses a fifth to its coding, and to packets.
    package var capacity: Int {
        switch speed {
        case ...12: 1350 * 1000
        case ...480: 6000 * 8000
        case ...5000: 400_000_000
        default: 900_000_000
        }
    }

    /// The cost of a mode: the smallest alternate setting that carries it, because the host reserves the whole setting.
    /// Without settings, it is the bytes themselves.
    ///
    /// Cameras may request larger settings than they need, so that the result is a lower bound. Nil if no setting is
    /// large enough, and for a mode without rate or of an unknown format.
    package func cost(of mode: CaptureMode) -> BusCost? {
        guard let bits = mode.format.bitsPerPixel.map(Double.init) ?? Self.estimatedBits(of: mode.format),
            let rate = mode.rate
        else { return nil }
        let isEstimate = mode.format.bitsPerPixel == nil
        let bytes = Double(mode.size.pixels) * bits / 8 * rate.perSecond
        // Each packet of UVC begins with a header (UVC 1.5, section 2.4.3.3).
        let frames = speed <= 12 ? 1000 : 8000
        let payload = Int(bytes.rounded(.up)) + Self.header * frames
        let reserving = alternates.filter { $0.bytesPerSecond > 0 }
        guard !reserving.isEmpty else {
            return BusCost(
                bytesPerSecond: payload, isReserved: alternates.isEmpty && speed <= 480, isEstimate: isEstimate)
        }
        guard let setting = reserving.first(where: { $0.bytesPerSecond >= payload }) else { return nil }
        let packets = (setting.bytesPerSecond / frames + Self.packet - 1) / Self.packet
        return BusCost(
            bytesPerSecond: setting.bytesPerSecond + max(packets, 1) * Self.overhead * frames, isReserved: true,
            isEstimate: isEstimate)
    }

    /// Bytes of UVC's header, of a packet's overhead on USB 2.0 (table 5-4), and of the largest packet.
    private static let (header, overhead, packet) = (12, 38, 1024)

    /// JPEG of webcams has 1 to 3 bits a pixel; H.264 far fewer.
    private static func estimatedBits(of format: FourCC) -> Double? {
        format.isJPEG ? 2.5 : format.isH264 || format == "HEVC" ? 0.3 : nil
    }
}

/// Whether two cameras fit together, and in which modes.
package enum BusFit: Sendable, Hashable {
    /// They are on different buses, or both fit in their best modes.
    case fits
    /// The best modes do not fit together, but these do.
    case fitsAs(CaptureMode, CaptureMode)
    /// No two modes fit together.
    case never

    /// Chooses modes for two cameras of one bus. The rule: the least sum of places in the two lists, then the least
    /// difference between them, then the better mode for the first camera.
    package init(_ one: BusUser, _ other: BusUser) {
        guard one.usb.bus == other.usb.bus else {
            self = .fits
            return
        }
        let capacity = min(one.usb.capacity, other.usb.capacity)
        let costs = [one, other].map { user in user.modes.map { user.reserved(for: $0) } }
        var best: (rank: [Int], modes: (CaptureMode, CaptureMode))?
        for (first, mine) in costs[0].enumerated() {
            for (second, yours) in costs[1].enumerated() {
                guard let mine, let yours, mine + yours <= capacity else { continue }
                let rank = [first + second, abs(first - second), first]
                if best.map({ rank.lexicographicallyPrecedes($0.rank) }) ?? true {
                    best = (rank, (one.modes[first], other.modes[second]))
                }
            }
        }
        self = best.map { $0.rank[0] == 0 ? .fits : .fitsAs($0.modes.0, $0.modes.1) } ?? .never
    }

    /// One sentence before the second camera fails. Nil if both fit, or if a best mode's cost is unknown.
    package static func warning(_ one: BusUser, _ other: BusUser) -> String? {
        let fit = BusFit(one, other)
        guard fit != .fits, let first = one.modes.first, let second = other.modes.first,
            let mine = one.reserved(for: first), let yours = other.reserved(for: second), mine > 0, yours > 0
        else { return nil }
        let capacity = min(one.usb.capacity, other.usb.capacity)
        let need =
            "\(one.name) (\(first)) and \(other.name) (\(second)) need \(megabytes(mine)) and "
            + "\(megabytes(yours)) of the \(megabytes(capacity)) MB/s of USB bus \(one.usb.bus)"
        let advice =
            switch fit {
            case .fitsAs(let mine, let yours): "Use \(one.name) in \(mine) and \(other.name) in \(yours)"
            default: "Plug one into another USB controller"
            }
        return "\(need): the second one will not start. \(advice)."
    }

    /// One sentence for each problem of a camera that starts beside others: those pairs that do not fit, or else the bus
    /// that is full with all of them.
    package static func warnings(_ others: [BusUser], _ new: BusUser) -> [String] {
        let pairs = others.compactMap { warning($0, new) }
        guard pairs.isEmpty else { return pairs }
        let users = (others.filter { $0.usb.bus == new.usb.bus } + [new])
        let costs = users.map { user in user.modes.first.flatMap(user.reserved) ?? 0 }
        let capacity = users.map(\.usb.capacity).min() ?? 0
        guard costs.reduce(0, +) > capacity else { return [] }
        let names = users.map(\.name)
        let list = names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
        return [
            "\(list) need \(megabytes(costs.reduce(0, +))) of the \(megabytes(capacity)) MB/s of USB bus "
                + "\(new.usb.bus): the last one will not start. Use MJPG or smaller sizes, or plug one into another USB "
                + "controller."
        ]
    }
}

/// With one decimal.
private func megabytes(_ bytes: Int) -> String {
    let tenths = (bytes + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
}
