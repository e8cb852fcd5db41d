import MediaGraph
import TestSupport
import Testing

/// A device on virtual time, and the source that is supervised.
struct Bench {
    var supervisor: SourceSupervisor
    var now = MediaTime(nanoseconds: 1_000_000_000_000)
    private(set) var outstanding: [Int] = []
    private(set) var mostOutstanding = 0
    private(set) var events: [(at: MediaTime, event: SourceSupervisor.Event)] = []
    private(set) var opens: [MediaTime] = []
    private(set) var keyframes = 0
    private(set) var fills = 0
    private(set) var looks: [Int] = []
    /// The time of the last frame or stand-in of the track.
    private(set) var lastShown: MediaTime?
    private(set) var longestGap = 0.0
    private(set) var isClosing = false

    init(candidates: Int = 1, _ limits: SourceSupervisor.Limits = .init(), triesAllFirst: Bool = false) {
        supervisor = SourceSupervisor(candidates: candidates, limits: limits, triesAllFirst: triesAllFirst)
    }

    var words: [String] { events.map { "\($0.event)".prefix { $0 != "(" }.description } }

    mutating func send(_ input: SourceSupervisor.Input) {
        if case .frame = input { shown() }
        switch input {
        case .openFailed, .closed: outstanding = []
        default: break
        }
        if case .closed = input { isClosing = false }
        for action in supervisor.handle(input, at: now) { perform(action) }
    }

    private mutating func perform(_ action: SourceSupervisor.Action) {
        switch action {
        case .open(let candidate):
            outstanding.append(candidate)
            opens.append(now)
            mostOutstanding = max(mostOutstanding, outstanding.count)
        case .close: isClosing = true
        case .fill:
            fills += 1
            shown()
        case .look(let candidate): looks.append(candidate)
        case .requestKeyframe: keyframes += 1
        case .report(let event): events.append((now, event))
        }
    }

    private mutating func shown() {
        // Nobody sees the frames of a source that is stopped.
        guard supervisor.phase != .stopped else { return }
        if let lastShown { longestGap = max(longestGap, now.seconds(since: lastShown)) }
        lastShown = now
    }

    mutating func beginTrack() { (lastShown, longestGap) = (now, 0) }
    mutating func endTrack() { lastShown = nil }

    /// Lets time pass, with a call at each deadline.
    mutating func pass(_ seconds: Double, each interval: Double? = nil, of input: SourceSupervisor.Input? = nil) {
        let end = now + .seconds(seconds)
        var next = interval.map { now + .seconds($0) } ?? end
        var calls = 0
        while true {
            let due = min(supervisor.deadline ?? end, min(next, end))
            calls = due > now ? 0 : calls + 1
            if calls > 100 {
                Issue.record("the supervisor does nothing at its deadline")
                return
            }
            now = max(now, due)
            if now >= end { return }
            if let input, let interval, now >= next {
                send(input)
                next = next + .seconds(interval)
            } else {
                send(.timePassed)
            }
        }
    }

    /// A device that delivers 30 frames a second.
    mutating func stream(_ seconds: Double) { pass(seconds, each: 1 / 30, of: .frame) }

    /// Frames, loss or time, and the answers of a device that may hang.
    mutating func live(through seconds: Double, deviceWorks: Bool) {
        let end = now + .seconds(seconds)
        while now < end {
            if isClosing { send(.closed) }
            if supervisor.phase == .opening { send(deviceWorks ? .opened : .openFailed(.absent(absent))) }
            if deviceWorks, !isClosing { stream(0.1) } else { pass(0.1) }
        }
    }
}

let absent = MediaError(code: "camera.absent", message: "There is no camera.")
let broken = MediaError(code: "camera.lost", message: "It stopped.")

extension Bench {
    var isOpenNow: Bool { [.opening, .streaming, .silent].contains(supervisor.phase) }

    /// Lets the device fail once more, in one of the ways that devices have.
    mutating func fail(_ random: inout Seeded) {
        if isClosing { send(.closed) }
        while !isOpenNow { pass(1) }
        switch Int.random(in: 0...3, using: &random) {
        case 0 where supervisor.phase == .opening: send(.openFailed(.absent(absent)))
        case 1 where supervisor.phase == .opening: send(.openFailed(.failed(broken)))
        case 2: pass(20)
        default:
            send(.opened)
            send(.failed(.failed(broken)))
        }
    }

    /// Time without calls.
    mutating func stall(_ seconds: Double) { now = now + .seconds(seconds) }
}
