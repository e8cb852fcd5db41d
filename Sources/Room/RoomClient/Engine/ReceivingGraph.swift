internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol

/// From the packets of one stream to its pictures or its sound.
enum ReceivingGraph {
    /// Names of the nodes.
    static let input = "in"
    static let view = "view"
    static let speaker = "speaker"

    static func make(_ codec: Codec, payloadType: UInt8, isAudible: Bool) -> MediaGraph {
        MediaGraph {
            switch codec {
            case .vp8, .h264:
                Chain {
                    Node.rtpInput(input, codec: codec == .vp8 ? VideoCodec.vp8 : .h264, payloadType: payloadType)
                    Node.videoDecoder()
                    Node.frames(view)
                }
            case .opus:
                Chain {
                    Node.rtpInput(input, codec: AudioCodec.opus, payloadType: payloadType)
                    Node.audioDecoder()
                    if isAudible { Node.speaker(speaker) } else { Node.null(speaker) }
                }
            }
        }
    }

    /// Loads the plugins that receiving takes, once in a process, in the background: the first pipeline of a process
    /// takes 20 to 45 ms (VP8) or 65 to 120 ms (H.264) to make, later ones 1 to 3 ms, and the first picture should not
    /// wait for that.
    static func warmUp() { _ = warmth }

    private static let warmth = Task.detached(priority: .userInitiated) {
        for codec in Codec.allCases {
            var bindings = NodeBindings()
            if codec.media == .video { bindings.frames[view] = { _ in } }
            // What is missing on this machine is told when a stream needs it.
            _ = try? await MediaPipeline(
                make(codec, payloadType: codec.payloadType, isAudible: false), bindings: bindings)
        }
    }
}
