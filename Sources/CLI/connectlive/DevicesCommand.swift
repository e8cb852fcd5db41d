internal import ArgumentParser
internal import Cameras
internal import Foundation
import MediaGraph
internal import MediaNodes

struct DevicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract:
            "List cameras with their names, modes, bandwidth and controls, and microphones and speakers with their names.",
        discussion: "'devices bind' gives a camera a name of your own.",
        subcommands: [ListCommand.self, BindCommand.self, UnbindCommand.self], defaultSubcommand: ListCommand.self)

    struct ListCommand: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "List them (the default).")

        @Flag(help: "Print JSON.") var json = false

        func run() throws {
            // Devices do not depend on a broken file with names.
            let names = Result { () throws(MediaError) in try CameraBindings.ofUser.all() }
            let list = DevicesReport(names: (try? names.get()) ?? [:])
            try list.show(asJSON: json)
            _ = try names.get()
        }
    }

    struct BindCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "bind", abstract: "Give a camera a name of your own, such as front, with preset controls.",
            discussion: "The names are in $XDG_CONFIG_HOME/connectlive/cameras.json, or ~/.config without the variable."
        )

        @Argument(help: "The new name: letters, digits and dashes.") var name: String
        @Argument(
            help: "The camera: a name of 'devices', a port such as 1-1.2, a path such as /dev/video0, or fixture:FILE.")
        var camera: String
        @Option(
            help: ArgumentHelp(
                "Controls to set whenever the camera opens by this name, such as brightness=90,auto_exposure=1.",
                valueName: "controls"))
        var controls: String?

        func run() throws {
            let values = try ControlValues(controls ?? "")
            let lasting = try Self.lasting(camera, with: values, of: .machine)
            let binding = CameraBindings.Binding(lasting, controls: controls)
            let former = try CameraBindings.ofUser.bind(name, to: binding)
            let change = former.flatMap { $0 == binding ? nil : " It was \($0)." } ?? ""
            print("\(name) is \(binding).\(change)".printable)
        }

        /// The name of a camera that stays the same. One that is not plugged in has to be written as such a name.
        ///
        /// - Throws: `camera.control` if the camera is plugged in and does not take the values.
        static func lasting(
            _ camera: String, with values: ControlValues, of system: CameraSystem
        ) throws(MediaError) -> String {
            let prefix = CameraSystem.fixturePrefix
            // A name does not lead to another name, which could change.
            var camera = try system.bound(camera)
            let isRecorded = camera.hasPrefix(prefix)
            if isRecorded {
                let file = URL(fileURLWithPath: String(camera.dropFirst(prefix.count)))
                camera = prefix + file.standardizedFileURL.path
            }
            do throws(MediaError) {
                let opened = try system.open(camera, mayReserve: false) { place, device throws(MediaError) in
                    if !values.values.isEmpty { try values.check(try device.controls(), of: place.name) }
                }
                opened.device.close()
                return isRecorded ? camera : opened.place.name
            } catch {
                let isLasting =
                    isRecorded || CameraPlace.isKernelPort(camera)
                    || ["serial:", "usb-", "model:"].contains { camera.hasPrefix($0) }
                guard isLasting, error.code == MediaError.Code.cameraAbsent else { throw error }
                return camera
            }
        }
    }

    struct UnbindCommand: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "unbind", abstract: "Remove a name.")

        @Argument(help: "The name.") var name: String

        func run() throws {
            try CameraBindings.ofUser.bind(name, to: nil)
        }
    }
}

private struct DevicesReport: Encodable {
    let cameras = CameraListing.all()
    /// Cameras behind libcamera, such as a Raspberry Pi's.
    let libraryCameras = Devices.libraryCameras()
    /// Cameras by the names of this user.
    let names: [String: CameraBindings.Binding]
    let microphones: [AudioDevice]
    let speakers: [AudioDevice]

    init(names: [String: CameraBindings.Binding]) {
        self.names = names
        let sound = Devices.soundDevices()
        (microphones, speakers) = (sound.devices?.microphones ?? [], sound.devices?.speakers ?? [])
        if let problem = sound.problem { Console.error(problem) }
    }

    func show(asJSON isJSON: Bool) throws {
        if isJSON {
            print(try prettyJSON())
        } else {
            for line in lines { print(line.printable) }
        }
    }

    private var lines: [String] {
        let isEmpty = cameras.isEmpty && libraryCameras.isEmpty
        var lines = ["Cameras" + (isEmpty ? ": none" : "")] + cameras.flatMap(\.lines)
        lines += libraryCameras.flatMap(CameraListing.lines)
        if !names.isEmpty { lines.append("Names") }
        lines += names.sorted { $0.key < $1.key }.map { "  \($0)  \($1)" }
        for (title, devices) in [("Microphones", microphones), ("Speakers", speakers)] {
            lines.append(title + (devices.isEmpty ? ": none" : ""))
            lines += devices.map(Self.line)
        }
        return lines
    }

    /// The name to write down, the name to show, and the one of the sound system if that is another.
    private static func line(_ device: AudioDevice) -> String {
        let present = device.identifier == device.lastingName ? [] : [device.identifier]
        let remarks = present + (device.isDefault ? ["default"] : [])
        return "  \(device.lastingName)  \(device.name)"
            + (remarks.isEmpty ? "" : "  (\(remarks.joined(separator: ", ")))")
    }
}
