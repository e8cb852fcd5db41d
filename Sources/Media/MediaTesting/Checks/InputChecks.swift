import MediaAuthoring

/// Checks of the nodes that are fed: processors and renderers.
extension ConformanceCheck {
    static let sizes = ConformanceCheck(
        "sizes", "It accepts frames of every size, with and without padding behind their rows."
    ) { examination in
        let stand = try examination.fedVideo()
        for shape in FrameShape.all {
            try await examination.pass([shape], rounds: 1)
        }
        if stand.group == .processor { try await examination.ignorePadding() }
        return .passed(FrameShape.all.map(\.description).joined(separator: ", "))
    }

    static let sizeChange = ConformanceCheck(
        "format-change", "The size of the frames may change between two of them."
    ) { examination in
        _ = try examination.fedVideo()
        try await examination.pass(FrameShape.changing, rounds: 2)
        return .passed("\(FrameShape.changing.count * 2) changes of the size")
    }

    static let speed = ConformanceCheck(
        "speed", "A frame of 1280x720 takes less time than the frame interval at 30 frames/s."
    ) { examination in
        let interval = 1.0 / 30
        let hd = FrameShape(width: 1280, height: 720)
        let seconds = try await examination.secondsPerFrame(of: hd, goal: interval)
        let words =
            "a frame of \(hd) takes \((seconds * 1000).rounded(to: 1)) ms, \((seconds / interval * 100).whole) % of the "
            + "interval"
        if seconds < interval { return .passed(words) }
        if Sanitizers.isOn { return .notApplicable("\(words) under a sanitizer") }
        // Loops over samples are 10 to 20 times slower in a debug build, and this frame has a sixteenth of them.
        if !examination.options.isOptimized,
            try await examination.secondsPerFrame(of: .usual, goal: interval) < interval
        {
            return .notApplicable("\(words) in a debug build; use swift build -c release to judge it")
        }
        return .failed(words)
    }

    static let liveSettings = ConformanceCheck(
        "live-settings", "A live setting changes between two frames, to both ends of its range."
    ) { examination in
        let values = examination.liveValues
        guard !values.isEmpty else { return .notApplicable("it has no live settings") }
        let run = try await examination.open()
        try await examination.set(values, on: run)
        _ = await run.stop()
        return .passed(values.map { "\($0.name) to \($0.value)" }.joined(separator: ", "))
    }

    static let gaps = ConformanceCheck("gaps", "After a gap in the media, it continues.") { examination in
        let gap = (after: 5, seconds: 2.0)
        examination.tries("with a gap of \(gap.seconds.whole) s")
        let run = try examination.feed(Feed(gap: gap))
        let lack = try await examination.waitsInVain(for: gap.after + 4, from: run)
        let count = run.units.count
        let outcome = await run.finish()
        return lack == nil
            ? .passed("it continued after \(gap.seconds.whole) s without media")
            : .failed("after a gap of \(gap.seconds.whole) s it read \(max(0, count - gap.after))\(outcome.words)")
    }

    static let holding = ConformanceCheck(
        "holding", "It keeps at most four frames while it runs, and none after it returned."
    ) { examination in
        _ = try examination.fedVideo()
        let limit = 4
        var most = 0
        // Cancelled, and at the end of the stream.
        for count in [nil, 10] {
            let run = try examination.feed(Feed(count: count))
            _ = try await examination.waitsInVain(for: count ?? 30, from: run)
            if count != nil { _ = await MachineClock().waits(Self.endLimit) { run.outcome != nil } }
            _ = await run.stop()
            most = max(most, run.record.mostHeld)
            if most > limit { return .failed("it keeps \(most) frames, and their memory is not reused") }
            // Another thread may have to release the last one.
            guard await MachineClock().waits(0.25, until: { run.record.held == 0 }) else {
                return .failed(
                    "\(run.record.held) of its frames \(run.record.held == 1 ? "is" : "are") still referenced after "
                        + "it returned")
            }
        }
        return .passed("at most \(most) while it runs, and none afterwards")
    }

    /// As long as a graph waits before it cancels a renderer, in seconds.
    private static let endLimit = 0.25

    static let end = ConformanceCheck(
        "end", "It returns without an error within 250 ms of the end of the stream."
    ) { examination in
        var longest = 0.0
        // A stream may also end before its first frame.
        for count in [0, 10] {
            let stream = count == 0 ? "an empty stream" : "a stream of \(count)"
            examination.tries("with \(stream)")
            var least = Double.infinity
            // Other work of the machine only makes it longer, so a long time is measured again.
            for _ in 0..<3 where least > endLimit {
                let run = try examination.feed(Feed(count: count))
                _ = await examination.clock.waits(examination.frameTimeout) {
                    run.record.ended != nil || run.outcome != nil
                }
                let machine = await Bystander().stop()
                _ = await MachineClock().waits(endLimit + machine) { run.outcome != nil }
                let (outcome, left) = (run.outcome, run.left)
                _ = await run.stop()
                if case .failed(let error) = outcome { return .failed("at the end of \(stream) it fails: \(error)") }
                guard let ended = run.record.ended else {
                    return .failed("it read \(run.units.count) of \(stream)\(outcome.words)")
                }
                least = min(least, left.map { max(0, $0.seconds(since: ended) - machine) } ?? .infinity)
            }
            guard least <= endLimit else {
                return .failed("it did not return within \((endLimit * 1000).whole) ms of the end of \(stream)")
            }
            longest = max(longest, least)
        }
        return .passed("it returned after at most \((longest * 1000).rounded(to: 1)) ms")
    }
}

extension FrameShape {
    /// The smallest, odd ones, upright, and large. The decoders' rows have padding.
    fileprivate static let all = [
        FrameShape(width: 1, height: 1), FrameShape(width: 17, height: 13, padding: 15),
        FrameShape(width: 180, height: 320), FrameShape(width: 321, height: 181, padding: 31),
        FrameShape(width: 1920, height: 1080),
    ]

    /// Ordinary ones: a network gets slow or fast again, and a telephone is turned.
    fileprivate static let changing = [
        FrameShape.usual, FrameShape(width: 640, height: 360), FrameShape(width: 180, height: 320),
    ]
}

extension Examination {
    /// The stand of a node that is fed directly.
    private func fed() throws -> FedStand {
        guard let stand = stand as? FedStand else { throw Finding.notApplicable("a pipeline feeds it, not the kit") }
        return stand
    }

    fileprivate func fedVideo() throws -> FedStand {
        let stand = try fed()
        if stand.isSound {
            throw Finding.notApplicable("it reads audio, whose buffers have one format and are copies")
        }
        return stand
    }

    fileprivate func feed(_ feed: Feed) throws -> StandRun<Feeder> {
        try fed().open(rehearsal.settings, feed)
    }

    /// Feeds frames of these shapes in turn. Throws unless all pass.
    fileprivate func pass(_ shapes: [FrameShape], rounds: Int) async throws {
        if shapes.count == 1 { tries("with frames of \(shapes[0])") }
        let run = try feed(Feed(shapes: shapes))
        // When it asks for one more, it is done with the others.
        let lack = try await waitsInVain(for: shapes.count * rounds + 1, from: run)
        let count = run.units.count
        let outcome = await run.finish()
        if case .failed(let error) = outcome { note(error) }
        guard lack != nil else { return }
        // A processor passes a frame when it is done, and a renderer reads it before.
        let last = stand.group == .processor ? count : max(0, count - 1)
        let before = shapes.count > 1 && last > 0 ? " after \(shapes[(last - 1) % shapes.count])" : ""
        throw Finding.failed("with frames of \(shapes[last % shapes.count])\(before) it passes no more\(outcome.words)")
    }

    /// Throws unless the same samples give the same result, wherever the rows end.
    fileprivate func ignorePadding() async throws {
        let tight = FrameShape(width: 322, height: 182)
        var padded = tight
        padded.padding = 30
        // A result may change with time or by chance, but not each time with the padding.
        for _ in 0..<3 {
            let first = try await result(of: tight)
            let other = try await result(of: padded)
            guard try await result(of: tight) == first, other != first else { return }
        }
        throw Finding.failed(
            "the result differs with frames of \(padded): a row begins one stride after the one above it")
    }

    private func result(of shape: FrameShape) async throws -> [[UInt8]]? {
        let run = try feed(Feed(shapes: [shape], count: 1))
        _ = await clock.waits(frameTimeout) { run.outcome != nil }
        _ = await run.stop()
        return run.record.lastResult
    }

    /// The median of some frames, the least of three tries: other work of the machine only makes it longer.
    fileprivate func secondsPerFrame(of shape: FrameShape, goal: Double) async throws -> Double {
        let count = 7
        var least = Double.infinity
        for _ in 0..<3 where least >= goal {
            tries("with frames of \(shape)")
            let run = try feed(Feed(shapes: [shape]))
            let lack = try await waitsInVain(for: count, from: run)
            let outcome = await run.finish()
            let seconds = run.record.seconds.sorted()
            guard !seconds.isEmpty, lack == nil || outcome == nil else { return .infinity }
            least = min(least, seconds[seconds.count / 2])
        }
        return least
    }
}
