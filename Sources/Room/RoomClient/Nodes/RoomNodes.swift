package import MediaGraph
package import MediaNodes

/// The nodes of a graph that use a room. They are not built-in nodes because Media does not know rooms.
package enum RoomNodes {
    package static let types: [any NodeType.Type] = [PublishNode.self, SubscribeNode.self]

    /// The built-in nodes and the room nodes.
    package static let registry = NodeRegistry.builtIn.adding(types)
}

extension NodeKind {
    private static let access: [SettingContract] = [
        SettingContract("room", .text, isRequired: true, "Name of the room")
            .written("[A-Za-z0-9-]{1,32}", "1 to 32 letters, digits and hyphens, such as kitchen")
            .example("kitchen"),
        SettingContract(
            "server", .text, default: "",
            "Server (default: CONNECTLIVE_SERVER, else the server of 'connectlive serve')"
        ).written(
            #"(?:(?:[Ww][Ss]|[Hh][Tt][Tt][Pp])://)?[^\s/@?#]+/?"#, "ws://HOST:PORT; TLS (wss://) is not supported"),
        SettingContract(
            "service-id", .text, default: "",
            "Service id (default: CONNECTLIVE_SERVICE_ID, else that of 'connectlive serve')"),
        SettingContract(
            "service-secret", .text, default: "", isSecret: true,
            "Service secret (default: CONNECTLIVE_SERVICE_SECRET, else that of 'connectlive serve')"),
        SettingContract("token", .text, default: "", isSecret: true, "Access token instead of the secret"),
    ]

    /// A participant that publishes its input.
    package static let publish = NodeKind(
        "publish", .transport, "Publishes to a room, as a participant of its own",
        inputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: access + [
            SettingContract("label", .text, default: "", "Free text that all participants see beside the streams")
        ])

    /// A participant that receives the streams of another one.
    package static let subscribe = NodeKind(
        "subscribe", .transport, "Receives the video and audio of one participant of a room",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: access + [
            SettingContract(
                "participant", .text, default: "",
                "Id of the participant to receive (default: the first publisher)"),
            SettingContract(
                "own", .flag, default: true,
                "Whether to receive participants of this same program too; false avoids hearing oneself"),
            SettingContract("codec", .choice(["vp8", "h264"]), default: "vp8", "Codec of the video"),
            SettingContract(
                "latency", .integer(0...5000), default: 200, unit: "ms",
                "Longest wait for the repair of a lost packet"),
        ])
}
