internal import ClientCore
package import RoomProtocol

extension SimulatedClient {
    /// Sends a text to others, without waiting.
    ///
    /// - Parameter then: called with the result, unless the client is killed before
    package func send(_ message: SendMessage, then: @escaping (Result<Void, RoomError>) -> Void = { _ in }) {
        guard let connection else { return then(.failure(RoomError(.roomReleased, "\(name) is in no room."))) }
        connection.send(message, then: then)
    }
}
