internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol

/// The audio of one room, and the settings of its application. On the loop only.
final class SoundRoom {
    struct Volume: Equatable {
        /// Factor for samples.
        var factor = 1.0
        var isMuted = false
    }

    /// The changes that the application wants.
    struct Wishes: Equatable {
        var isMuted: Bool?
        var volumes: [Int: Volume] = [:]
    }

    let loudspeaker: RoomLoudspeaker
    /// Called with problems that do not end the room.
    let report: (RoomError) -> Void
    /// Whether nothing of the room is heard.
    var isMuted = false { didSet { for sink in sinks { sink.setVolume() } } }
    /// Those of streams, whether or not they have a slot. Others are heard as they come.
    private var volumes: [Int: Volume] = [:]
    private var sinks: [SlotSink] = []

    init(loudspeaker: RoomLoudspeaker, report: @escaping (RoomError) -> Void) {
        self.loudspeaker = loudspeaker
        self.report = report
    }

    func apply(_ wishes: Wishes) {
        if let isMuted = wishes.isMuted { self.isMuted = isMuted }
        for (stream, volume) in wishes.volumes { set(volume, of: stream) }
    }

    func set(_ volume: Volume, of stream: Int) {
        volumes[stream] = volume == Volume() ? nil : volume
        for sink in sinks where sink.stream.id == stream { sink.setVolume() }
    }

    /// The stream has ended. A server that starts again may give its id to another one. Audio that is still heard keeps its volume.
    func forget(_ stream: Int) { volumes[stream] = nil }

    func volume(of stream: Int) -> Volume {
        var volume = volumes[stream] ?? Volume()
        if isMuted { volume.isMuted = true }
        return volume
    }

    fileprivate func add(_ sink: SlotSink) { sinks.append(sink) }
    fileprivate func remove(_ sink: SlotSink) { sinks.removeAll { $0 === sink } }
}

/// Plays one audio stream in a slot of the process's output. On the loop only.
final class SlotSink: IncomingSink {
    let stream: IncomingStream
    private let output: SoundOutput
    private let room: SoundRoom
    private let lipSync: RoomLipSync
    private var slot: Int?
    private var clock: StreamClock?
    /// The counters of the slot when the stream began there, and those of its earlier graphs.
    private var before = SoundCounts()
    private var past = SoundCounts()

    init(_ stream: IncomingStream, in output: SoundOutput, _ room: SoundRoom, _ lipSync: RoomLipSync) {
        self.stream = stream
        (self.output, self.room, self.lipSync) = (output, room, lipSync)
    }

    func begin(_ stream: IncomingStream) {
        output.open(room)
        room.add(self)
        slot = output.take(self)
    }

    func receive(_ packet: Span<UInt8>) {
        if let slot { output.push(packet, to: slot) }
    }

    /// More would be late, and all audio after them by as much.
    var backlog: Int? { 3 }

    func clockChanged(_ clock: StreamClock) { self.clock = clock }

    func sample(now: MonotonicTime) {
        output.sample()
        guard let slot, let playing = output.playing(slot),
            let hold = lipSync.note(playing, of: stream, clock, now: now)
        else { return }
        output.playing?.hold(slot, seconds: hold)
    }

    func end() {
        guard let slot else { return }
        output.free(slot)
        self.slot = nil
        room.remove(self)
        lipSync.end(stream)
    }

    // MARK: - Called by the output

    /// The slot of a graph carries the stream from now on.
    func begins(with counts: SoundCounts) { before = counts }

    /// It does no longer.
    func bank(_ counts: SoundCounts) {
        past = past + (counts - before)
        before = counts
    }

    func setVolume(of slot: Int, in playing: any PlayingSound) {
        let volume = room.volume(of: stream.id)
        playing.setVolume(volume.factor, isMuted: volume.isMuted, of: slot)
    }

    fileprivate func setVolume() {
        if let slot, let playing = output.playing { setVolume(of: slot, in: playing) }
    }

    func fill(_ statistics: inout RoomStatistics.Received) {
        var counts = past
        if let slot, let playing = output.playing {
            let (now, level) = playing.counts(of: slot)
            counts = counts + (now - before)
            // Another stream had the slot a moment ago.
            if now.seconds > before.seconds { statistics.audioLevel = level }
            statistics.isAudible = playing.isAudible
        }
        statistics.framesReceived = counts.framesReceived
        statistics.framesDecoded = counts.framesDecoded
        statistics.packetsLate = counts.packetsLate
        statistics.audioSecondsRendered = counts.seconds
        statistics.audioSecondsAboveSilence = counts.secondsAboveSilence
        statistics.audioEnergy = counts.energy
    }
}
