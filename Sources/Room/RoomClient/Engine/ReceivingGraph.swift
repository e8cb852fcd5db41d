internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol

/// The graph that decodes the packets of one stream to frames or audio.
enum ReceivingGraph {
    /// Node names.
    static let input = "in"
    static let view = "view"
    static let speaker = "speaker"

    static func make(_ codec: Codec, payloadType: UInt8, isAudible: Bool) -> MediaGraph {
        MediaGraph {
            switch codec {
            case .vp8, .h264, .vp9:
                Chain {
                    Node.rtpInput(input, codec: VideoCodec(codec) ?? .vp8, payloadType: payloadType)
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

    /// Loads the plugins for receiving, once per process, in the background. The first pipeline of a process takes 20
    /// to 45 ms (VP8) or 65 to 120 ms (H.264) to create, later ones 1 to 3 ms. The first frame should not wait for
    /// that.
    static func warmUp() { _ = warmth }

    private static let warmth = Task.detached(priority: .userInitiated) {
        for codec in Codec.allCases {
            var bindings = NodeBindings()
            if codec.media == .video { bindings.frames[view] = { _ in } }
            // A missing element is reported when a stream needs it.
            _ = try? await MediaPipeline(
                make(codec, payloadType: codec.payloadType, isAudible: false), bindings: bindings)
        }
    }
}
