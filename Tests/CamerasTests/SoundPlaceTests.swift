import Cameras
import TestSupport
import Testing

/// Names of microphones and loudspeakers, in a made-up sysfs.
@Suite struct SoundPlaceTests {
    private func microphones(_ made: MadeTree) -> [String: String] {
        let places = SoundPlace.ofALSA(playing: false, in: made.tree)
        return Dictionary(uniqueKeysWithValues: places.map { ($0.name, $0.identifier) })
    }

    @Test(arguments: [
        ("platform-3610000.usb-usb-0:2:1.0", "usb-3610000.usb-2"),
        ("platform-xhci-hcd.0-usb-0:1:1.0", "usb-xhci-hcd.0-1"),
        ("platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.3:1.0", "usb-0000:01:00.0-1.3"),
        ("pci-0000:00:14.0-usbv2-0:1.2:1.0", "usb-0000:00:14.0-1.2"),
    ])
    func `a sound server's path of a USB device leads to its port, also on boards`(path: String, port: String) {
        let places = SoundPlace.all([.init("alsa_input.usb", model: "Mic", busPath: path)], in: MadeTree().tree)
        #expect(places.map(\.name) == [port])
    }

    @Test func `a USB microphone keeps its name at another port and as another card`() throws {
        for (port, card) in [("1-1.2", 1), ("2-4", 0)] {
            let made = MadeTree()
            try made.plug(port, serial: "7C3F", product: "C920")
            try made.addCard(card, id: "C920", at: port, devices: ["0c"])
            #expect(microphones(made) == ["serial:7C3F": "hw:\(card)"])
            let place = try #require(SoundPlace.ofALSA(playing: false, in: made.tree).first)
            #expect(place.model == "C920")
            #expect(
                Set(place.otherNames).isSuperset(of: [port, "model:C920", "usb-0000:00:14.0-\(port.dropFirst(2))"]))
            #expect(SoundPlace.ofALSA(playing: true, in: made.tree).isEmpty)
        }
    }

    @Test
    func `microphones with one serial number are told apart by their ports, and those without have the port's name`()
        throws
    {
        let made = MadeTree()
        try made.plug("1-1", serial: "77")
        try made.plug("1-2.3", serial: "77")
        try made.plug("1-4")
        try made.plug("1-5", serial: "0000")
        for (card, port) in [(0, "1-2.3"), (1, "1-1"), (2, "1-4"), (3, "1-5")] {
            try made.addCard(card, id: "Mic", at: port, devices: ["0c"])
        }
        #expect(
            microphones(made) == [
                "serial:77@usb-0000:00:14.0-2.3": "hw:0", "serial:77@usb-0000:00:14.0-1": "hw:1",
                "usb-0000:00:14.0-4": "hw:2", "serial:0000@usb-0000:00:14.0-5": "hw:3",
            ])
    }

    @Test func `names that a sound server tells have no control characters`() {
        let escape = "\u{1b}[2J"
        let places = SoundPlace.all(
            [
                .init(
                    "alsa_input.usb", model: "Mic\(escape)", serial: "7C\(escape)",
                    busPath: "pci-0000:00:14.0-usb-0:1.2:1.0"),
                .init("alsa\(escape)", model: "Mic\(escape)"),
            ], in: MadeTree().tree)
        let names = places.flatMap { [$0.name, $0.model] + $0.otherNames }
        #expect(names.contains("serial:7C\u{fffd}[2J") && names.contains("alsa\u{fffd}[2J"))
        #expect(!names.contains { $0.contains("\u{1b}") })
        // It opens the device.
        #expect(places[1].identifier == "alsa\(escape)")
    }

    @Test func `a card on another bus is named by its model, its second device with a number`() throws {
        let made = MadeTree()
        try made.addCard(0, id: "PCH", devices: ["0c", "0p", "2c", "10p"])
        #expect(microphones(made) == ["model:PCH": "hw:0", "model:PCH#2": "hw:0,2"])
        let speakers = SoundPlace.ofALSA(playing: true, in: made.tree)
        #expect(speakers.map(\.name) == ["model:PCH", "model:PCH#2"])
        #expect(speakers.map(\.identifier) == ["hw:0", "hw:0,10"])
    }

    @Test func `the devices of a sound server have the names of their cards`() throws {
        let made = MadeTree()
        try made.plug("1-1.2", serial: "7C3F")
        try made.addCard(1, id: "C920", at: "1-1.2", devices: ["0c"])
        let path = "pci-0000:00:14.0-usb-0:1.2:1.0"
        let here = SoundPlace.Description(
            "alsa_input.usb-046d", model: "C920", card: 1, serial: "046d_C920_7C3F", busPath: path)
        #expect(SoundPlace.all([here], in: made.tree).map(\.name) == ["serial:7C3F"])
        // Another machine's card 1 is not this one.
        let there = SoundPlace.Description(
            "alsa_input.usb-other", model: "Other", card: 1, serial: "other_9", busPath: "pci-0000:00:14.0-usb-0:3:1.0")
        let inside = SoundPlace.Description(
            "alsa_input.pci", model: "HDA", card: 1, busPath: "pci-0000:00:1f.3")
        let names = SoundPlace.all([there, inside], in: made.tree).map(\.name)
        #expect(names == ["serial:other_9", "alsa_input.pci"])
        // A server that knows no buses, as of a Bluetooth headset.
        #expect(
            SoundPlace.all([.init("bluez_sink.00_11", model: "Head")], in: made.tree).map(\.name) == [
                "bluez_sink.00_11"
            ])
        #expect(["serial:1", "usb-x-1", "model:a", "1-1.2"].allSatisfy(SoundPlace.isLasting))
        #expect(!["bluez_sink.1", "hw:0", "desk", "alsa_input.usb-046d"].contains(where: SoundPlace.isLasting))
    }
}
