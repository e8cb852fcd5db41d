internal import MediaGraph
internal import MediaNodes

/// The counters of a slot, for all streams that it has carried.
struct SoundCounts: Sendable, Equatable {
    var framesReceived = 0
    var framesDecoded = 0
    var packetsLate = 0
    var seconds = 0.0
    var secondsAboveSilence = 0.0
    var energy = 0.0

    static func + (one: SoundCounts, other: SoundCounts) -> SoundCounts { one.adding(other, sign: 1) }
    static func - (one: SoundCounts, other: SoundCounts) -> SoundCounts { one.adding(other, sign: -1) }

    private func adding(_ other: SoundCounts, sign: Int) -> SoundCounts {
        SoundCounts(
            framesReceived: framesReceived + sign * other.framesReceived,
            framesDecoded: framesDecoded + sign * other.framesDecoded,
            packetsLate: packetsLate + sign * other.packetsLate,
            seconds: seconds + Double(sign) * other.seconds,
            secondsAboveSilence: secondsAboveSilence + Double(sign) * other.secondsAboveSilence,
            energy: energy + Double(sign) * other.energy)
    }
}

/// A running graph that plays. Calls are allowed on any thread, and never block.
protocol PlayingSound: Sendable {
    func push(_ packet: RawSpan, to slot: Int)
    /// The RTP timestamp of audio that arrives now. Nil before the slot's first audio.
    func nextTimestamp(of slot: Int) -> UInt32?
    /// The newest audio of a slot, and when it is played. Nil without any, and while no loudspeaker plays.
    func playing(_ slot: Int) -> PlayedMedia?
    /// Delays a slot for lip-sync.
    func hold(_ slot: Int, seconds: Double)
    func setVolume(_ factor: Double, isMuted: Bool, of slot: Int)
    /// The stream in a slot has ended: plays no more of its audio.
    func end(_ slot: Int)
    /// The counters, and the amplitude of the last chunk, 0...1. Nil if that was long ago.
    func counts(of slot: Int) -> (SoundCounts, level: Double?)
    /// Whether a loudspeaker plays.
    var isAudible: Bool { get }
}

/// Creates, starts and stops a graph that plays, outside of the loop, always in that order.
final class SoundRunner: DecodingTask {
    private struct Running: PlayingSound {
        /// How long the level of the last chunk counts, in seconds: longer than the wait for a lost packet. After it, the
        /// publisher is muted or gone.
        private static let levelLife = 0.4

        let pipeline: MediaPipeline
        let inputs: [PacketInput]

        func push(_ packet: RawSpan, to slot: Int) { inputs[slot].push(packet) }
        func nextTimestamp(of slot: Int) -> UInt32? { inputs[slot].nextTimestamp }

        func playing(_ slot: Int) -> PlayedMedia? {
            pipeline.playing(
                SoundGraph.input(slot), through: SoundGraph.slot(slot), on: SoundGraph.speaker)
        }

        func hold(_ slot: Int, seconds: Double) { pipeline.hold(SoundGraph.slot(slot), seconds: seconds) }

        func setVolume(_ factor: Double, isMuted: Bool, of slot: Int) {
            pipeline.setVolume(factor, isMuted: isMuted, ofInput: slot + 1, in: SoundGraph.mixer)
        }

        func end(_ slot: Int) {
            pipeline.end(SoundGraph.slot(slot), atInput: slot + 1, of: SoundGraph.mixer)
        }

        func counts(of slot: Int) -> (SoundCounts, level: Double?) {
            let (input, name) = (SoundGraph.input(slot), SoundGraph.slot(slot))
            let statistics = pipeline.statistics(of: [input, name])
            let (received, sound) = (statistics.rtpInputs[input], statistics.audioRenderers[name])
            let counts = SoundCounts(
                framesReceived: received?.framesReceived ?? 0, framesDecoded: received?.framesDecoded ?? 0,
                packetsLate: received?.packetsLate ?? 0, seconds: sound?.secondsRendered ?? 0,
                secondsAboveSilence: sound?.secondsAboveSilence ?? 0, energy: sound?.energy ?? 0)
            let isRecent = sound?.secondsSinceChunk.map { $0 < Self.levelLife } ?? false
            return (counts, isRecent ? sound.map { amplitude(ofDecibels: $0.level) } : nil)
        }

        var isAudible: Bool { pipeline.isAudible(SoundGraph.speaker) }
    }

    private let task: Task<MediaPipeline?, Never>

    /// Calls `post` on any thread. `previous` stops first, because two graphs would compete for the loudspeaker.
    init(
        _ graph: MediaGraph, slots: Int, bindings: NodeBindings = NodeBindings(), after previous: (any DecodingTask)?,
        post: @escaping @Sendable (SoundOutput.Notice) -> Void
    ) {
        var bindings = bindings
        bindings.events = { event in
            switch event {
            case .failed(let error): post(.failed(error))
            case .deviceWaiting, .deviceLost, .deviceReturned: post(.device(event))
            case .soundInterrupted: post(.interrupted(true))
            case .soundResumed: post(.interrupted(false))
            default: break
            }
        }
        task = Task.detached(priority: .userInitiated) { [bindings] in
            await previous?.stop()
            do throws(MediaError) {
                let pipeline = try await MediaPipeline(graph, bindings: bindings, registry: SoundGraph.registry)
                try await pipeline.begin()
                let inputs = (0..<slots).compactMap { pipeline.rtpInput(SoundGraph.input($0)) }
                precondition(inputs.count == slots, "a slot has no input")
                post(.running(Running(pipeline: pipeline, inputs: inputs)))
                return pipeline
            } catch {
                post(.failed(error))
                return nil
            }
        }
    }

    func stop() async { await task.value?.stop() }
}
