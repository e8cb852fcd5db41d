internal import ClientCore
package import RoomProtocol

extension SimulatedClient {
    /// Changes the attributes of a video that this client publishes.
    package func change(_ stream: Int, _ change: StreamChange) { connection?.setStream(stream, change) }

    /// The ids of the videos that it publishes.
    package var published: [Int] { sources.compactMap(\.stream) }
}
