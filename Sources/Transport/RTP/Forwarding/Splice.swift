/// Joins successive streams of one receiver, and the epochs of each, into one continuous RTP stream.
///
/// Each epoch begins at a keyframe. Sequence numbers, timestamps and picture ids continue from the previous epoch,
/// because decoders treat a jump as loss. Omitted packets leave no gap. The first stream keeps its timestamps and
/// picture ids.
public struct Splice: Sendable {
    /// The parts of a packet that forwarding reads once for all receivers.
    public struct Packet: Sendable {
        public var position: StreamPosition
        public var timestamp: RTPTimestamp
        /// Whether no later packet of its epoch arrived before it.
        public var isNewest: Bool
        public var payload: PayloadDescriptor

        public init(position: StreamPosition, timestamp: RTPTimestamp, isNewest: Bool, payload: PayloadDescriptor) {
            self.position = position
            self.timestamp = timestamp
            self.isNewest = isNewest
            self.payload = payload
        }
    }

    /// The numbers of a forwarded packet.
    public struct Numbers: Sendable, Equatable {
        public var sequenceNumber: SequenceNumber
        public var timestamp: RTPTimestamp
        public var patch: PayloadPatch?
        /// Whether only a packet without payload may have them, because the frame was left out.
        public var isEmpty = false
    }

    private enum State {
        case idle
        case joining
        case flowing
    }

    /// The newest packet sent.
    private struct Last {
        var timestamp: RTPTimestamp
        var picture: PictureNumber
        var time: MonotonicTime
    }

    /// Capture times of two streams are compared only if they agree with the arrival times within this tolerance.
    /// Otherwise the publishers' wall clocks differ.
    static let clockTolerance = TimeInterval.milliseconds(500)

    /// Numbers that may be skipped at once: more missing packets than these are not asked for.
    static let maximumSkips = NackGenerator.maximumMissing

    private var state = State.idle
    /// Whether it joins the stream that it has left last.
    private var keepsTime = false
    private var clockRate: UInt32 = 90000
    /// Nil before the first packet of a source that had sent nothing at `begin`.
    private var epoch: Int?
    /// The first forwarded packet of the epoch.
    private var start = 0
    private var compactor = SequenceCompactor(start: 0)
    /// Added to compacted numbers.
    private var sequenceOffset = 0
    private var timestampTicks = 0
    private var pictureOffset = PictureNumber()
    /// The epoch's frames that were left out, and the picture ids without their gaps. Nil as long as none was.
    private var pictures: PictureCompactor?
    /// The same of frames before the newest keyframe, whose packets may arrive late. Nil if none of those was left out.
    private var former: (pictures: PictureCompactor, offset: PictureNumber, end: Int)?
    /// The number after the highest sent one, without wrap.
    private var next: Int
    /// Numbers that may be skipped now. Each packet adds one, also a late one.
    private var skips = Splice.maximumSkips
    private var last: Last?
    /// The source's clock, in the source's timestamps.
    private var sourceClock: SenderClock?
    /// The newest known clock of the output, in its timestamps.
    private var sentClock: SenderClock?

    /// Sends the first packet with this number. `randomStart` returns a suitable one.
    public init(firstSequenceNumber: SequenceNumber) { next = Int(firstSequenceNumber.rawValue) }

    /// A number far below the wrap: a receiver that misses the first packets must not mistake the rollover counter (RFC
    /// 3711, section 3.3.1).
    public static func randomStart(using random: inout some RandomNumberGenerator) -> SequenceNumber {
        SequenceNumber(UInt16.random(in: 0..<0x4000, using: &random))
    }

    /// Whether the splice waits for a keyframe.
    public var isAwaitingStart: Bool { state == .joining }

    /// The number of the next packet if the source changes now.
    public var nextSequenceNumber: SequenceNumber { SequenceNumber(UInt16(truncatingIfNeeded: next)) }

    /// Ties the sent timestamps to the publisher's wall clock. Nil until both are known.
    public var clock: SenderClock? { state == .flowing && sourceClock != nil ? sentClock : nil }

    /// Switches to another source, which joins at its next keyframe. `clock` is the source's in its epoch `epoch`, if
    /// known. A source without an epoch has sent nothing.
    public mutating func begin(clockRate: UInt32, clock: SenderClock?, epoch: Int? = nil) {
        self.clockRate = max(clockRate, 1)
        (state, keepsTime) = (.joining, false)
        self.epoch = epoch
        sourceClock = clock
    }

    public mutating func end() { state = .idle }

    /// Goes on at the next keyframe of the same source. Its timestamps stay as they are.
    public mutating func pause() {
        guard state == .flowing else { return }
        (state, keepsTime) = (.joining, true)
    }

    /// The source has begun another epoch, or will with its next packet. The next clock is that of the new epoch.
    public mutating func sourceRestarted() {
        guard epoch != nil else { return }
        if state != .idle { state = .joining }
        (keepsTime, sourceClock, epoch) = (false, nil, nil)
    }

    /// Sets the clock that a paused source has got since, before another one may begin. Ignores that of another epoch.
    public mutating func setClock(_ clock: SenderClock, ofPaused epoch: Int?) {
        if state == .joining, keepsTime, epoch == self.epoch { setClock(clock) }
    }

    /// Sets the clock of the current source's epoch.
    public mutating func setClock(_ clock: SenderClock) {
        sourceClock = clock
        // A pause changes no timestamps.
        if state == .flowing || state == .joining && keepsTime { sentClock = moved(clock) }
    }

    /// Sets the clock of the source whose packets are taken next, unless one is known.
    public mutating func offerClock(_ clock: SenderClock) { if sourceClock == nil { setClock(clock) } }

    /// The packet's new numbers. Nil if it must not be sent. They may be those of an empty packet.
    public mutating func take(_ packet: Packet, now: MonotonicTime) -> Numbers? {
        if state == .idle { return nil }
        enter(packet.position.epoch)
        if state == .joining {
            // If the start of a keyframe was repaired, its other packets arrived earlier and were not sent. Another
            // keyframe is better than one with a gap.
            guard packet.isNewest, packet.payload.isStart else { return nil }
            join(packet, now)
        }
        limitGap(before: packet.position.number)
        guard packet.position.number >= start else { return nil }
        guard let picture = picture(of: packet) else {
            // It may be too late to close the gap.
            var numbers = leaveOut(packet.position, timestamp: packet.timestamp)
            numbers?.isEmpty = true
            return numbers
        }
        guard let place = compactor.place(packet.position.number) else { return nil }
        let number = place + sequenceOffset
        let timestamp = packet.timestamp.advanced(by: timestampTicks)
        if number >= next {
            next = number + 1
            last = Last(timestamp: timestamp, picture: picture, time: now)
        }
        return Numbers(
            sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)), timestamp: timestamp,
            patch: pictureOffset == PictureNumber() && pictures == nil ? nil : packet.payload.patch(picture))
    }

    /// The packet's new picture ids. Nil for a packet of a frame of VP8 that was left out.
    private mutating func picture(of packet: Packet) -> PictureNumber? {
        var picture = packet.payload.picture
        let keepsGaps = packet.payload.keepsPictureGaps
        if let offset = former?.offset, isFormer(packet), let id = packet.payload.pictureID {
            // Another layer frame of a frame that was left out may be of the base layer. Its id is free.
            guard let place = former?.pictures.place(id) ?? (keepsGaps ? id : nil) else { return nil }
            if !keepsGaps { picture.id = place }
            return picture &+ offset
        }
        guard pictures != nil, let id = packet.payload.pictureID else { return picture &+ pictureOffset }
        if !packet.payload.isStart || !packet.isNewest {
            if keepsGaps, pictures?.hasLeftOut(id) == true { return picture &+ pictureOffset }
            if let place = pictures?.place(id) {
                if !keepsGaps { picture.id = place }
                return picture &+ pictureOffset
            }
        }
        guard packet.isNewest, let last, let pictures else { return nil }
        // A keyframe, on which all later frames depend, or the publisher's ids have begun elsewhere.
        former = (pictures, pictureOffset, packet.position.number)
        self.pictures = nil
        if !keepsGaps { pictureOffset = last.picture.next &- picture }
        return picture &+ pictureOffset
    }

    /// Whether a packet is of a frame before the newest keyframe.
    private func isFormer(_ packet: Packet) -> Bool { former.map { packet.position.number < $0.end } ?? false }

    /// Whether frames of this epoch were left out.
    public var hasLeftOutFrames: Bool { pictures != nil || former != nil }

    /// Omits a packet of a frame that nothing sent later depends on. Picture ids of VP8 have no gap either: decoders wait
    /// for missing ones.
    public mutating func leaveOutPicture(_ packet: Packet) -> Numbers? {
        guard state == .flowing, packet.position.epoch == epoch, let id = packet.payload.pictureID else { return nil }
        guard !isFormer(packet) else { return leaveOut(packet.position, timestamp: packet.timestamp) }
        if pictures == nil { pictures = PictureCompactor(before: id, isLong: packet.payload.hasLongPictureID) }
        pictures?.leaveOut(id)
        return leaveOut(packet.position, timestamp: packet.timestamp)
    }

    /// Whether a packet belongs to a frame that was left out.
    public func hasLeftOut(_ packet: Packet) -> Bool {
        guard hasLeftOutFrames, packet.position.epoch == epoch, let id = packet.payload.pictureID else { return false }
        return (isFormer(packet) ? former?.pictures : pictures)?.hasLeftOut(id) ?? false
    }

    /// Omits a packet. If it is too late to close the gap, returns the numbers for an empty packet, because receivers
    /// would request it without success.
    public mutating func leaveOut(_ position: StreamPosition, timestamp: RTPTimestamp) -> Numbers? {
        if state == .idle { return nil }
        enter(position.epoch)
        if state == .flowing { limitGap(before: position.number) }
        guard state == .flowing, position.number >= start, let place = compactor.leaveOut(position.number) else {
            return nil
        }
        // It may be the highest number so far, which no other packet may have.
        next = max(next, place + sequenceOffset + 1)
        return Numbers(
            sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: place + sequenceOffset)),
            timestamp: timestamp.advanced(by: timestampTicks), patch: nil)
    }

    /// Closes a gap that is too long, except for one number, so that receivers notice it. Packets from before it are no
    /// longer sent.
    ///
    /// A receiver that loses 32768 numbers in a row mistakes the rollover counter, and can never decrypt this SSRC again
    /// (RFC 3711, section 3.3.1). If a publisher skips 3000 with each packet, that takes a dozen packets.
    private mutating func limitGap(before number: Int) {
        let gap = number - compactor.highest - 1
        guard gap >= 0 else {
            // It fills a part of a gap.
            skips = min(Self.maximumSkips, skips + 1)
            return
        }
        if gap <= skips {
            skips = min(Self.maximumSkips, skips - gap + 1)
        } else {
            start = number
            compactor = SequenceCompactor(start: start)
            sequenceOffset = next + 1 - start
        }
    }

    /// Begins a new epoch, which has to join again and has another clock.
    private mutating func enter(_ newEpoch: Int) {
        guard epoch != newEpoch else { return }
        if epoch != nil {
            (state, keepsTime) = (.joining, false)
            sourceClock = nil
        }
        epoch = newEpoch
    }

    private mutating func join(_ packet: Packet, _ now: MonotonicTime) {
        start = packet.position.number
        compactor = SequenceCompactor(start: start)
        (pictures, former) = (nil, nil)
        sequenceOffset = next - start
        if let last {
            if !keepsTime {
                let ticks = max(1, ticks(in: elapsed(since: last, to: packet.timestamp, now)))
                timestampTicks = last.timestamp.advanced(by: ticks).distance(from: packet.timestamp)
            }
            pictureOffset = last.picture.next &- packet.payload.picture
        }
        state = .flowing
        if let sourceClock { sentClock = moved(sourceClock) }
    }

    /// The time from the last packet's capture to that of the packet with this timestamp. Measured by the publishers'
    /// clocks if they are known and agree, else by arrival.
    private func elapsed(since last: Last, to timestamp: RTPTimestamp, _ now: MonotonicTime) -> TimeInterval {
        let arrival = now - last.time
        guard let sentClock, let sourceClock else { return arrival }
        let capture = sourceClock.time(of: timestamp) - sentClock.time(of: last.timestamp)
        let difference = capture - arrival
        return max(difference, .zero - difference) <= Self.clockTolerance ? capture : arrival
    }

    private func ticks(in interval: TimeInterval) -> Int {
        // Microseconds first, to avoid an overflow.
        Int(interval.nanoseconds / 1000) * Int(clockRate / 1000) / 1000
    }

    private func moved(_ clock: SenderClock) -> SenderClock {
        SenderClock(
            ntp: clock.ntp, rtp: clock.rtp.advanced(by: timestampTicks), at: clock.at, clockRate: clock.clockRate)
    }
}

extension SenderClock {
    /// The time of the timestamp since 1970, on the sender's wall clock.
    fileprivate func time(of timestamp: RTPTimestamp) -> TimeInterval {
        let ticks = Int64(timestamp.distance(from: rtp))
        return TimeInterval(
            nanoseconds: Int64(ntp.unixNanoseconds) + ticks * 1_000_000_000 / Int64(max(clockRate, 1)))
    }
}
