internal import MediaGraph

/// A microphone or loudspeaker of this machine: its names.
package struct SoundPlace: Sendable, Hashable {
    /// The name in the sound system: `hw:1` of ALSA, or that of the sound server.
    package let identifier: String
    /// A name that stays the same when devices are plugged in another order, and over reboots: the name to write down.
    ///
    /// A `LastingName`. Without USB, the identifier of a sound server, which names the device's bus or address itself, or
    /// `model:NAME` of ALSA, whose cards all have other names.
    package let name: String
    /// Others that may mean it, such as the port as the kernel counts it, or the model.
    package let otherNames: [String]
    package let model: String
}

extension SoundPlace {
    /// A device as a sound server describes it.
    package struct Description: Sendable {
        package var identifier: String
        package var model: String
        /// The number of its ALSA card.
        package var card: Int?
        /// The serial number and udev's path of a USB device, such as `pci-0000:00:14.0-usb-0:1.2:1.0`.
        package var serial: String?
        package var busPath: String?

        package init(
            _ identifier: String, model: String, card: Int? = nil, serial: String? = nil, busPath: String? = nil
        ) {
            (self.identifier, self.model, self.card, self.serial, self.busPath) =
                (identifier, model.cleaned, card, serial?.cleaned, busPath?.cleaned)
        }
    }

    /// The places of a sound server's microphones, or of its loudspeakers.
    package static func all(_ devices: [Description], in tree: DeviceTree = .system) -> [SoundPlace] {
        places(
            devices.map { device in
                let here = device.card.flatMap { USBPlace(of: "class/sound/card\($0)", in: tree) }
                let told = USBPlace(device)
                // A server of another machine numbers other cards.
                let isHere = device.busPath == nil || told?.port == here?.port
                return Found(
                    identifier: device.identifier, model: device.model, usb: isHere ? here : told,
                    own: device.identifier.cleaned)
            })
    }

    /// The microphones of ALSA, or its loudspeakers. Opens none.
    package static func ofALSA(playing: Bool, in tree: DeviceTree = .system) -> [SoundPlace] {
        let folder = "class/sound"
        let entries = tree.entries(of: folder)
        let cards = entries.compactMap { $0.hasPrefix("card") ? Int($0.dropFirst(4)) : nil }.sorted()
        return places(
            cards.flatMap { card -> [Found] in
                let (prefix, suffix) = ("pcmC\(card)D", playing ? "p" : "c")
                let devices = entries.filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }
                    .compactMap { Int($0.dropFirst(prefix.count).dropLast()) }.sorted()
                let usb = USBPlace(of: "\(folder)/card\(card)", in: tree)
                let model = usb?.product ?? tree.text("\(folder)/card\(card)/id") ?? "\(card)"
                return devices.map { device in
                    Found(
                        identifier: "hw:\(card)" + (device == 0 ? "" : ",\(device)"), model: model, usb: usb,
                        own: "model:\(model)")
                }
            })
    }

    private struct Found {
        let identifier: String
        let model: String
        let usb: USBPlace?
        /// The name of a device that is not on USB.
        let own: String
    }

    private static func places(_ found: [Found]) -> [SoundPlace] {
        let names = LastingName.names(of: found.map { ($0.usb, $0.own, nil) })
        return zip(names, found).map { name, device in
            SoundPlace(
                identifier: device.identifier, name: name,
                otherNames: LastingName.all(of: device.usb, model: device.model, address: nil).filter { $0 != name },
                model: device.model)
        }
    }

    /// Whether a text is a name that `SoundPlace` gives, rather than one of a sound system.
    package static func isLasting(_ name: String) -> Bool {
        ["serial:", "usb-", "model:"].contains { name.hasPrefix($0) } || CameraPlace.isKernelPort(name)
    }
}

extension USBPlace {
    /// The place that a sound server tells. Nil if the device is not on USB, or the server does not tell.
    fileprivate init?(_ device: SoundPlace.Description) {
        // `pci-0000:00:14.0-usb-0:1.2:1.0`, or `platform-3610000.usb-usb-0:2:1.0`: the controller, and the port behind it.
        guard let path = device.busPath,
            let match = path.firstMatch(of: #/^(?:.*-)?(?:pci|platform)-(.+?)-usb(?:v[0-9])?-[0-9]+:([0-9.]+):/#)
        else { return nil }
        let port = "usb-\(match.1)-\(match.2)"
        self.init(
            kernelPort: port, port: port, serial: device.serial, product: device.model, bus: 0, speed: 0, alternates: []
        )
    }
}
