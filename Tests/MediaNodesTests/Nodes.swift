import MediaGraph

// Nodes with a name, for graphs as values; programs use the handles.
extension Node {
    static func rtsp(_ name: String = "rtsp", url: String) -> Node { made("rtsp", name, ["url": .text(url)]) }

    static func scale(
        _ name: String = "scale", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil
    ) -> Node {
        made(
            "scale", name,
            [
                "width": width.map { .integer($0) }, "height": height.map { .integer($0) },
                "fps": framesPerSecond.map { .number($0) },
            ])
    }

    static func recorder(_ name: String = "recorder", path: String) -> Node {
        made("recorder", name, ["path": .text(path)])
    }

    static func snapshot(_ name: String = "snapshot", path: String, frame: Int? = nil) -> Node {
        made("snapshot", name, ["path": .text(path), "frame": frame.map { .integer($0) }])
    }

    static func rtpOutput(_ name: String, payloadType: Int? = nil, ssrc: Int? = nil) -> Node {
        made("rtp-output", name, ["payload-type": payloadType.map { .integer($0) }, "ssrc": ssrc.map { .integer($0) }])
    }

    private static func made(_ kind: String, _ name: String, _ settings: [String: SettingValue?]) -> Node {
        Node(kind, name: name, settings: settings.compactMapValues { $0 })
    }
}
