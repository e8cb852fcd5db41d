import GStreamerKit
import MediaGraph
import Synchronization

/// Measures the audio that an encoder gets.
final class AudioEncoderNode: RunningNode {
    private let state = Mutex(MediaStatistics.AudioEncoder())

    /// - Parameter encoder: gets signed 16-bit samples.
    init(measuring encoder: Element) {
        state.withLock { $0.encoder = EncoderNumber.next() }
        encoder.sink.watchBuffers { buffer in
            let power = buffer.read(AudioRendererNode.power(of:)) ?? 0
            self.take(AudioRendererNode.seconds(ofBytes: buffer.byteCount), power)
        }
    }

    private func take(_ seconds: Double, _ power: Double) {
        state.withLock { counts in
            counts.seconds += seconds
            counts.level = LevelMeter.decibels(power.squareRoot())
            counts.energy += power * seconds
        }
    }

    var counts: MediaStatistics.AudioEncoder { state.withLock { $0 } }

    func report(into statistics: inout MediaStatistics, as name: String) { statistics.audioEncoders[name] = counts }
}
