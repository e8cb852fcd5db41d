/// Keeps a source's track going while its device comes and goes: decides when to open and close a device, and when
/// the track shows a stand-in. Told the time; has no clock, thread or lock.
///
/// A source has one device or several candidates for it, the wished one first. At most one of them is open. After each
/// call of `handle`, the caller performs the actions in their order, and calls again with `.timePassed` at `deadline`.
package struct SourceSupervisor: Sendable {
    package enum Input: Sendable {
        case started
        case stopped
        /// A monitor has noticed that the device is there.
        case appeared
        /// The answer to `look`.
        case looked(Int, isThere: Bool)
        /// The answers to `open`.
        case opened
        /// Another attempt does not come within `pause` seconds.
        case openFailed(Cause, pause: Double = 0)
        /// The answer to `close`.
        case closed
        /// The open device delivered a frame.
        case frame
        /// The open device delivered something that the track cannot show, such as video that depends on a lost frame: it is
        /// not silent, and the stand-in goes on.
        case alive
        /// The open device delivers so many frames in a second. A slow one is not silent between two frames.
        case paced(Double)
        /// The open device announced that it delivers nothing for now, or that it goes on.
        case rests(Bool)
        /// The open device failed.
        case failed(Cause)
        case timePassed
    }

    /// Why a device delivers nothing.
    package enum Cause: Sendable, Equatable {
        /// It is not there.
        case absent(MediaError)
        case failed(MediaError)
        /// It opened, and then delivered nothing for too long.
        case silent
        /// Its driver has not finished opening it.
        case unresponsive
        /// It delivered nothing, and is not there any more.
        case gone

        /// That of the device, if it reported one.
        package var error: MediaError? {
            switch self {
            case .absent(let error), .failed(let error): error
            case .silent, .unresponsive, .gone: nil
            }
        }

        package static func == (left: Cause, right: Cause) -> Bool {
            switch (left, right) {
            case (.absent(let one), .absent(let other)), (.failed(let one), .failed(let other)):
                // The messages of a program or a server may differ each time.
                one.code == other.code
            case (.silent, .silent), (.unresponsive, .unresponsive), (.gone, .gone): true
            default: false
            }
        }
    }

    package enum Action: Sendable, Equatable {
        /// Open a candidate, answered by `opened` or `openFailed`. It may block as long as the driver does.
        case open(Int)
        /// Close the open candidate, answered by `closed`.
        case close
        /// Check whether a candidate is there, answered by `looked`.
        case look(Int)
        /// Show the last frame or a slate, or play silence.
        case fill
        /// The next frame is the first one after a stand-in.
        case requestKeyframe
        case report(Event)
    }

    package enum Event: Sendable, Equatable {
        case waiting(Cause)
        case lost(Cause)
        case returned
        case failedOver(Int)
    }

    package enum Phase: String, Sendable, Hashable {
        case stopped
        /// The device is not there.
        case waiting
        case opening
        case streaming
        /// Open, and silent for a few frame times.
        case silent
        /// The lost device is being closed.
        case lost
        case backingOff
    }

    /// Limits, in seconds.
    package struct Limits: Sendable, Hashable {
        /// Without a frame, the stand-in begins.
        package var quiet = 0.2
        /// Without a frame, the device is checked, and is lost if it does not respond.
        package var silent = 1.5
        /// Without a frame, the device is lost, even if it responds.
        package var pause = 5.0
        /// From opening to the first frame.
        package var firstFrame = 8.0
        /// Until a stand-in shows while the device opens for the first time.
        package var firstStandIn = 1.0
        /// Between the frames of a stand-in.
        package var fill = 0.2
        /// Between attempts to open a device that is not there.
        package var poll = 0.5
        /// Between attempts to open a device that fails: doubles up to the longest.
        package var shortestBackoff = 0.25
        package var longestBackoff = 4.0
        /// Between 0 and 1: varies the attempts by up to a quarter, so that devices that failed together are not opened
        /// together.
        package var chance = 0.5
        /// A device that has delivered for as long works.
        package var steady = 10.0
        /// Between attempts to return to a wished device that is there and does not work: doubles from `steady` up to this.
        package var longestReturn = 600.0
        /// Between attempts to start a device that opens and refuses to start, after some: doubles up to this. Each attempt
        /// may cost a driver something.
        package var longestRefusal = 300.0
        /// So many events may be reported together, and then one per interval. An event that would only undo another
        /// that was not reported yet is omitted with it.
        package var eventBurst = 6.0
        package var eventInterval = 1.0
        /// A lost device that has not closed within this time keeps the next candidate from opening.
        package var closing = 5.0
        /// If a call is later than this, the machine stood still, and the device is not to blame for the silence.
        package var stall = 0.25
        /// A slow pace raises no limit above this.
        package var longestPaced = 3600.0

        package init() {}

        /// For a device that delivers so many frames in a second: some frame times are no silence.
        package func paced(_ rate: Double) -> Limits {
            guard rate > 0 else { return self }
            var limits = self
            limits.quiet = max(quiet, min(longestPaced, 4 / rate))
            limits.silent = max(silent, min(longestPaced, limits.quiet * 2))
            limits.pause = max(pause, min(longestPaced, limits.silent * 2))
            return limits
        }
    }

    /// The state of the source, as far as events describe it.
    private enum Standing: Equatable {
        /// Its device opens for the first time.
        case starting
        case waiting(Cause)
        case lost(Cause)
        case live(Int)
    }

    /// Those of any device.
    private let usual: Limits
    /// Those of the open device.
    package private(set) var limits: Limits
    private let candidates: Int
    /// Whether a loss is reported only when all candidates have failed.
    private let triesAllFirst: Bool
    package private(set) var phase = Phase.stopped
    /// The candidate that is open, or that is opened next.
    package private(set) var candidate = 0
    /// Whether the track shows a stand-in.
    package private(set) var isFilling = false
    /// How often a device that streamed was lost.
    package private(set) var losses = 0
    /// Whether a device is open, opening or closing.
    private var isBusy = false
    /// Whether the candidate has opened.
    private var isOpened = false
    private var hasStreamed = false
    private var standing = Standing.starting
    /// Why the last attempt failed. Of a replacement only if the wished device has not failed.
    private var latest: Cause?
    private var latestCandidate = 0
    private var told = Standing.starting
    private var eventRate: RateLimit
    /// How long the last device delivered, in seconds.
    private var worked = 0.0
    /// When the phase began, for opening, streaming and silent phases.
    private var since = MediaTime(nanoseconds: 0)
    private var lastFrame = MediaTime(nanoseconds: 0)
    /// The last sign of life: a frame, or when a rest began or ended.
    private var heard = MediaTime(nanoseconds: 0)
    private var nextFill = MediaTime(nanoseconds: 0)
    /// When the next event may be reported.
    private var tellAt = MediaTime(nanoseconds: 0)
    private var retryAt = MediaTime(nanoseconds: 0)
    private var openedAt = MediaTime(nanoseconds: 0)
    /// Attempts that have failed since a device last worked.
    private var failures = 0
    /// The candidates that have failed since then.
    private var failed: Set<Int> = []
    /// When the lost device began to close.
    private var closingSince = MediaTime(nanoseconds: 0)
    /// Rounds of attempts that have failed since then, of devices that are there.
    private var failedRounds = 0
    /// Those of them that opened a device which then failed before its first frame.
    private var refusals = 0
    /// Attempts to return to the wished device that have failed since it last worked.
    private var failedReturns = 0
    private var isReturning = false
    /// Whether the open device is silent on purpose.
    package private(set) var isResting = false
    private var look: Look?
    /// Whether `started` came while a device was still closing.
    private var startsAgain = false
    /// Whether a replacement is being closed because the wished device is there again.
    private var isSwitchingBack = false
    /// Why the device is being closed.
    private var loss = Cause.silent
    /// Whether the lost device appeared again while it was being closed.
    private var hasAppeared = false

    /// A check whether a candidate is there.
    private struct Look {
        let candidate: Int
        /// Nil while the answer is awaited.
        var isThere: Bool?
        var next: MediaTime
    }

    /// With `triesAllFirst`, a source whose device is lost or away is reported only when all candidates have failed, or when
    /// the lost device does not close.
    package init(candidates: Int = 1, limits: Limits = Limits(), triesAllFirst: Bool = false) {
        precondition(candidates > 0)
        (self.candidates, self.triesAllFirst) = (candidates, triesAllFirst)
        (usual, self.limits) = (limits, limits)
        eventRate = RateLimit(perSecond: 1 / limits.eventInterval, burst: limits.eventBurst, now: 0)
    }

    /// Why no device delivers; nil while one does or opens for the first time.
    package var cause: Cause? {
        switch standing {
        case .waiting(let cause), .lost(let cause): latest ?? cause
        case .starting, .live: nil
        }
    }

    /// The candidate that `cause` is about.
    package var blamed: Int { latest == nil ? candidate : latestCandidate }

    // MARK: Inputs

    /// Takes an input. Returns what to do, in order. `now` never runs back.
    package mutating func handle(_ input: Input, at now: MediaTime) -> [Action] {
        // Most calls: nothing changes, and nothing is allocated.
        if case .frame = input, phase == .streaming {
            (lastFrame, heard) = (now, now)
            return []
        }
        var actions: [Action] = []
        skipStall(now)
        switch input {
        case .started: start(now, &actions)
        case .stopped: stop(&actions)
        case .appeared: appeared(now)
        case .looked(let candidate, let isThere): looked(at: candidate, isThere, now, &actions)
        case .openFailed(let cause, let pause): openFailed(cause, pause: pause, now)
        case .closed: closed(now, &actions)
        case .frame: frame(now, &actions)
        case .alive: hear(now)
        case .failed(let cause): if isOpen { lose(cause, now, &actions) }
        case .opened: isOpened = true
        case .paced(let rate): if isOpen { limits = usual.paced(rate) }
        case .rests(let rests): rest(rests, now)
        case .timePassed: break
        }
        settle(now, &actions)
        return actions
    }

    private mutating func rest(_ rests: Bool, _ now: MediaTime) {
        guard isOpen, rests != isResting else { return }
        isResting = rests
        look = nil
        // Silence counts from here on. The stand-in goes on, as of a device that is silent for a moment.
        if phase == .opening { since = now }
        heard = now
    }

    private var isOpen: Bool { phase == .opening || phase == .streaming || phase == .silent }

    private mutating func start(_ now: MediaTime, _ actions: inout [Action]) {
        guard phase == .stopped else { return }
        guard !isBusy else {
            startsAgain = true
            return
        }
        (candidate, hasStreamed, isFilling, worked) = (0, false, false, 0)
        (failures, failed, failedRounds, refusals, failedReturns, isReturning) = (0, [], 0, 0, 0, false)
        (standing, told, latest) = (.starting, .starting, nil)
        nextFill = now + .seconds(limits.firstStandIn)
        open(now, &actions)
    }

    private mutating func stop(_ actions: inout [Action]) {
        startsAgain = false
        if isOpen { actions.append(.close) }
        (phase, isFilling, look, isSwitchingBack) = (.stopped, false, nil, false)
    }

    private mutating func open(_ now: MediaTime, _ actions: inout [Action]) {
        (phase, isBusy, isOpened, since, openedAt, look) = (.opening, true, false, now, now, nil)
        (isResting, hasAppeared) = (false, false)
        limits = usual
        actions.append(.open(candidate))
    }

    private mutating func openFailed(_ cause: Cause, pause: Double, _ now: MediaTime) {
        // Otherwise it is being closed already, and `closed` follows. A frame may have come first.
        guard isOpen else { return }
        isBusy = false
        endReturn(works: false)
        stand(cause)
        retryLater(because: cause, now)
        if pause > 0, phase == .backingOff { retryAt = max(retryAt, now + .seconds(pause)) }
    }

    private mutating func closed(_ now: MediaTime, _ actions: inout [Action]) {
        guard isBusy, !isOpen else { return }
        isBusy = false
        if isSwitchingBack {
            (isSwitchingBack, candidate, phase, retryAt) = (false, 0, .backingOff, now)
        } else if phase == .lost {
            retryLater(because: loss, now)
            if hasAppeared { appeared(now) }
        } else if startsAgain {
            startsAgain = false
            start(now, &actions)
        }
    }

    private mutating func frame(_ now: MediaTime, _ actions: inout [Action]) {
        guard isOpen else { return }
        // A frame after a short silence is much like the one before.
        if case .live(candidate) = standing {} else if isFilling || hasStreamed { actions.append(.requestKeyframe) }
        if phase == .opening { since = now }
        (phase, lastFrame, heard) = (.streaming, now, now)
        (isFilling, hasStreamed, look) = (false, true, nil)
        (standing, latest) = (.live(candidate), nil)
    }

    private mutating func hear(_ now: MediaTime) {
        guard isOpen else { return }
        if phase == .opening { since = now }
        (heard, look) = (now, nil)
    }

    private mutating func appeared(_ now: MediaTime) {
        if phase == .lost { hasAppeared = true }
        guard phase == .waiting || phase == .backingOff else { return }
        candidate = 0
        retryAt = min(retryAt, max(now, openedAt + .seconds(limits.shortestBackoff)))
    }

    private mutating func looked(
        at candidate: Int, _ isThere: Bool, _ now: MediaTime, _ actions: inout [Action]
    ) {
        guard look?.candidate == candidate, look?.isThere == nil else { return }
        look?.isThere = isThere
        // One that delivers was missed by mistake.
        if !isThere, candidate == self.candidate, phase == .silent { lose(.gone, now, &actions) }
    }

    private mutating func lose(_ cause: Cause, _ now: MediaTime, _ actions: inout [Action]) {
        worked = phase == .opening ? 0 : now.seconds(since: since)
        if worked >= limits.steady { (failures, failed, failedRounds, refusals) = (0, [], 0, 0) }
        if phase == .opening, case .failed = cause { refusals += 1 }
        endReturn(works: worked >= limits.steady)
        stand(cause)
        (phase, loss, look, closingSince) = (.lost, cause, nil, now)
        actions.append(.close)
    }

    /// Notes whether the wished device works, to which the source returned.
    private mutating func endReturn(works: Bool) {
        guard candidate == 0 else { return }
        if works { failedReturns = 0 } else if isReturning { failedReturns += 1 }
        isReturning = false
    }

    /// Notes why the source is not live.
    private mutating func stand(_ cause: Cause) {
        failed.insert(candidate)
        if candidate == 0 || latest == nil { (latest, latestCandidate) = (cause, candidate) }
        if !hasStreamed {
            // The wished device's cause says most.
            if candidate == 0 || standing == .starting { standing = .waiting(cause) }
        } else if case .lost = standing {
            // The first cause says most: the next attempts find no device.
        } else {
            losses += 1
            standing = .lost(cause)
        }
    }

    private mutating func retryLater(because cause: Cause, _ now: MediaTime) {
        failures += 1
        // Another candidate may work now. After each round, they all wait.
        let isRoundOver = failures % candidates == 0
        candidate = (candidate + 1) % candidates
        if isRoundOver { candidate = 0 }
        var pause = 0.0
        if case .absent = cause {
            phase = .waiting
            pause = limits.poll
        } else {
            phase = .backingOff
            if isRoundOver {
                let backoff = Backoff(first: limits.shortestBackoff, longest: limits.longestBackoff)
                pause = max(backoff.pause(after: failedRounds) * (0.75 + limits.chance / 2), refusalPause)
                failedRounds += 1
            }
        }
        worked = 0
        retryAt = now + .seconds(isRoundOver ? pause : 0)
        retryAt = max(retryAt, openedAt + .seconds(limits.shortestBackoff))
    }

    private var refusalPause: Double {
        refusals <= 4
            ? 0 : Backoff(first: limits.longestBackoff, longest: limits.longestRefusal).pause(after: refusals - 4)
    }

    private var returnPause: Double {
        Backoff(first: limits.steady, longest: limits.longestReturn).pause(after: failedReturns)
    }

    // MARK: Time

    /// A machine that stood still delivers neither frames nor calls.
    private mutating func skipStall(_ now: MediaTime) {
        guard let due = deadline, now.seconds(since: due) > limits.stall else { return }
        since = min(now, since + (now - due))
        lastFrame = min(now, lastFrame + (now - due))
        heard = min(now, heard + (now - due))
    }

    /// Does what is due.
    private mutating func settle(_ now: MediaTime, _ actions: inout [Action]) {
        if phase == .streaming, now >= lastFrame + .seconds(limits.quiet) { phase = .silent }
        // A device that rests is not lost, however long.
        if isResting {
            if isOpen { heard = now }
            if phase == .opening { since = now }
        }
        if phase == .silent, now >= heard + .seconds(limits.pause) { lose(.silent, now, &actions) }
        // A driver that hangs cannot be stopped: closing waits for it, and the stand-in goes on.
        if phase == .opening, now >= since + .seconds(limits.firstFrame) {
            lose(isOpened ? .silent : .unresponsive, now, &actions)
        }
        if phase == .waiting || phase == .backingOff, now >= retryAt { open(now, &actions) }
        lookAround(now, &actions)
        fill(now, &actions)
        tell(now, &actions)
    }

    /// Looks for the wished candidate while another one delivers, and for a silent device.
    private mutating func lookAround(_ now: MediaTime, _ actions: inout [Action]) {
        switch phase {
        case .silent:
            guard look == nil, now >= heard + .seconds(limits.silent) else { return }
            look = Look(candidate: candidate, next: now)
            actions.append(.look(candidate))
        case .streaming where candidate > 0:
            guard now >= returnAt else { return }
            if look?.isThere == true {
                (phase, isSwitchingBack, isReturning, failures, failed, look) = (.lost, true, true, 0, [], nil)
                actions.append(.close)
            } else if look.map({ $0.isThere != nil && now >= $0.next }) ?? true {
                look = Look(candidate: 0, next: now + .seconds(limits.poll))
                actions.append(.look(0))
            }
        default: break
        }
    }

    private mutating func fill(_ now: MediaTime, _ actions: inout [Action]) {
        guard phase != .stopped, phase != .streaming else { return }
        if !isFilling {
            // A stand-in before the device has opened for the first time would only flash.
            if !hasStreamed, standing == .starting, now < nextFill { return }
            if phase != .silent, hasStreamed, now < lastFrame + .seconds(limits.quiet) { return }
            (isFilling, nextFill) = (true, now)
        }
        guard now >= nextFill else { return }
        nextFill = max(nextFill + .seconds(limits.fill), now)
        if now >= nextFill { nextFill = now + .seconds(limits.fill) }
        actions.append(.fill)
    }

    private mutating func tell(_ now: MediaTime, _ actions: inout [Action]) {
        guard standing != told, phase != .stopped, !isUndecided(now) else { return }
        if told == .starting, standing == .live(0) {
            told = standing
            return
        }
        tellAt = now + .seconds(eventRate.delay(now: now.nanoseconds))
        guard now >= tellAt, let event else { return }
        eventRate.take()
        told = standing
        actions.append(.report(event))
    }

    /// Whether another candidate may still take over, which is reported instead of the loss.
    private func isUndecided(_ now: MediaTime) -> Bool {
        guard mayTakeOver else { return false }
        return phase != .lost || now < closingSince + .seconds(limits.closing)
    }

    private var mayTakeOver: Bool {
        guard triesAllFirst, failed.count < candidates else { return false }
        return switch standing {
        case .waiting, .lost: true
        case .starting, .live: false
        }
    }

    /// The event for the change of the standing. Nil for the first start.
    private var event: Event? {
        switch standing {
        case .starting: nil
        case .waiting(let cause): .waiting(cause)
        case .lost(let cause): .lost(cause)
        case .live(let place) where place > 0: .failedOver(place)
        case .live: .returned
        }
    }

    /// When to call `handle` with `timePassed`; nil if nothing is due.
    package var deadline: MediaTime? {
        var due = MediaTime(nanoseconds: .max)
        switch phase {
        case .stopped: return nil
        case .streaming:
            due = lastFrame + .seconds(limits.quiet)
            if candidate > 0, look?.isThere != nil || look == nil {
                due = min(due, max(look?.next ?? returnAt, returnAt))
            }
        case .silent: due = heard + .seconds(look == nil ? limits.silent : limits.pause)
        case .opening: due = since + .seconds(limits.firstFrame)
        case .waiting, .backingOff: due = retryAt
        case .lost: break
        }
        if phase != .streaming {
            due = min(due, isFilling || !hasStreamed ? nextFill : lastFrame + .seconds(limits.quiet))
        }
        if standing == told { return due }
        guard mayTakeOver else { return min(due, tellAt) }
        return phase == .lost ? min(due, max(tellAt, closingSince + .seconds(limits.closing))) : due
    }

    /// When to check for the wished device again.
    private var returnAt: MediaTime { since + .seconds(returnPause) }
}
