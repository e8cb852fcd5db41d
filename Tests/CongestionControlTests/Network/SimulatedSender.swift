import CongestionControl
import RTP
import TestSupport

/// One sender of a simulated call: the controller and the pacer as an application would wire them.
final class SimulatedSender {
    /// UDP, IP, RTP with its extension, and the tag of SRTP.
    static let overhead = 28.0 + 20 + 16
    static let payload = 1100.0

    struct Packet {
        var number: SequenceNumber
        var bytes: Double
        var kind: PacketKind
        /// The place of its frame among those of the video.
        var frame: Int?
    }

    var flow: CallSimulation.Flow
    let controller: CongestionController
    let pacer: Pacer
    var plannedWake = Double.infinity
    var knowsStall = false
    private var queued: [Int: (at: MonotonicTime, frame: Int?)] = [:]
    private var frames = 0
    private var nextHandle = 0

    init(_ flow: CallSimulation.Flow) {
        self.flow = flow
        controller = CongestionController(flow.settings)
        pacer = Pacer(rate: controller.control.pacing)
    }

    var nextTimeout: MonotonicTime { min(controller.nextTimeout, pacer.nextTimeout) }

    private var audioRate: Double { flow.audio.map { $0 + Self.overhead * 8 * 50 / 1000 } ?? 0 }

    /// Returns the number of its packets.
    func queueFrame(_ random: inout Seeded, _ now: MonotonicTime) -> Int {
        let control = controller.control
        controller.setDemand(.kilobits((flow.video?.maximum ?? 0) + audioRate), now: now)
        guard !control.isPaused, var source = flow.video else { return 0 }
        let bytes = source.frame(target: control.target.kilobits - audioRate, random: &random)
        flow.video = source
        let packets = Int((bytes / (Self.payload + Self.overhead)).rounded(.up))
        for _ in 0..<packets { queue(bytes: bytes / Double(packets), kind: .video, frame: frames, now) }
        if packets > 0 { frames += 1 }
        return packets
    }

    func queueAudio(_ now: MonotonicTime) {
        if flow.video == nil { controller.setDemand(.kilobits(audioRate), now: now) }
        queue(bytes: (flow.audio ?? 0) * 125 / 50 + Self.overhead, kind: .audio, now)
    }

    private func queue(bytes: Double, kind: PacketKind, frame: Int? = nil, _ now: MonotonicTime) {
        nextHandle += 1
        queued[nextHandle] = (now, frame)
        pacer.enqueue(handle: nextHandle, bytes: Int(bytes), kind: kind, now: now)
    }

    /// Runs due timers, and calls the closure for each packet to send, with the milliseconds for which it was held.
    func run(_ now: MonotonicTime, send: (Packet, Double) -> Void) {
        controller.handleTimeout(now: now)
        apply()
        while let grant = pacer.next(now: now) {
            switch grant {
            case .packet(let handle, let kind, let bytes, let probe):
                let number = controller.nextNumber
                controller.sent(bytes: bytes, probe: probe, now: now)
                let entry = queued.removeValue(forKey: handle)
                send(
                    Packet(number: number, bytes: Double(bytes), kind: kind, frame: entry?.frame),
                    entry.map { (now - $0.at).milliseconds } ?? 0)
            case .padding(_, _) where flow.video == nil:
                // Padding needs RTX, which audio has not.
                pacer.paddingSent(bytes: 0, now: now)
            case .padding(let bytes, let probe):
                // Padding is at most 255 bytes before there are packets to repeat.
                let size = nextHandle > 50 ? Int(Self.payload + Self.overhead) : 300
                var sent = 0
                while sent < bytes {
                    let length = min(max(bytes - sent, 100), size)
                    let number = controller.nextNumber
                    controller.sent(bytes: length, probe: probe, now: now)
                    send(Packet(number: number, bytes: Double(length), kind: .padding), 0)
                    sent += length
                }
                pacer.paddingSent(bytes: sent, now: now)
            }
        }
    }

    private func apply() {
        let control = controller.control
        pacer.setRates(pacing: control.pacing, padding: control.padding)
        while let probe = controller.takeProbe() { pacer.add(probe) }
    }
}

/// The events of a simulation in the order of their times, and of their making at one time.
struct EventHeap {
    enum Action {
        case begin(Int)
        case frame(Int)
        case audio(Int)
        case wake(Int)
        case arrival(Int, SimulatedSender.Packet)
        case report(Int)
        case feedback(Int, TransportFeedback)
        case sample(Int)
        case script(Int)
        case cross(Int)
        case transfer(Int)
        case segment(Int, Int)
        case retransmission(Int)
    }

    struct Event {
        var time: Double
        var order: Int
        var action: Action

        static func < (a: Event, b: Event) -> Bool { a.time != b.time ? a.time < b.time : a.order < b.order }
    }

    private var heap: [Event] = []
    private var made = 0

    mutating func add(_ time: Double, _ action: Action) {
        heap.append(Event(time: time, order: made, action: action))
        made += 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child] < heap[parent] else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func next(until end: Double) -> Event? {
        guard let first = heap.first, first.time <= end else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
            guard heap[child] < heap[parent] else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return first
    }
}
