internal import ClientCore
package import RoomProtocol

// The requests of an application.
extension SimulatedClient {
    /// Sends a text to others, without waiting.
    ///
    /// - Parameter then: called with the result, unless the client is killed before
    package func send(_ message: SendMessage, then: @escaping (Result<Void, RoomError>) -> Void = { _ in }) {
        guard let connection else { return then(.failure(RoomError(.roomReleased, "\(name) is in no room."))) }
        connection.send(message, then: then)
    }

    /// Changes the attributes of a video that this client publishes.
    package func change(_ stream: Int, _ change: StreamChange) { connection?.setStream(stream, change) }

    /// Pauses a watched video, or lets it go on.
    package func setPaused(_ isPaused: Bool, _ stream: Int) {
        connection?.setView(StreamView(isPaused: isPaused), of: stream) { _ in }
    }

    /// The ids of the videos that it publishes.
    package var published: [Int] { sources.compactMap(\.stream) }
}
