internal import ArgumentParser
internal import Foundation
import MediaGraph
internal import MediaNodes

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List cameras with their names, modes, bandwidth and controls, microphones and speakers.")

    @Flag(help: "Print JSON.") var json = false

    func run() throws {
        let list = DevicesReport()
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            print(String(decoding: try encoder.encode(list), as: UTF8.self))
            return
        }
        print("Cameras" + (list.cameras.isEmpty ? ": none" : ""))
        for line in list.cameras.flatMap(\.lines) { print(line) }
        for (title, devices) in [("Microphones", list.microphones), ("Speakers", list.speakers)] {
            print(title + (devices.isEmpty ? ": none" : ""))
            for device in devices {
                print("  \(device.identifier)  \(device.name)\(device.isDefault ? "  (default)" : "")")
            }
        }
    }
}

private struct DevicesReport: Encodable {
    let cameras = CameraListing.all()
    let microphones: [AudioDevice]
    let speakers: [AudioDevice]

    init() {
        (microphones, speakers) = Devices.sound()
    }
}
