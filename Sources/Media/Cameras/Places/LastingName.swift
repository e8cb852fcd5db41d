/// Names of devices that stay the same when they are plugged in another order, and over reboots.
///
/// In this order: `serial:NUMBER`, `serial:NUMBER@PORT` if other devices have the same number, the USB port as V4L2 writes it
/// (`usb-0000:00:14.0-1.2`), and for a device that is not on USB a name of its own, with its address on its bus if others have
/// the same name (`model:unicam-image@fe801000.csi`). The second and further devices of one name end in `#2`, `#3`.
enum LastingName {
    /// The name of each device. `own` is that of a device that is not on USB, `address` its `busAddress`.
    static func names(of devices: [(usb: USBPlace?, own: String, address: String?)]) -> [String] {
        // One device counts once, also with several functions.
        var ports: [String: Set<String>] = [:]
        var addresses: [String: Set<String?>] = [:]
        for (usb, own, address) in devices {
            if let serial = usb?.serial { ports[serial, default: []].insert(usb?.port ?? "") }
            if usb == nil { addresses[own, default: []].insert(address) }
        }
        var uses: [String: Int] = [:]
        return devices.map { usb, own, address in
            let base: String
            if let usb {
                if let serial = usb.serial {
                    let isAlone = ports[serial]?.count == 1 && !isCommon(serial)
                    base = "serial:\(serial)" + (isAlone ? "" : "@\(usb.port)")
                } else {
                    base = usb.port
                }
            } else if let address, addresses[own]?.count != 1 {
                base = "\(own)@\(address)"
            } else {
                base = own
            }
            let use = (uses[base] ?? 0) + 1
            uses[base] = use
            return use == 1 ? base : "\(base)#\(use)"
        }
    }

    /// All names that may mean a device, without the number of its function.
    static func all(of usb: USBPlace?, model: String, address: String?) -> [String] {
        let models = ["model:\(model)", model]
        guard let usb else { return models + (address.map { ["model:\(model)@\($0)"] } ?? []) }
        let ports = [usb.port, usb.kernelPort]
        return models + ports + (usb.serial.map { ["serial:\($0)", "serial:\($0)@\(usb.port)"] } ?? [])
    }

    /// The address on its bus of a device that is not on USB: the name of its folder, such as `fe801000.csi` of a board's bus
    /// or `0000:03:00.0` of PCI. Nil for a virtual device, which is on no bus.
    static func busAddress(of folder: String, in tree: DeviceTree) -> String? {
        guard let place = tree.place("\(folder)/device"), !place.hasPrefix("devices/virtual/") else { return nil }
        return place.split(separator: "/").last.map(String.init)
    }

    /// Whether makers give all their devices this number: `200901010001` (Logitech C270 and others), `SN0001`, or one
    /// digit only. Such a device is named by its port too, even while it is alone.
    private static func isCommon(_ serial: String) -> Bool {
        serial.hasPrefix("200901010") || serial.uppercased().hasPrefix("SN000") || Set(serial).count < 2
            || "0123456789ABCDEF".hasPrefix(serial.uppercased())
    }

    /// A name, and which of its devices it means, from 1.
    static func split(_ name: String) -> (base: String, use: Int) {
        guard let mark = name.lastIndex(of: "#"), let use = Int(name[name.index(after: mark)...]), use > 0 else {
            return (name, 1)
        }
        return (String(name[..<mark]), use)
    }
}
