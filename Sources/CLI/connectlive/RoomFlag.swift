internal import ArgumentParser
internal import RoomProtocol

/// The room, checked as soon as the command line is read.
struct RoomFlag: ParsableArguments {
    @Option(help: "Room: 1 to 32 letters, digits and hyphens.") var room: String

    func validate() throws {
        do throws(RoomError) {
            _ = try RoomName(room)
        } catch {
            throw ValidationError("\(error)")
        }
    }
}
