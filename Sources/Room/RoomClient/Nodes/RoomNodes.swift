package import MediaGraph
package import MediaNodes

/// The nodes of a graph that meet a room. They stand here, and not among the built-in ones, because Media knows no room.
package enum RoomNodes {
    package static let types: [any NodeType.Type] = [PublishNode.self, SubscribeNode.self]

    /// The built-in nodes and these.
    package static let registry = NodeRegistry.builtIn.adding(types)
}

extension NodeKind {
    private static let access: [SettingContract] = [
        SettingContract("room", .text, isRequired: true, "Name of the room")
            .written("[A-Za-z0-9-]{1,32}", "1 to 32 letters, digits and hyphens, such as kitchen")
            .example("kitchen"),
        SettingContract(
            "server", .text, default: "",
            "Server; else CONNECTLIVE_SERVER, else the one that 'connectlive serve' left"
        ).written(
            #"(?:(?:[Ww][Ss]|[Hh][Tt][Tt][Pp])://)?[^\s/@?#]+/?"#, "ws://HOST:PORT; TLS (wss://) is not built"),
        SettingContract(
            "service-id", .text, default: "", "Service id; else CONNECTLIVE_SERVICE_ID, else the one that serve left"),
        SettingContract(
            "service-secret", .text, default: "", isSecret: true,
            "Service secret; else CONNECTLIVE_SERVICE_SECRET, else the one that serve left"),
        SettingContract("token", .text, default: "", isSecret: true, "Access token in place of the secret"),
    ]

    /// A participant that publishes what comes in.
    package static let publish = NodeKind(
        "publish", .transport, "Publishes into a room, as a participant of its own",
        inputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: access + [
            SettingContract("label", .text, default: "", "Free text that everyone in the room sees beside the streams")
        ])

    /// A participant that watches somebody.
    package static let subscribe = NodeKind(
        "subscribe", .transport, "Takes the video and the sound of somebody in a room",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus"], isRequired: false),
        ],
        settings: access + [
            SettingContract(
                "participant", .text, default: "",
                "Whom to watch, by the id that the server gave; empty for the first who publishes"),
            SettingContract(
                "own", .flag, default: true,
                "Whether it may be what this same program publishes; false for whoever also talks"),
            SettingContract("codec", .choice(["vp8", "h264"]), default: "vp8", "How the video is encoded"),
            SettingContract(
                "latency", .integer(0...5000), default: 200, unit: "ms", "Longest wait for a packet to be repaired"),
        ])
}
