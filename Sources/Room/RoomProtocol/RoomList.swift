/// The response to `GET /v1/rooms`: the rooms of a server with their participants, by name.
package struct RoomList: Codable, Sendable, Equatable {
    package struct Room: Codable, Sendable, Equatable {
        package var name: String
        /// In the order of joining, one loop after the other.
        package var participants: [Participant]

        package init(name: String, participants: [Participant]) {
            self.name = name
            self.participants = participants
        }
    }

    package struct Participant: Codable, Sendable, Equatable {
        package var id: String
        /// How many streams it publishes.
        package var streams: Int
        /// How many of them the server records. Nil from a server that never records.
        package var recordings: Int?
        /// False while its connection is lost, and it may still return.
        package var isConnected: Bool

        package init(id: String, streams: Int, recordings: Int? = nil, isConnected: Bool) {
            self.id = id
            self.streams = streams
            self.recordings = recordings
            self.isConnected = isConnected
        }
    }

    package var rooms: [Room]

    package init(rooms: [Room]) { self.rooms = rooms }
}

/// The response to `DELETE /v1/rooms/NAME` and `DELETE /v1/rooms/NAME/participants/ID`.
package struct Removal: Codable, Sendable, Equatable {
    /// The ids of the participants that were removed.
    package var participants: [String]

    package init(participants: [String]) { self.participants = participants }
}
