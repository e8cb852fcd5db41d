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
        discussion: "'devices CAMERA' describes one camera, also a recorded one (fixture:FILE). 'devices bind' gives a "
            + "camera a name of your own.",
        subcommands: [ListCommand.self, BindCommand.self, UnbindCommand.self], defaultSubcommand: ListCommand.self)

    struct ListCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List them (the default), or describe the named cameras.")

        @Argument(
            help: ArgumentHelp(
                "Describe only these cameras: names, paths such as /dev/video0, or fixture:FILE for a recorded one.",
                valueName: "camera"))
        var cameras: [String] = []

        @Flag(help: "Print JSON.") var json = false

        /// A misspelt command is not a camera, unless the user has given the name to one.
        func validate() throws {
            guard let word = cameras.first, word.nearest(among: ["list", "bind", "unbind", "help"]) != nil,
                (try? CameraSystem.machine.bound(word)) ?? word == word
            else { return }
            throw ValidationError("There is no command \"\(word)\".")
        }

        func run() throws {
            guard cameras.isEmpty else { return try DevicesReport(of: cameras).show(asJSON: json) }
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
            let (lasting, isPresent) = try Self.lasting(camera, with: values, of: .machine)
            let binding = CameraBindings.Binding(lasting, controls: controls)
            let former = try CameraBindings.ofUser.bind(name, to: binding)
            let change = former.flatMap { $0 == binding ? nil : " It was \($0)." } ?? ""
            print("\(name) is \(binding).\(change) To remove the name: connectlive devices unbind \(name)".printable)
            guard !isPresent, !Self.isSound(lasting) else { return }
            Console.error(
                "warning: \(lasting) is not plugged in. 'connectlive devices' lists the names of the devices that are.")
        }

        /// Whether a microphone or loudspeaker has the name.
        private static func isSound(_ name: String) -> Bool {
            let (microphones, speakers) = Devices.sound()
            return (microphones + speakers).contains { $0.lastingName == name || $0.otherNames.contains(name) }
        }

        /// The name of a camera that stays the same, and whether the camera is there. One that is not has to be written as such a name.
        ///
        /// - Throws: `camera.control` if the camera is plugged in and does not take the values.
        static func lasting(
            _ camera: String, with values: ControlValues, of system: CameraSystem
        ) throws(MediaError) -> (name: String, isPresent: Bool) {
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
                return (isRecorded ? camera : opened.place.name, true)
            } catch {
                let isLasting =
                    isRecorded || CameraPlace.isKernelPort(camera)
                    || ["serial:", "usb-", "model:"].contains { camera.hasPrefix($0) }
                guard isLasting, error.code == MediaError.Code.cameraAbsent else { throw error }
                return (camera, false)
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
    let cameras: [CameraListing]
    /// Cameras behind libcamera, such as a Raspberry Pi's.
    let libraryCameras: [LibraryCamera]
    /// Cameras by the names of this user.
    let names: [String: CameraBindings.Binding]
    let microphones: [AudioDevice]
    let speakers: [AudioDevice]
    private let isWhole: Bool

    private enum CodingKeys: String, CodingKey { case cameras, libraryCameras, names, microphones, speakers }

    /// A few cameras, and nothing else.
    ///
    /// - Throws: `camera.absent` and others of a camera that cannot be described.
    init(of cameras: [String]) throws(MediaError) {
        let isOfLibrary = { (name: String) in name == "libcamera" || name.hasPrefix("libcamera:") }
        self.cameras = try cameras.filter { !isOfLibrary($0) }.map { (name) throws(MediaError) in
            try CameraListing(named: name)
        }
        var libraryCameras: [LibraryCamera] = []
        for name in cameras where isOfLibrary(name) {
            let found = Devices.libraryCameras().filter { name == "libcamera" || name == $0.name }
            guard !found.isEmpty else {
                throw MediaError(
                    code: MediaError.Code.cameraAbsent,
                    message:
                        "libcamera has no camera \(name). 'connectlive devices' lists its cameras, if GStreamer's plugin for "
                        + "libcamera is installed.")
            }
            libraryCameras += found
        }
        self.libraryCameras = libraryCameras
        (names, microphones, speakers, isWhole) = ([:], [], [], false)
    }

    init(names: [String: CameraBindings.Binding]) {
        (cameras, libraryCameras) = (CameraListing.all(), Devices.libraryCameras())
        (self.names, isWhole) = (names, true)
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
        guard isWhole else { return lines }
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
