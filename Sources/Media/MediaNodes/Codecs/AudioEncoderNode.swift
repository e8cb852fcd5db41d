import GStreamerKit
import MediaGraph
import Synchronization

/// Measures the audio that an encoder takes, and marks each packet with the level of the audio since the packet before.
final class AudioEncoderNode: RunningNode {
    private struct State {
        var counts = MediaStatistics.AudioEncoder()
        var packet = PacketLevel()
    }

    private let state = Mutex(State())

    /// - Parameter encoder: gets signed 16-bit samples.
    init(measuring encoder: Element) {
        state.withLock { $0.counts.encoder = EncoderNumber.next() }
        encoder.sink.watchBuffers { buffer in _ = buffer.read { self.take($0) } }
        encoder.source.watchBuffers { packet in packet.setAudioLevel(self.state.withLock { $0.packet.next() }) }
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

    var counts: MediaStatistics.AudioEncoder { state.withLock { $0.counts } }

    func report(into statistics: inout MediaStatistics, as name: String) { statistics.audioEncoders[name] = counts }
}
