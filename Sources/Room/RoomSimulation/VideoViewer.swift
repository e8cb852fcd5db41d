internal import ClientCore
internal import MediaGraph
internal import PeerLoop
internal import RTP

/// A jitter buffer and a decoder: it shows a frame that is whole and follows the last one, or is a keyframe.
final class VideoViewer: IncomingSink {
    /// How long it waits for a repair, as the product's jitter buffer does.
    static let repairTimeout = RepairBounds.playoutDelay
    /// How often it repeats a request for a keyframe.
    private static let repetition = TimeInterval.seconds(1)

    private struct Waiting {
        var part: FramePart?
        var rtp: RTPTimestamp
        var arrived: MonotonicTime
    }

    let stream: Int
    unowned let client: SimulatedClient
    private var name: String { client.name }
    unowned let simulation: World
    private let requestKeyframe: () -> Void
    private let onShown: () -> Void
    /// The subscription.
    let since: MonotonicTime
    /// Of the stream, once its publisher knows that it is published.
    private var source: UInt32?
    /// The streams that the client watched before, of which nothing may arrive here.
    private let earlier: Set<Int>
    private var packets: [Int: Waiting] = [:]
    /// The number of the next packet to decode, without its wrap.
    private var next: Int?
    private var highest = 0
    private var parts: [FramePart] = []
    private var last: (part: FramePart, rtp: RTPTimestamp)?
    /// The newest decoded frames since a keyframe.
    private var references: [UInt32] = []
    private static let remembered = 4
    private var camera: LayeredCamera? { simulation.camera(of: stream) }
    /// The layer of the newest frame. Nil without simulcast.
    private(set) var layer: Int?
    private var switches = 0
    /// Since when it waits for a keyframe.
    private(set) var waitsForKeyframeSince: MonotonicTime?
    private var needsKeyframe: Bool { waitsForKeyframeSince != nil }
    private var requestedAt = MonotonicTime.zero
    private(set) var isEnded = false
    private lazy var timer = simulation.loop.makeTimer { [unowned self] in release() }
    private(set) var shown = 0
    private(set) var shownPackets = 0
    private(set) var firstShown: MonotonicTime?
    private(set) var lastShown: MonotonicTime?
    private(set) var longestFreeze = TimeInterval.zero
    private(set) var skipped = 0
    private var lastArrived: MonotonicTime?
    private var clock: StreamClock?
    private(set) var latency: (measured: StreamClock.Age?, actual: TimeInterval)?
    private var largestLatencyError = TimeInterval.zero
    private var measuredFrames = 0
    private var playout = PlayoutDelay(clockRate: 90_000)
    /// Decoded frames that are not due yet, the oldest first.
    private var held: [(part: FramePart, due: MonotonicTime)] = []
    private lazy var playoutTimer = simulation.loop.makeTimer { [unowned self] in play() }
    private var trace = Trace()

    init(
        _ stream: Int, of client: SimulatedClient, since: MonotonicTime, earlier: Set<Int>, in simulation: World,
        requestKeyframe: @escaping () -> Void, shown: @escaping () -> Void
    ) {
        self.stream = stream
        self.client = client
        self.since = since
        waitsForKeyframeSince = since
        self.simulation = simulation
        self.earlier = earlier
        self.requestKeyframe = requestKeyframe
        onShown = shown
    }

    func begin(_ stream: IncomingStream) {}

    func receive(_ packet: Span<UInt8>) {
        guard !isEnded, packet.count >= RTPHeader.minimumLength else { return }
        let number = unwrap(Int(packet[2]) << 8 | Int(packet[3]))
        let part = FramePart(payload: packet.extracting(Contents.payloadStart(of: packet)..<packet.count))
        let rtp = RTPTimestamp((4..<8).reduce(0) { $0 << 8 | UInt32(packet[$1]) })
        if source == nil { source = simulation.videoSource(of: stream)?.id }
        if let part, part.source != source, camera?.layer(of: part) == nil {
            // A packet of the next stream may overtake the message that assigns it.
            let isEarlier = earlier.contains {
                $0 != stream && !client.awaited.contains($0) && simulation.videoSource(of: $0)?.id == part.source
            }
            if isEarlier { simulation.fail("\(name) got a packet of an earlier stream in stream \(stream).") }
            return
        }
        lastArrived = simulation.loop.now
        if let part { simulation.packetLog?.arrived(part, at: simulation.loop.now) }
        playout.arrived(
            rtp.rawValue, number: UInt16(truncatingIfNeeded: number),
            at: MediaTime(nanoseconds: simulation.loop.now.nanoseconds))
        guard number >= next ?? number else { return }
        if packets.isEmpty, number == next ?? number {
            next = number + 1
            decode(part, rtp)
            if needsKeyframe, simulation.loop.now >= requestedAt + Self.repetition { ask() }
            return
        }
        packets[number] = Waiting(part: part, rtp: rtp, arrived: simulation.loop.now)
        if next == nil { next = number }
        release()
    }

    private func unwrap(_ number: Int) -> Int {
        guard next != nil else {
            highest = number + 0x10000
            return highest
        }
        let distance = Int(Int16(truncatingIfNeeded: number - highest & 0xffff))
        let unwrapped = highest + distance
        highest = max(highest, unwrapped)
        return unwrapped
    }

    /// Decodes the packets that are next, and gives up the missing ones that others have waited for.
    private func release() {
        guard !isEnded, var next else { return }
        let now = simulation.loop.now
        while true {
            if let packet = packets.removeValue(forKey: next) {
                next += 1
                decode(packet.part, packet.rtp)
            } else if let (number, oldest) = packets.min(by: { $0.key < $1.key }),
                oldest.arrived + Self.repairTimeout <= now
            {
                skipped += number - next
                next = number
                lose()
            } else {
                break
            }
        }
        self.next = next
        if let oldest = packets.min(by: { $0.key < $1.key }) {
            timer.arm(at: oldest.value.arrived + Self.repairTimeout)
        }
        if needsKeyframe, now >= requestedAt + Self.repetition { ask() }
    }

    private func lose() {
        parts = []
        waitForKeyframe()
    }

    private func waitForKeyframe() { waitsForKeyframeSince = waitsForKeyframeSince ?? simulation.loop.now }

    private func ask() {
        requestedAt = simulation.loop.now
        requestKeyframe()
    }

    func clockChanged(_ clock: StreamClock) { self.clock = clock }

    private func decode(_ part: FramePart?, _ rtp: RTPTimestamp) {
        guard let part else { return }
        if part.index == 0 { parts = [] }
        guard part.index == UInt8(parts.count),
            parts.allSatisfy({
                $0.frame == part.frame && $0.generation == part.generation && $0.source == part.source
            })
        else { return lose() }
        parts.append(part)
        guard parts.count == Int(part.count) else { return }
        parts = []
        let before = last?.part
        let follows =
            before.map {
                $0.source == part.source && $0.generation == part.generation
                    && references.contains(part.frame &- UInt32(part.distance))
            } ?? false
        guard part.isKeyframe || follows && !needsKeyframe else { return waitForKeyframe() }
        // Behind a pause, a viewer may begin at the keyframe that it saw last, under a later timestamp.
        let isNewStart = part.isKeyframe && part.frame == before?.frame && rtp != last?.rtp
        if let before, before.source == part.source, before.generation == part.generation, part.frame <= before.frame,
            !isNewStart
        {
            return simulation.fail("\(name) would show frame \(part.frame) of stream \(stream) after \(before.frame).")
        }
        if camera != nil { checkSeam(before: part, rtp) }
        if !needsKeyframe { checkPicture(part) }
        decoded(part, rtp)
    }

    /// Decoders wait for picture ids that are missing.
    private func checkPicture(_ part: FramePart) {
        guard let before = last?.part.pictureID, let id = part.pictureID, (before + 1) & 0x7fff != id else { return }
        simulation.fail("\(name) got picture id \(id) of stream \(stream) after \(before), frame \(part.frame).")
    }

    /// The timestamps of a stream with simulcast go on with the captures, from whichever layer a frame comes.
    private func checkSeam(before part: FramePart, _ rtp: RTPTimestamp) {
        guard let last else { return }
        let frames = Int(part.frame) - Int(last.part.frame)
        let interval = 90000 / LayeredCamera.framesPerSecond
        let ticks = rtp.distance(from: last.rtp)
        if ticks <= 0 || abs(ticks - frames * interval) > interval {
            simulation.fail(
                "\(name) got frame \(part.frame) of stream \(stream) \(ticks) ticks after frame \(last.part.frame).")
        }
    }

    private func captureTime(of part: FramePart) -> MonotonicTime? {
        camera?.captureTime(of: part) ?? simulation.videoSource(of: stream)?.captureTime(of: part)
    }

    private func decoded(_ part: FramePart, _ rtp: RTPTimestamp) {
        let now = simulation.loop.now
        waitsForKeyframeSince = nil
        let layer = camera?.layer(of: part)
        if self.layer != nil, layer != self.layer { switches += 1 }
        self.layer = layer
        latency = captureTime(of: part).map {
            (clock?.age(of: rtp, at: now, wallClock: client.wallClock), now - $0)
        }
        if let latency, let age = latency.measured, age.comparison == .roundTrips {
            let error = age.time - latency.actual
            largestLatencyError = max(largestLatencyError, max(error, .zero - error))
            measuredFrames += 1
        }
        if part.isKeyframe { references = [] }
        references.append(part.frame)
        if references.count > Self.remembered { references.removeFirst() }
        last = (part, rtp)
        let due = playout.due(rtp.rawValue, now: MediaTime(nanoseconds: now.nanoseconds))
        held.append((part, MonotonicTime(nanoseconds: UInt64(max(0, due.nanoseconds)))))
        play()
    }

    /// Shows the frames that are due.
    private func play() {
        guard !isEnded else { return }
        while let first = held.first, first.due <= simulation.loop.now {
            held.removeFirst()
            show(first.part)
        }
        if let first = held.first { playoutTimer.arm(at: first.due) }
    }

    private func show(_ part: FramePart) {
        simulation.checkBounds(of: self)
        let now = simulation.loop.now
        trace.add(part, at: now)
        simulation.packetLog?.shown(part, at: now)
        shown += 1
        shownPackets += Int(part.count)
        if let lastShown { longestFreeze = max(longestFreeze, now - lastShown) }
        if firstShown == nil { firstShown = now }
        if let deliveries = simulation.deliveries, let captured = captureTime(of: part),
            let problem = deliveries.problem(withFrameOf: now - captured, of: self)
        {
            simulation.fail(problem)
        }
        lastShown = now
        onShown()
    }

    func end() {
        isEnded = true
        timer.disarm()
        playoutTimer.disarm()
    }

    /// For failures.
    var description: String {
        let began = simulation.loop.began
        let last = lastShown.map { "\(($0 - began).seconds) s" } ?? "never"
        return
            "\(name) sees no new frame of stream \(stream), \(simulation.videoSource(of: stream)?.description ?? "unknown"): "
            + "\(shown) frames shown, last at \(last), first packet \(next == nil ? "missing" : "arrived"), "
            + "last packet at \(lastArrived.map { "\(($0 - began).seconds) s" } ?? "never"), "
            + "\(skipped) packets skipped, \(needsKeyframe ? "waits for a keyframe" : "has its keyframe"), "
            + "created at \((since - began).seconds) s"
    }

    var report: SimulationReport.Viewer {
        SimulationReport.Viewer(
            client: name, stream: stream, shown: shown, skippedPackets: skipped,
            firstFrame: firstShown.map { $0 - since }, longestFreeze: longestFreeze,
            latency: latency?.measured?.time, trueLatency: latency?.actual,
            hasCaptureTimes: latency?.measured?.source == .captureTime, largestLatencyError: largestLatencyError,
            measuredFrames: measuredFrames, layer: layer, switches: switches,
            digest: trace.digest)
    }
}
