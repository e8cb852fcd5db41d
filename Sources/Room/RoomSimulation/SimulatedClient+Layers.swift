internal import ClientCore
internal import PeerSession
package import RoomProtocol

/// A client's video with simulcast, and its views of others.
extension SimulatedClient {
    /// Publishes a video with simulcast: up to three layers, lowest first. Returns the id of its stream.
    ///
    /// - Throws: if the client is in no room, or the server refuses.
    @discardableResult
    public func publish(layers: [VideoLayer]) async throws -> Int {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let peer = try makePeer(connection.upRequest())
        let camera = LayeredCamera(layers, of: self, on: connection, peer: peer, in: simulation)
        self.camera = camera
        var stream = 0
        try await suspend { suspension in
            camera.publish { result in
                stream = (try? result.get()) ?? 0
                suspension.finish(result.map { _ in })
            }
        }
        simulation.published(stream, by: camera)
        return stream
    }

    /// Stops a layer of its video with simulcast, as a browser does while bandwidth or processor time is short, or continues
    /// it.
    public func setLayer(_ layer: Int, isDelivered: Bool) { camera?.setDelivered(isDelivered, layer: layer) }

    /// The rids of the layers that the server wants of its video with simulcast, of `q`, `h` and `f`. Nil means all.
    public var wantedLayers: [String]? { camera?.asked }

    /// The rate of one layer of its video with simulcast at most, in bits per second, as the server told it. Nil for all of it.
    public var layerLimit: Int? { camera?.limit }

    /// Frames that each layer of its video with simulcast has sent.
    public var layerFrames: [Int] { camera?.frames ?? [] }

    /// The server's requests for keyframes of each layer.
    public var layerKeyframeRequests: [Int] { camera?.keyframeRequests ?? [] }

    /// Sets what the server chooses a subscribed video's layer by.
    ///
    /// - Throws: if the client is in no room, or the server refuses.
    public func setView(
        of stream: Int, profile: ViewProfile? = nil, width: Int? = nil, height: Int? = nil, priority: Double? = nil
    ) async throws {
        try await setView(
            StreamView(
                profile: profile.flatMap { StreamView.Profile(rawValue: $0.rawValue) }, width: width, height: height,
                priority: priority), of: stream)
    }

    package func setView(_ view: StreamView, of stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        try await suspend { suspension in
            connection.setView(view, of: stream) { result in
                suspension.finish(result)
            }
        }
    }

    /// A cap by the order of a video's layers.
    public enum ViewProfile: String, Sendable {
        /// From the lowest layer to the highest.
        case low, mid, high
    }
}
