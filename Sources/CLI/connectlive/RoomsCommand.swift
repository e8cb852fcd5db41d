internal import ArgumentParser
internal import Foundation
internal import RoomClient
internal import RoomProtocol

/// The rooms of a server, for its administrator.
struct RoomsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rooms", abstract: "List the rooms of a server, end one, or remove a participant.",
        discussion:
            "Clients that were removed do not return by themselves. Everyone with the service's secret, or at the page of an "
            + "open server, can join again.",
        subcommands: [ListCommand.self, EndCommand.self, RemoveCommand.self], defaultSubcommand: ListCommand.self,
        aliases: ["room"])

    struct ListCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the rooms and their participants (the default).")

        @OptionGroup var server: ServerFlags

        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            let list = try await ServerRequest(to: server.location()).rooms()
            guard !json else {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
                return Console.say(String(decoding: try encoder.encode(list), as: UTF8.self))
            }
            for line in Self.lines(list) { Console.say(line) }
        }

        /// A line for each participant. The texts come from the server.
        static func lines(_ list: RoomList) -> [String] {
            guard !list.rooms.isEmpty else { return ["Nobody is in a room."] }
            var table = Table(.left, .left, .right, .left)
            table.add("ROOM", "PARTICIPANT", "STREAMS", "")
            for room in list.rooms {
                for participant in room.participants {
                    table.add(
                        room.name, participant.id, "\(participant.streams)",
                        notes(on: participant))
                }
            }
            return table.lines().map(\.printable)
        }

        private static func notes(on participant: RoomList.Participant) -> String {
            var notes: [String] = []
            if let count = participant.recordings, count > 0 { notes.append(Figures.count(count, "recording")) }
            if !participant.isConnected { notes.append("connection lost") }
            return notes.joined(separator: ", ")
        }
    }

    struct EndCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "end", abstract: "End a room: remove all of its participants.", aliases: ["destroy"])

        @Argument(help: "The room.", transform: { try RoomName(checked: $0) }) var room: RoomName

        @OptionGroup var server: ServerFlags

        func run() async throws {
            let removal = try await ServerRequest(to: server.location()).end(room)
            Console.say("The room \(room) ended with \(Figures.count(removal.participants.count, "participant")).")
        }
    }

    struct RemoveCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Remove a participant from a room.", aliases: ["kick"])

        @Argument(help: "The room.", transform: { try RoomName(checked: $0) }) var room: RoomName

        @Argument(help: "The participant's id, as 'connectlive rooms' lists it.") var participant: String

        @OptionGroup var server: ServerFlags

        func run() async throws {
            _ = try await ServerRequest(to: server.location()).remove(participant, from: room)
            Console.say("\(participant) was removed from the room \(room).")
        }
    }
}

extension RoomName {
    /// Throws the parser's error for a name that no room can have.
    fileprivate init(checked text: String) throws {
        try RoomFlag.check(text)
        try self.init(text)
    }
}
