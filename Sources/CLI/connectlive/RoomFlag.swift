internal import ArgumentParser
internal import RoomProtocol

/// How long a command runs; without it until Ctrl-C.
struct SecondsFlag: ParsableArguments {
    @Option(help: "End after so many seconds.") var seconds: Double?

    func validate() throws {
        if let seconds, !(seconds.isFinite && (0...31_536_000).contains(seconds)) {
            throw ValidationError("--seconds takes 0 to 31536000 seconds, a year.")
        }
    }
}

/// The room, checked as soon as the command line is read.
struct RoomFlag: ParsableArguments {
    @Option(help: "Room: 1 to 32 letters, digits and hyphens.") var room: String

    func validate() throws { try Self.check(room) }

    static func check(_ room: String) throws {
        do throws(RoomError) {
            _ = try RoomName(room)
        } catch {
            throw ValidationError("\(error)")
        }
    }
}
