package import MediaGraph

/// A camera of this machine: its names, and its place on a bus.
package struct CameraPlace: Sendable, Hashable {
    /// A name that stays the same when devices are plugged in another order, and over reboots: the name to write down.
    ///
    /// A `LastingName`; `model:NAME` or `model:NAME@ADDRESS` for a camera that is not on USB.
    package let name: String
    /// The device file's path, which changes: `/dev/video0`.
    package let path: String
    /// The model, such as `HD Pro Webcam C920`.
    package let model: String
    /// Nil if the camera is not on USB, such as the sensor of a board.
    package let usb: USBPlace?
    /// Without USB, the address on another bus, such as `fe801000.csi`. Nil on USB, and for a virtual camera.
    let address: String?

    /// Finds a camera again that was opened before.
    package struct Identity: Sendable, Hashable {
        /// The camera's name at that time.
        package let name: String
        /// The name with the port, which stays the same when a second camera with the same number is plugged in.
        let atPort: String

        package init(_ name: String, atPort: String? = nil) {
            (self.name, self.atPort) = (name, atPort ?? name)
        }
    }

    package var identity: Identity {
        let (_, use) = LastingName.split(name)
        let end = use == 1 ? "" : "#\(use)"
        if let usb, let serial = usb.serial, name.hasPrefix("serial:") {
            return Identity(name, atPort: "serial:\(serial)@\(usb.port)\(end)")
        }
        if let address, name.hasPrefix("model:") {
            return Identity(name, atPort: "model:\(model)@\(address)\(end)")
        }
        return Identity(name)
    }

    package init(name: String, path: String, model: String, usb: USBPlace?) {
        self.init(name: name, path: path, model: model, usb: usb, address: nil)
    }

    private init(name: String, path: String, model: String, usb: USBPlace?, address: String?) {
        self.name = name
        self.path = path
        self.model = model
        self.usb = usb
        self.address = address
    }
}

/// A device's place on USB.
package struct USBPlace: Sendable, Hashable {
    /// As the kernel counts it: `1-1.2` is port 2 of the hub at port 1 of bus 1. Bus numbers may change at a reboot.
    package let kernelPort: String
    /// With the controller's address instead of the bus: `usb-0000:00:14.0-1.2`.
    package let port: String
    package let serial: String?
    /// The product's name, such as `HD Pro Webcam C920`.
    package let product: String?
    /// All devices with the same number share its bandwidth.
    package let bus: Int
    /// Speed of the device in Mbit/s: 12, 480, 5000 and more.
    package let speed: Int
    /// Of the streaming interfaces, the smallest first. Empty if the kernel does not list them.
    package let alternates: [AlternateSetting]

    package init(
        kernelPort: String, port: String, serial: String?, product: String? = nil, bus: Int, speed: Int,
        alternates: [AlternateSetting]
    ) {
        self.kernelPort = kernelPort
        self.port = port
        self.serial = serial
        self.product = product
        self.bus = bus
        self.speed = speed
        self.alternates = alternates
    }
}

extension CameraPlace {
    /// The cameras of a tree, in the order of their device numbers. Blocks for as long as `captures` does.
    ///
    /// - Parameter captures: whether a device captures video. sysfs does not tell it: a UVC camera has a second device for
    ///   metadata with the same name.
    package static func all(
        in tree: DeviceTree = .system, captures: (_ path: String) -> Bool
    ) -> [CameraPlace] {
        let folder = "class/video4linux"
        let numbers = tree.entries(of: folder).compactMap { $0.hasPrefix("video") ? Int($0.dropFirst(5)) : nil }
        let found = numbers.sorted().compactMap { number -> Found? in
            let path = "/dev/video\(number)"
            guard captures(path) else { return nil }
            return Found(tree, "\(folder)/video\(number)", path)
        }
        return named(found)
    }

    private struct Found {
        let path: String
        let model: String
        let usb: USBPlace?
        let address: String?

        init(_ tree: DeviceTree, _ folder: String, _ path: String) {
            self.path = path
            usb = USBPlace(of: folder, in: tree)
            address = usb == nil ? LastingName.busAddress(of: folder, in: tree) : nil
            model = tree.text("\(folder)/name") ?? path
        }
    }

    private static func named(_ found: [Found]) -> [CameraPlace] {
        let names = LastingName.names(of: found.map { ($0.usb, "model:\($0.model)", $0.address) })
        return zip(names, found).map { name, camera in
            CameraPlace(
                name: name, path: camera.path, model: camera.model, usb: camera.usb, address: camera.address)
        }
    }

    // MARK: Finding a name

    /// The camera with a name: `name`, or its port as the kernel or V4L2 writes it, its model, or a serial number
    /// without the port if only one camera has it.
    ///
    /// - Parameter names: those that the user gave, for the message.
    /// - Throws: `camera.absent`, also if several cameras match; the message lists the names to choose from.
    package static func find(
        _ wish: String, among places: [CameraPlace], names: [String] = []
    ) throws(MediaError) -> CameraPlace {
        if let exact = places.first(where: { $0.name == wish }) { return exact }
        let (base, use) = LastingName.split(wish)
        let matches = places.filter { $0.answers(to: base) }
        // Devices of one camera, in order.
        if Set(matches.map { $0.usb?.port ?? $0.address ?? $0.name }).count <= 1 || use > 1 {
            if matches.indices.contains(use - 1) { return matches[use - 1] }
        }
        let others = (matches.isEmpty ? places : matches).map(\.name)
        if matches.isEmpty, let serial = places.lazy.compactMap({ $0.usb?.serial }).first(where: base.isSame) {
            let meant = "serial:\(serial)" + (use == 1 ? "" : "#\(use)")
            throw MediaError(
                code: MediaError.Code.cameraAbsent,
                message:
                    "No camera is named \(wish); did you mean \(meant)? That is how the serial number of a camera is "
                    + "written.")
        }
        if matches.isEmpty, CameraBindings.isName(wish) {
            throw MediaError(
                code: MediaError.Code.cameraAbsent,
                message:
                    "No camera is named \(wish)\(wish.suggestion(among: (names + others).sorted())) 'connectlive devices' lists "
                    + "the names.")
        }
        if let other = wish.otherKind {
            throw MediaError(
                code: MediaError.Code.cameraAbsent, message: "\(wish) is not a name of a camera. \(other)")
        }
        let absence =
            wish.mayBeSerial ? "is not plugged in; a serial number is written serial:\(wish)" : "is not plugged in"
        let reason = matches.isEmpty ? absence : "is a name of several cameras"
        let advice = others.isEmpty ? "Plug it in." : "Use \(others.joined(separator: " or "))."
        throw MediaError(
            code: MediaError.Code.cameraAbsent, message: "The camera \(wish) \(reason). \(advice)")
    }

    /// Whether a text is the port of a USB device as the kernel counts it, such as `1-1.2`.
    package static func isKernelPort(_ text: String) -> Bool {
        text.wholeMatch(of: #/[0-9]+-[0-9]+(\.[0-9]+)*(#[1-9][0-9]*)?/#) != nil
    }

    /// Whether a name or an identity may mean this device or another one of the same camera or model.
    func mayBe(_ name: String) -> Bool { answers(to: LastingName.split(name).base) || self.name == name }
    func mayBe(_ identity: Identity) -> Bool { mayBe(identity.name) || mayBe(identity.atPort) }

    private func answers(to name: String) -> Bool {
        LastingName.all(of: usb, model: model, address: address).contains(name)
    }
}

extension USBPlace {
    /// The USB device above a video device or a sound card. Nil if there is none.
    init?(of folder: String, in tree: DeviceTree) {
        guard let place = tree.place("\(folder)/device") else { return nil }
        var steps = place.split(separator: "/").map(String.init)
        // Of `…/usb1/1-1/1-1.2/1-1.2:1.0`, the device is the last one without a colon.
        while let last = steps.last, !Self.isPort(last) { steps.removeLast() }
        guard let kernelPort = steps.last, let root = steps.firstIndex(where: { $0.hasPrefix("usb") }), root > 0,
            let dash = kernelPort.firstIndex(of: "-")
        else { return nil }
        let device = steps.joined(separator: "/")
        let speed = tree.text("\(device)/speed").flatMap { Double($0) }.map { Int($0) } ?? 480
        self.init(
            kernelPort: kernelPort, port: "usb-\(steps[root - 1])-\(kernelPort[kernelPort.index(after: dash)...])",
            serial: tree.text("\(device)/serial"), product: tree.text("\(device)/product"),
            bus: Int(kernelPort[..<dash]) ?? 0, speed: speed,
            alternates: tree.bytes("\(device)/descriptors").map { alternateSettings(in: $0, speed: speed) } ?? [])
    }

    /// Whether a folder's name is that of a USB device: `1-1.2`, not of its interface `1-1.2:1.0`.
    private static func isPort(_ name: String) -> Bool {
        guard let dash = name.firstIndex(of: "-"), dash != name.startIndex else { return false }
        return name[..<dash].allSatisfy(\.isNumber)
            && name[name.index(after: dash)...].allSatisfy { $0.isNumber || $0 == "." }
    }
}

extension String {
    /// Whether this is a serial number, in letters of either case.
    fileprivate func isSame(_ serial: String) -> Bool { lowercased() == serial.lowercased() }

    /// Whether a text may be a serial number, written without `serial:`.
    fileprivate var mayBeSerial: Bool { wholeMatch(of: #/[A-Za-z0-9_]+/#) != nil }

    /// A hint for the address of a network camera and the file of a recorded one. Nil for other texts.
    fileprivate var otherKind: String? {
        if contains("://") { return "The node rtsp reads a network camera, as in pipelines/rtsp-to-room.yaml." }
        let file = lowercased().hasPrefix("fixture:") ? String(dropFirst("fixture:".count)) : self
        return file.lowercased().hasSuffix(".json") ? "Did you mean fixture:\(file)?" : nil
    }
}
