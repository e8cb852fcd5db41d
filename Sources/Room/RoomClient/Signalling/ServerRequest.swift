internal import Foundation
package import RoomProtocol

/// A request of an administrator, with the service's secret.
///
/// Its calls throw 1305 if the server is unreachable, and the server's error if it refuses.
package struct ServerRequest: Sendable {
    private let location: ServerLocation

    package init(to location: ServerLocation) { self.location = location }

    package func statistics() async throws(RoomError) -> ServerStatistics {
        try await answer(.get, Signalling.statisticsPath)
    }

    /// The rooms and their participants.
    package func rooms() async throws(RoomError) -> RoomList { try await answer(.get, Signalling.roomsPath) }

    /// Ends a room, with all participants.
    package func end(_ room: RoomName) async throws(RoomError) -> Removal {
        try await answer(.delete, "\(Signalling.roomsPath)/\(room)")
    }

    /// Removes a participant from a room.
    package func remove(_ participant: String, from room: RoomName) async throws(RoomError) -> Removal {
        let id = participant.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        return try await answer(.delete, "\(Signalling.roomsPath)/\(room)/participants/\(id)")
    }

    private func answer<Body: Decodable>(_ method: HTTPExchange.Method, _ path: String) async throws(RoomError) -> Body
    {
        let key = Data("\(location.serviceId):\(location.serviceSecret ?? "")".utf8).base64EncodedString()
        let answer = try await HTTPExchange(method, path, authorization: "Basic \(key)").run(
            at: location.address, trusting: location.trust)
        let body = Data(answer.body.utf8)
        if answer.status == 200, let value = try? JSONDecoder().decode(Body.self, from: body) { return value }
        if let problem = try? JSONDecoder().decode(Problem.self, from: body) { throw problem.error }
        throw RoomError(
            .versionUnsupported,
            "The server \(location.address) answers \(method.rawValue) \(path) with HTTP status \(answer.status), which "
                + "this program cannot read. Use the same release on both ends.")
    }
}
