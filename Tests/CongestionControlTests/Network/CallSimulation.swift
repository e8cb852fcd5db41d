import CongestionControl
import RTP
import TestSupport

/// Calls over one bottleneck on virtual time: senders with the controller, the pacer, a video and an audio source, and
/// receivers that report. Times are in seconds.
final class CallSimulation {
    struct Flow {
        var start = 0.0
        var stop = Double.infinity
        /// When media begins. Only probes before.
        var media = 0.0
        var video: VideoSource? = VideoSource()
        /// kbit/s without headers
        var audio: Double? = 32
        var settings = CongestionController.Settings()
        /// Milliseconds in addition to the link's delay, in each direction.
        var extraDelay = 0.0
        /// Media takes the way back, and its feedback the way forward.
        var isBackward = false
        /// The application sends nothing between these times.
        var pause: Range<Double>?
        /// The seconds between samples.
        var sampling = 0.1
    }

    /// The state of a sender.
    struct Sample {
        var time: Double
        var target: Double
        var estimate: Double
        var acknowledged: Double
        var queue: Double
        var roundTrip: Double
        var isPaused: Bool
    }

    struct Record {
        var samples: [Sample] = []
        /// Arrivals with their bytes.
        var delivered: [(at: Double, bytes: Double)] = []
        var paddingDelivered: [(at: Double, bytes: Double)] = []
        /// The packets of each frame of video that have not arrived.
        var missing: [Int] = []
        /// When all packets of a frame had arrived. Nothing is repaired: a frame with a lost packet is never complete.
        var framesComplete: [Double] = []
        var sendTimes: [(at: Double, kind: PacketKind, bytes: Double)] = []
        var lossTimes: [Double] = []
        /// The longest time that the pacer held a packet, in milliseconds, and the same of audio.
        var longestHold = 0.0
        var longestAudioHold = 0.0
        var lost = 0
        var sent = 0
    }

    private(set) var forward: SimulatedLink
    private(set) var back: SimulatedLink
    private(set) var records: [Record]
    private var senders: [SimulatedSender]
    private var recorders: [TransportFeedbackRecorder]
    private var events = EventHeap()
    private var random: Seeded
    private var now = 0.0
    /// No sender does anything between these times.
    var stall: (from: Double, to: Double)?
    /// Calls to make at a time.
    private var script: [(at: Double, run: (CallSimulation) -> Void)] = []
    /// Other traffic of the bottleneck.
    var crossTraffic: CrossTraffic?
    private(set) var connections: [TCPConnection] = []
    private var connectionRandom: Seeded

    init(
        forward: SimulatedLink.Settings, back: SimulatedLink.Settings? = nil, flows: [Flow] = [Flow()], seed: UInt64 = 1
    ) {
        self.forward = SimulatedLink(forward, seed: seed)
        var plain = SimulatedLink.Settings(20_000, delay: forward.delay)
        plain.jitter = 0
        self.back = SimulatedLink(back ?? plain, seed: seed &+ 1)
        random = Seeded(seed &+ 2)
        connectionRandom = Seeded(seed &+ 3)
        senders = flows.map { SimulatedSender($0) }
        records = flows.map { _ in Record() }
        recorders = flows.indices.map { TransportFeedbackRecorder(sender: SSRC(UInt32($0))) }
        for index in flows.indices {
            events.add(flows[index].start, .begin(index))
            events.add(flows[index].start + flows[index].sampling, .sample(index))
        }
    }

    func at(_ time: Double, _ run: @escaping (CallSimulation) -> Void) {
        script.append((time, run))
        events.add(time, .script(script.count - 1))
    }

    /// Another chance. Before the call runs.
    func reseed(_ seed: UInt64) {
        forward.reseed(seed)
        back.reseed(seed &+ 1)
        (random, connectionRandom) = (Seeded(seed &+ 2), Seeded(seed &+ 3))
    }

    /// Senders without what libwebrtc does not have. Before the call runs.
    func makePlain() {
        senders = senders.map {
            var flow = $0.flow
            flow.settings.isPlain = true
            return SimulatedSender(flow)
        }
    }

    func changeForward(_ change: (inout SimulatedLink.Settings) -> Void) { change(&forward.settings) }
    func changeBack(_ change: (inout SimulatedLink.Settings) -> Void) { change(&back.settings) }

    func controller(_ index: Int, _ body: (CongestionController, MonotonicTime) -> Void) {
        body(senders[index].controller, Self.time(now))
        wake(index)
    }

    func receiverEstimate(_ kilobits: UInt64) {
        let estimate = ReceiverEstimate(sender: SSRC(1), bitsPerSecond: kilobits * 1000, sources: [])
        controller(0) { $0.received(estimate, now: $1) }
    }

    /// Packets take another bottleneck from now on.
    func forgetQueue() { forward.forgetQueue() }

    @discardableResult
    func run(until end: Double) -> Self {
        while let event = events.next(until: end) {
            now = event.time
            handle(event.action)
        }
        now = end
        return self
    }

    static func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: UInt64(((seconds + 1) * 1e9).rounded()))
    }
    private static func seconds(_ time: MonotonicTime) -> Double {
        time == .never ? .infinity : Double(time.nanoseconds) / 1e9 - 1
    }

    private func handle(_ action: EventHeap.Action) {
        switch action {
        case .begin(let index):
            deferStalled {
                self.begin(index)
            } else: {
                self.events.add($0, action)
            }
        case .frame(let index):
            deferStalled {
                self.frame(index)
            } else: {
                self.events.add($0, action)
            }
        case .audio(let index):
            deferStalled {
                self.audio(index)
            } else: {
                self.events.add($0, action)
            }
        case .wake(let index):
            deferStalled {
                guard self.senders[index].plannedWake <= self.now else { return }
                self.senders[index].plannedWake = .infinity
                self.wake(index)
            } else: {
                self.events.add($0, action)
            }
        case .feedback(let index, let feedback):
            deferStalled {
                self.feedback(index, feedback)
            } else: {
                self.events.add($0, action)
            }
        case .arrival(let index, let packet): arrival(index, packet)
        case .report(let index): report(index)
        case .sample(let index): sample(index)
        case .script(let index): script[index].run(self)
        case .cross(let round): cross(round)
        case .transfer(let index): transfer(index)
        case .segment(let index, let number): acknowledge(index, number)
        case .retransmission(let index): retransmit(index)
        }
    }

    /// A stalled process runs its work after the stall, in the same order.
    private func deferStalled(_ work: () -> Void, else wait: (Double) -> Void) {
        guard let stall, now >= stall.from, now < stall.to else { return work() }
        wait(stall.to)
    }
}

extension CallSimulation {
    private func isOver(_ index: Int) -> Bool { now >= senders[index].flow.stop }
    private func isPaused(_ index: Int) -> Bool { senders[index].flow.pause?.contains(now) ?? false }
    func isBackward(_ index: Int) -> Bool { senders[index].flow.isBackward }

    /// When a packet of a flow's media arrives, or one of its feedback.
    private func send(bytes: Double, backward: Bool) -> Double? {
        backward ? back.send(bytes: bytes, at: now) : forward.send(bytes: bytes, at: now)
    }

    private func begin(_ index: Int) {
        // The first probes need padding.
        if senders[index].flow.video != nil { senders[index].controller.begin(now: Self.time(now)) }
        events.add(senders[index].flow.media, .frame(index))
        events.add(senders[index].flow.media, .audio(index))
        wake(index)
    }

    private func frame(_ index: Int) {
        guard !isOver(index), let source = senders[index].flow.video else { return }
        if isPaused(index) {
            senders[index].controller.setDemand(.zero, now: Self.time(now))
        } else if now >= senders[index].flow.media {
            let packets = senders[index].queueFrame(&random, Self.time(now))
            if packets > 0 { records[index].missing.append(packets) }
            wake(index)
        }
        events.add(now + 1 / source.framesPerSecond, .frame(index))
    }

    private func audio(_ index: Int) {
        guard !isOver(index), senders[index].flow.audio != nil else { return }
        if !isPaused(index) {
            senders[index].queueAudio(Self.time(now))
            wake(index)
        }
        events.add(now + 0.02, .audio(index))
    }

    private func feedback(_ index: Int, _ feedback: TransportFeedback) {
        if let stall, now == stall.to, !senders[index].knowsStall {
            senders[index].knowsStall = true
            let time = TimeInterval(nanoseconds: Int64((stall.to - stall.from) * 1e9))
            senders[index].controller.stalled(for: time, now: Self.time(now))
            senders[index].pacer.stalled(for: time, now: Self.time(now))
        }
        senders[index].controller.received(feedback, now: Self.time(now))
        wake(index)
    }

    /// Runs the controller's timers and sends what the pacer grants.
    private func wake(_ index: Int) {
        guard !isOver(index) else { return }
        let time = Self.time(now)
        let (extraDelay, isBackward) = (senders[index].flow.extraDelay / 1000, isBackward(index))
        senders[index].run(time) { packet, held in
            records[index].sent += 1
            records[index].sendTimes.append((now, packet.kind, packet.bytes))
            records[index].longestHold = max(records[index].longestHold, held)
            if packet.kind == .audio { records[index].longestAudioHold = max(records[index].longestAudioHold, held) }
            guard let arrival = send(bytes: packet.bytes, backward: isBackward) else {
                records[index].lost += 1
                records[index].lossTimes.append(now)
                return
            }
            events.add(arrival + extraDelay, .arrival(index, packet))
        }
        let next = max(Self.seconds(senders[index].nextTimeout), now + 1e-6)
        if next < senders[index].plannedWake, next.isFinite {
            senders[index].plannedWake = next
            events.add(next, .wake(index))
        }
    }

    private func arrival(_ index: Int, _ packet: SimulatedSender.Packet) {
        records[index].delivered.append((now, packet.bytes))
        if packet.kind == .padding { records[index].paddingDelivered.append((now, packet.bytes)) }
        if let frame = packet.frame {
            records[index].missing[frame] -= 1
            if records[index].missing[frame] == 0 { records[index].framesComplete.append(now) }
        }
        let before = recorders[index].nextTimeout
        recorders[index].received(packet.number, media: SSRC(9), at: Self.time(now))
        let due = recorders[index].nextTimeout
        if due != before { events.add(max(now, Self.seconds(due)), .report(index)) }
    }

    /// Reports go through the bytes of RTCP.
    private func report(_ index: Int) {
        recorders[index].setBandwidth(senders[index].controller.estimate.bitsPerSecond)
        while let report = recorders[index].report(now: Self.time(now)) {
            var packet = PacketBuffer()
            _ = RTCPPacket.transportFeedback(report).append(to: &packet)
            guard let arrival = send(bytes: Double(packet.count + 28 + 14), backward: !isBackward(index)),
                case .transportFeedback(let read)? = RTCPPacket.parse(packet)?.first
            else { continue }
            events.add(arrival + senders[index].flow.extraDelay / 1000, .feedback(index, read))
        }
    }

    private func sample(_ index: Int) {
        let controller = senders[index].controller
        records[index].samples.append(
            Sample(
                time: now, target: controller.control.target.kilobits, estimate: controller.estimate.kilobits,
                acknowledged: controller.acknowledgedRate?.kilobits ?? 0,
                queue: controller.path.queue.milliseconds,
                roundTrip: controller.path.newest?.milliseconds ?? 0, isPaused: controller.control.isPaused))
        if !isOver(index) { events.add(now + senders[index].flow.sampling, .sample(index)) }
    }

    /// A TCP connection: begins a round.
    private func cross(_ round: Int) {
        guard var traffic = crossTraffic, traffic.isCurrent(round, now) else { return }
        var last: Double?
        var lost = false
        for _ in 0..<traffic.window {
            if let arrival = forward.send(bytes: 1500, at: now) { last = arrival } else { lost = true }
        }
        traffic.finish(lost: lost)
        crossTraffic = traffic
        events.add((last ?? now + 0.2) + back.settings.delay / 1000, .cross(round))
    }

    /// Bytes of others, such as signalling, come to the bottleneck in packets.
    func sendOthers(bytes: Double) {
        for start in stride(from: 0, to: bytes, by: 1500) { _ = forward.send(bytes: min(1500, bytes - start), at: now) }
    }

    func startCrossTraffic(_ traffic: CrossTraffic) {
        crossTraffic = traffic
        events.add(now, .cross(traffic.id))
    }
}

// TCP connections whose segments are sent one by one.
extension CallSimulation {
    func add(_ connection: TCPConnection, at time: Double) {
        let index = connections.count
        connections.append(connection)
        events.add(time + (connection.transfers?.pausesFirst == true ? pause(index) : 0), .transfer(index))
    }

    /// The pause before the next transfer of a connection.
    private func pause(_ index: Int) -> Double {
        let mean = connections[index].transfers?.pause ?? 0
        return -mean * naturalLogarithm(Double.random(in: 1e-9..<1, using: &connectionRandom))
    }

    private func transfer(_ index: Int) {
        connections[index].begin(now, &connectionRandom)
        sendSegments(index)
    }

    private func sendSegments(_ index: Int) {
        while let number = connections[index].take(now) {
            guard let arrival = forward.send(bytes: TCPConnection.segment, at: now) else { continue }
            events.add(arrival + back.settings.delay / 1000, .segment(index, number))
        }
        if let timeout = connections[index].timeout { events.add(timeout, .retransmission(index)) }
    }

    private func acknowledge(_ index: Int, _ number: Int) {
        if connections[index].acknowledged(number, now) {
            events.add(now + pause(index), .transfer(index))
        } else {
            sendSegments(index)
        }
    }

    private func retransmit(_ index: Int) {
        guard let timeout = connections[index].timeout, timeout <= now else { return }
        connections[index].timedOut()
        sendSegments(index)
    }
}

/// A TCP connection by rounds: a window each round trip, doubled at first, one packet more each later one, half after
/// loss.
struct CrossTraffic {
    var id: Int
    var stop: Double
    var bytesLeft = Double.infinity
    private(set) var window = 10
    private var isStarting = true

    init(id: Int, stop: Double, bytes: Double = .infinity) {
        self.id = id
        self.stop = stop
        bytesLeft = bytes
    }

    func isCurrent(_ round: Int, _ now: Double) -> Bool { round == id && now < stop && bytesLeft > 0 }

    mutating func finish(lost: Bool) {
        bytesLeft -= Double(window) * 1500
        if lost {
            window = max(2, window / 2)
            isStarting = false
        } else {
            window = min(isStarting ? window * 2 : window + 1, 500)
        }
    }
}
