internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol

/// The graph that plays the audio of all rooms of the process.
///
/// Each slot decodes one audio stream after another, without a change of the graph. A mixer joins them for the one loudspeaker,
/// and the microphone's echo canceller hears the mix by its label.
enum SoundGraph {
    static let mixer = "mixer"
    static let probe = "echo-probe"
    static let speaker = "speaker"
    /// By which the echo canceller of a microphone knows the mix.
    static let label = "connectlive rooms"
    /// Of all packets, which `PacketSplice` writes into them.
    static let payloadType: UInt8 = 111

    static func input(_ slot: Int) -> String { "in\(slot + 1)" }
    static func slot(_ slot: Int) -> String { "slot\(slot + 1)" }

    static let registry = NodeRegistry.builtIn.adding([SoundSlotNode.self])

    /// - Parameters:
    ///   - isAudible: whether a loudspeaker plays the audio. It is decoded and measured either way.
    ///   - use: how the process uses the loudspeaker.
    ///   - end: the loudspeaker, which a test replaces.
    static func make(
        slots: Int, isAudible: Bool, _ use: SoundUse.Playing = SoundUse.Playing(), end: Node? = nil
    ) -> MediaGraph {
        let end = end ?? .speaker(speaker, buffer: use.buffer, role: use.role)
        return MediaGraph {
            for slot in 0..<slots {
                Chain {
                    Node.rtpInput(input(slot), codec: AudioCodec.opus, payloadType: payloadType)
                    Node.audioDecoder("decoder\(slot + 1)")
                    Node.soundSlot(Self.slot(slot))
                    if isAudible { Join(mixer, port: "in\(slot + 1)") } else { Node.null("end\(slot + 1)") }
                }
            }
            if isAudible {
                Chain {
                    // Audio that waits for its video is ahead of the others' by as much.
                    Node.audioMixer(mixer, waiting: 200 + Int(LipSync.maximum * 1000))
                    Node.echoProbe(probe, label: label)
                    end
                }
            }
        }
    }
}
