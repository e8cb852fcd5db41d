internal import ArgumentParser
internal import Foundation
import MediaGraph
internal import MediaNodes

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List cameras with their formats, sizes and frame rates, microphones and speakers.")

    @Flag(help: "Print JSON.") var json = false

    func run() throws {
        let list = Devices.list()
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            print(String(decoding: try encoder.encode(list), as: UTF8.self))
            return
        }
        print("Cameras" + (list.cameras.isEmpty ? ": none" : ""))
        for camera in list.cameras {
            print("  \(camera.path)  \(camera.name)")
            if let stable = camera.stablePath { print("    stable name: \(stable)") }
            for format in camera.formats {
                let rates = format.framesPerSecond.map { $0.formatted(.number.precision(.fractionLength(0...2))) }
                print(
                    "    \(format.pixelFormat)  \(format.width)x\(format.height)  \(rates.joined(separator: ", ")) "
                        + "frames/s"
                )
            }
        }
        for (title, devices) in [("Microphones", list.microphones), ("Speakers", list.speakers)] {
            print(title + (devices.isEmpty ? ": none" : ""))
            for device in devices {
                print("  \(device.identifier)  \(device.name)\(device.isDefault ? "  (default)" : "")")
            }
        }
    }
}
