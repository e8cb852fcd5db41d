import GStreamerKit
import MediaGraph
import Synchronization

/// Measures the audio that an encoder takes, marks each packet with the level of the audio since the packet before, and
/// makes the encoder follow the limits of its consumers.
final class AudioEncoderNode: RunningNode {
    private struct State {
        var counts = MediaStatistics.AudioEncoder()
        var packet = PacketLevel()
    }

    private struct Rate {
        var limits = EncoderRate()
        /// The bitrate that the encoder has.
        var current: Int
    }

    private let encoder: Element
    private let state = Mutex(State())
    /// Apart from the state, because the encoder has a lock of its own while it makes packets, and while its bitrate changes.
    private let rate: Mutex<Rate>

    /// - Parameters:
    ///   - encoder: gets signed 16-bit samples, and has a property `bitrate`.
    ///   - bitrate: without a limit, in bits per second
    init(measuring encoder: Element, bitrate: Int) {
        self.encoder = encoder
        rate = Mutex(Rate(current: bitrate))
        rate.withLock { $0.limits.setWish(bitrate) }
        state.withLock { $0.counts.encoder = EncoderNumber.next() }
        encoder.sink.watchBuffers { [weak self] buffer in
            self?.follow { $0.update(now: GStreamer.now) }
            _ = buffer.read { self?.take($0) }
        }
        encoder.source.watchBuffers { [weak self] packet in
            if let self { packet.setAudioLevel(state.withLock { $0.packet.next() }) }
        }
    }

    private func take(_ bytes: RawSpan) {
        let seconds = AudioRendererNode.seconds(ofBytes: bytes.byteCount)
        state.withLock { state in
            let power = state.packet.read(bytes)
            state.counts.seconds += seconds
            state.counts.level = LevelMeter.decibels(power.squareRoot())
            state.counts.energy += power * seconds
        }
    }

    /// A consumer limits the encoder for a while. Any thread.
    func limit(_ bitsPerSecond: Int, by source: UInt64) {
        follow { $0.setLimit(bitsPerSecond, by: source, now: GStreamer.now) }
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == "bitrate", let bitrate = value.integer else { return false }
        follow { $0.setWish(bitrate) }
        return true
    }

    /// Changes the limits, and lets the encoder follow them. The lock is held meanwhile, so that the newest change comes last.
    private func follow(_ change: (inout EncoderRate) -> Void) {
        rate.withLock { rate in
            change(&rate.limits)
            let bitrate = max(OpusEncoderNode.leastBitrate, rate.limits.bitrate)
            guard bitrate != rate.current else { return }
            rate.current = bitrate
            _ = encoder.trySet("bitrate", .integer(bitrate))
        }
    }

    var counts: MediaStatistics.AudioEncoder {
        var counts = state.withLock { $0.counts }
        rate.withLock { (counts.wishedBitsPerSecond, counts.limitedBitsPerSecond) = ($0.limits.wish, $0.limits.limit) }
        return counts
    }

    func report(into statistics: inout MediaStatistics, as name: String) { statistics.audioEncoders[name] = counts }
}
