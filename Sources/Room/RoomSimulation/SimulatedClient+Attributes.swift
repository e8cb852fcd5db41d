internal import ClientCore
package import RoomProtocol

extension SimulatedClient {
    /// Changes the attributes of a video that this client publishes.
    package func change(_ stream: Int, _ change: StreamChange) { connection?.setStream(stream, change) }

    /// Pauses a watched video, or lets it go on.
    package func setPaused(_ isPaused: Bool, _ stream: Int) {
        connection?.setView(StreamView(isPaused: isPaused), of: stream) { _ in }
    }

    /// The ids of the videos that it publishes.
    package var published: [Int] { sources.compactMap(\.stream) }
}
