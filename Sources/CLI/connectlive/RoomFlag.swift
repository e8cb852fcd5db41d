internal import ArgumentParser
internal import RoomProtocol

/// How long a command runs.
struct SecondsFlag: ParsableArguments {
    // Unconditional, so that a negative number is a value.
    @Option(parsing: .unconditional, help: "End after this many seconds (default: run until Ctrl-C).")
    var seconds: Double?

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds <= 31_536_000) {
            throw ValidationError("--seconds must be more than 0 and at most 31536000, which is a year.")
        }
    }
}

/// The room's name, checked when the command line is parsed.
struct RoomFlag: ParsableArguments {
    @Option(help: "Room: 1 to 32 letters, digits and hyphens.") var room: String

    // Unconditional, so that a negative number is a value.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Give up after this long without the server or without media, 0 to 86400; 0 gives up when the server or "
                + "a session of media is lost.",
            valueName: "seconds"))
    var reconnectSeconds = 120

    func validate() throws {
        try Self.check(room)
        guard (0...86400).contains(reconnectSeconds) else {
            throw ValidationError("--reconnect-seconds must be 0 to 86400.")
        }
    }

    static func check(_ room: String) throws {
        do throws(RoomError) {
            _ = try RoomName(room)
        } catch {
            throw ValidationError("\(error)")
        }
    }
}
