public import MediaNodes
internal import RoomClient

/// Publishes media into a room, as a participant of its own. Raw media is encoded first, as VP8 and Opus.
public struct Publish: MediaNode {
    public var handle: NodeHandle

    /// A node that joins a room and publishes its inputs. It fails when it starts, not here.
    ///
    /// - Parameters:
    ///   - room: 1 to 32 letters, digits and hyphens.
    ///   - access: the server and the credentials; nil for those of the environment or of `connectlive serve`.
    ///   - label: free text that all participants see beside the streams.
    ///   - degradation: the property that video keeps, if it is encoded for this node, when the network carries less or the machine is too
    ///     slow; nil for `detail` of screens and `motion` of others.
    ///   - layers: the sizes in which the video is encoded and sent, 1 to 3: 2 adds half of width and height, 3 also a quarter.
    ///     Nil for one.
    public init(
        room: String, access: RoomAccess? = nil, label: String? = nil, degradation: Degradation? = nil,
        layers: Int? = nil
    ) {
        var settings = RoomAccess.settings(room, access)
        settings["label"] = label
        settings["degradation"] = degradation?.rawValue
        settings["layers"] = layers
        handle = NodeHandle(RoomNodes.publish, settings)
    }

    /// The input for video. Raw video is encoded as VP8.
    public var video: NodeInput { input(named: "video") }
    /// The input for audio. Raw audio is encoded as Opus.
    public var audio: NodeInput { input(named: "audio") }

    /// Changes the property that video keeps, if it is encoded for this node, when the network carries less or the machine is too slow.
    ///
    /// - Throws: `node.not-running`.
    public func setDegradation(_ degradation: Degradation) async throws(MediaError) {
        try await change("degradation", to: degradation.rawValue)
    }
}

/// Receives the video and audio of one participant of a room. When that one leaves, it receives the next publisher, unless
/// it has the id of a participant.
public struct Subscribe: MediaNode {
    public var handle: NodeHandle

    /// A node that joins a room and receives one participant. It fails when it starts, not here.
    ///
    /// - Parameters:
    ///   - room: 1 to 32 letters, digits and hyphens.
    ///   - participant: the id of the participant; nil for the first publisher.
    ///   - receivesOwn: whether to receive participants of this same program too; false avoids hearing oneself.
    ///   - latency: the longest wait for the repair of a lost packet of video, without a playout delay. Nil for up to 400
    ///     ms, and a playout delay that follows jitter and repairs.
    ///   - access: the server and the credentials; nil for those of the environment or of `connectlive serve`.
    public init(
        room: String, participant: String? = nil, codec: VideoCodec? = nil, receivesOwn: Bool? = nil,
        latency: Duration? = nil, access: RoomAccess? = nil
    ) {
        var settings = RoomAccess.settings(room, access)
        settings["participant"] = participant
        settings["codec"] = codec?.rawValue
        settings["own"] = receivesOwn
        settings["latency"] = latency?.inMilliseconds
        handle = NodeHandle(RoomNodes.subscribe, settings)
    }

    /// The video that the participant publishes.
    public var video: NodeOutput { output(named: "video") }
    /// The audio that the participant publishes.
    public var audio: NodeOutput { output(named: "audio") }
}

/// The server of a room, and the credentials for it. Nil values come from the environment or from `connectlive serve`.
public struct RoomAccess: Sendable {
    /// The address of the server: `ws://HOST:PORT`, or `wss://HOST` with TLS.
    public var server: String?
    /// The id of the service.
    public var serviceId: String?
    /// The secret of the service.
    public var serviceSecret: String?
    /// An access token, instead of the secret.
    public var token: String?

    /// Access with these values, and with those of the environment for the others.
    public init(
        server: String? = nil, serviceId: String? = nil, serviceSecret: String? = nil, token: String? = nil
    ) {
        (self.server, self.serviceId, self.serviceSecret, self.token) = (server, serviceId, serviceSecret, token)
    }

    fileprivate static func settings(
        _ room: String, _ access: RoomAccess?
    ) -> [String: (any SettingRepresentable)?] {
        [
            "room": room, "server": access?.server, "service-id": access?.serviceId,
            "service-secret": access?.serviceSecret, "token": access?.token,
        ]
    }
}

extension NodeRegistry {
    /// The built-in nodes and the room nodes `publish` and `subscribe`, for graphs of files:
    ///
    /// ```swift
    /// let pipeline = try await MediaPipeline(document.graph, registry: .withRooms)
    /// ```
    public static var withRooms: NodeRegistry { RoomNodes.registry }
}
