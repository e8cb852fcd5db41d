internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol

/// The graph that decodes the packets of one video to frames.
enum ReceivingGraph {
    /// Node names.
    static let input = "in"
    static let view = "view"

    static func make(_ codec: VideoCodec, payloadType: UInt8) -> MediaGraph {
        MediaGraph {
            Chain {
                Node.rtpInput(input, codec: codec, payloadType: payloadType)
                Node.videoDecoder()
                Node.frames(view)
            }
        }
    }

    /// Loads the plugins for receiving, once per process, in the background. The first pipeline of a process takes 20
    /// to 45 ms (VP8) or 65 to 120 ms (H.264) to create, later ones 1 to 3 ms. The first frame should not wait for
    /// that.
    static func warmUp() { _ = warmth }

    private static let warmth = Task.detached(priority: .userInitiated) {
        // A missing element is reported when a stream needs it.
        for codec in Codec.allCases {
            guard let video = VideoCodec(codec) else { continue }
            var bindings = NodeBindings()
            bindings.frames[view] = { _ in }
            _ = try? await MediaPipeline(make(video, payloadType: codec.payloadType), bindings: bindings)
        }
        _ = try? await MediaPipeline(
            SoundGraph.make(slots: 1, isAudible: false), bindings: NodeBindings(), registry: SoundGraph.registry)
    }
}
