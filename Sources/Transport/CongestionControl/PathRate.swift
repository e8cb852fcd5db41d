/// Converts between rates of media and of the path that carries it, in bits per second. Rates of the *path* count the
/// headers of all layers, rates of *media* do not.
package enum PathRate {
    /// The bytes that SRTP's tag, UDP and IPv4 add to an RTP packet.
    package static let packetOverhead = 44
    /// The bytes that these and RTP, with extensions and the codec's descriptor, add to media.
    private static let mediaOverhead = 67.0
    private static let packetLength = 1180.0
    /// The last packet of a frame is half full.
    private static let framesPerSecond = 25.0
    private static let frameOverhead = mediaOverhead * framesPerSecond / 2 * 8
    private static let audioPacketsPerSecond = 50.0

    /// The rate of a path that media of this rate needs.
    package static func ofMedia(_ rate: Double) -> Double { rate / (1 - mediaOverhead / packetLength) + frameOverhead }

    /// The rate of media for which a path of this rate has room.
    package static func media(onPath rate: Double) -> Double {
        max(0, rate - frameOverhead) * (1 - mediaOverhead / packetLength)
    }

    /// The rate of a path that audio of this rate needs, in packets of 20 ms.
    package static func ofAudio(_ rate: Double) -> Double { rate + mediaOverhead * audioPacketsPerSecond * 8 }
}
