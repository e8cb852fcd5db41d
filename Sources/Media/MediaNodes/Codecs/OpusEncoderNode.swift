import GStreamerKit
import Glibc
public import MediaGraph
import Synchronization

/// Opus in packets of 20 ms. Its in-band error correction repairs single losses without retransmission.
enum OpusEncoderNode: NodeType {
    static let kind = NodeKind(
        "opus-encoder", .codec, "Opus in packets of 20 ms, with in-band forward error correction",
        inputs: .rawAudioIn, outputs: [Port("out", [.encodedAudio], encodings: ["opus"])],
        settings: [
            SettingContract(
                "bitrate", .integer(leastBitrate...510_000), default: 64_000, isChangeable: true, unit: "bit/s",
                "Bitrate"),
            SettingContract(
                "expected-loss", .integer(0...100), unit: "%",
                "Expected loss, for the error correction (default: in a room, 2 to 30 by the server's reports; 10 before, and "
                    + "elsewhere)"),
            SettingContract(
                "dtx", .flag, default: false,
                "Sends nothing in silence but a packet each 400 ms (DTX); a room forwards the pauses"),
        ])
    static let leastBitrate = 6_000
    /// Before there are reports.
    private static let usualLoss = 10
    /// Seconds of audio in a packet.
    private static let packet = 0.02
    /// A packet waits for the buffer with its end. That takes the packet's length minus the audio that arrived with its
    /// beginning: half of it, for buffers of 10 ms from a microphone, and on average also for the longer ones of files.
    /// The codec's look-ahead (6.5 ms, RFC 6716, section 2.1.1) does not count: timestamps follow the encoded audio,
    /// and a decoder delivers it that much later.
    private static let latency = packet / 2

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("opusenc")
        let bitrate = request.integer("bitrate")
        let dtx = request.flag("dtx")
        var plan = NodePlan(request.node)
        // The capturing thread should not encode.
        plan.addQueue(as: "queue", .rawSound, holding: nil)
        plan.add(
            "opusenc", as: "encoder",
            [
                "bitrate": .integer(bitrate), "inband-fec": true, "frame-size": "20",
                "packet-loss-percentage": .integer(request.optionalInteger("expected-loss") ?? usualLoss),
                "dtx": .flag(dtx), "audio-type": "voice",
                // At a constant bitrate, silence would be padded instead of left out.
                // At low bitrates, all of the band would sound worse than a part of it.
                "bandwidth": "auto", "bitrate-type": dtx ? "constrained-vbr" : "cbr", "complexity": 5,
            ])
        plan.chain(to: MediaFormat(.encodedAudio, "opus", sampleRate: 48_000, channels: 2, bitsPerSecond: bitrate))
        plan.latency = latency
        plan.allowances["out"] = packet
        return plan
    }

    /// Follows the highest loss that a consumer reports, unless the settings state one, and the least rate that a consumer
    /// has room for.
    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let encoder = instance.element("encoder")
        let isFixed = instance.optionalInteger("expected-loss") != nil
        let losses = Mutex(ConsumerLosses())
        let node = AudioEncoderNode(measuring: encoder, bitrate: instance.integer("bitrate"))
        encoder.source.onUpstreamEvent { [weak encoder, weak node] event in
            switch event {
            case .expectedLoss(let source, let percent):
                losses.withLock { losses in
                    // Consumers of several rooms report on threads of their own. The newest one sets the property last.
                    let changed = losses.take(percent, of: source, now: GStreamer.now)
                    if !isFixed, let changed { _ = encoder?.trySet("packet-loss-percentage", .integer(changed)) }
                }
            case .rateLimit(let source, let rate, _, _): node?.limit(rate, by: source)
            default: return .pass
            }
            return .drop
        }
        return node
    }
}

/// The level of the audio in each packet of an encoder.
///
/// A packet may leave a buffer later than its audio arrived. That does not matter to a server that ranks speakers.
struct PacketLevel {
    /// The level of silence, in negated dBov (RFC 6464).
    private static let quietest = 127.0
    private static let fullScale = 32_768.0

    private var squares: Int64 = 0
    private var samples = 0
    private var last = UInt8(quietest)

    /// Reads signed 16-bit samples. Returns their power, 0...1.
    @discardableResult
    mutating func read(_ bytes: RawSpan) -> Double {
        var squares = Int64(0)
        for offset in stride(from: 0, through: bytes.byteCount - 2, by: 2) {
            let sample = Int64(bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Int16.self))
            squares += sample * sample
        }
        let count = bytes.byteCount / 2
        self.squares += squares
        samples += count
        return count > 0 ? Double(squares) / Double(count) / (Self.fullScale * Self.fullScale) : 0
    }

    /// The level since the last call, or that of the last call if no audio has arrived since: a buffer may fill several
    /// packets.
    mutating func next() -> UInt8 {
        guard samples > 0 else { return last }
        let mean = Double(squares) / Double(samples) / (Self.fullScale * Self.fullScale)
        let level = mean > 0 ? -10 * log10(mean) : Self.quietest
        last = UInt8(min(max(level.rounded(), 0), Self.quietest))
        (squares, samples) = (0, 0)
        return last
    }
}

/// The losses that the consumers of an encoder expect. Each repeats its own about twice a second.
///
/// Has no clock: the caller tells the times.
struct ConsumerLosses {
    /// A consumer that told nothing for so many seconds has gone.
    private static let lifetime = 3.0

    private var told: [UInt64: (percent: Int, at: MediaTime)] = [:]
    private var highest: Int?

    /// Notes the loss that a consumer expects. Returns the highest of all, in percent, or nil if it is the same as before.
    mutating func take(_ percent: Int, of source: UInt64, now: MediaTime) -> Int? {
        told[source] = (min(max(percent, 0), 100), now)
        told = told.filter { now.seconds(since: $0.value.at) <= Self.lifetime }
        let before = highest
        highest = told.values.map(\.percent).max()
        return highest == before ? nil : highest
    }
}

/// An Opus encoder.
public struct OpusEncoder: MediaNode {
    public var handle: NodeHandle

    /// An encoder of Opus. Nil values are the defaults, which `connectlive nodes opus-encoder` lists.
    ///
    /// - Parameters:
    ///   - expectedLossPercent: the expected packet loss, for the error correction. By default, it follows the reports of a
    ///     room's server.
    ///   - dtx: whether silence is not sent (DTX), but for a packet each 400 ms. False by default.
    public init(bitrate: Bitrate? = nil, expectedLossPercent: Int? = nil, dtx: Bool? = nil) {
        handle = NodeHandle(
            OpusEncoderNode.kind,
            ["bitrate": bitrate?.bitsPerSecond, "expected-loss": expectedLossPercent, "dtx": dtx])
    }

    /// Changes the bitrate.
    ///
    /// - Throws: `graph.invalid` for a bitrate out of range; `node.not-running`.
    public func setBitrate(_ bitrate: Bitrate) async throws(MediaError) {
        try await change("bitrate", to: bitrate.bitsPerSecond)
    }
}

extension Node {
    /// An Opus encoder. `expectedLossPercent` is the expected packet loss, for the error correction.
    package static func opusEncoder(
        _ name: String = "opus-encoder", bitrate: Bitrate? = nil, expectedLossPercent: Int? = nil
    ) -> Node {
        Node(
            OpusEncoderNode.kind, name,
            ["bitrate": bitrate?.bitsPerSecond, "expected-loss": expectedLossPercent])
    }
}
