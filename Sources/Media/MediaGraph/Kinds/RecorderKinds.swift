/// Nodes that write media to files.
extension NodeKind {
    static let recorders: [NodeKind] = [recorder]

    public static let recorder = NodeKind(
        "recorder", .recorder,
        "Records encoded video and audio to a file that is always playable, even if the process is killed",
        inputs: [
            Port(
                "video", [.encodedVideo], encodings: ["h264", "vp8", "vp9", "av1", "h265", "mjpeg"], isRequired: false),
            Port(
                "audio", [.encodedAudio],
                encodings: ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"], isRequired: false),
        ],
        settings: [
            SettingContract(
                "path", .text, isRequired: true,
                "The file to write, which replaces an existing one; for HLS the playlist, with its segments beside it"
            ).writtenAsPath(example: "recording.mkv").naming(.writes),
            SettingContract(
                "format", .choice(["auto", "matroska", "mp4", "webm", "hls"]), default: "auto",
                "Container; auto follows the file's extension: .webm, .mp4 (fragmented), .m3u8, otherwise Matroska"),
            SettingContract(
                "segment", .integer(1...60), default: 4, unit: "s", "Length of HLS segments"),
        ])
}

extension Node {
    /// Records what comes to its ports `video` and `audio`; the file's ending says in which container.
    public static func recorder(_ name: String = "recorder", path: String) -> Node {
        Node("recorder", name: name, given: ["path": .text(path)])
    }
}
