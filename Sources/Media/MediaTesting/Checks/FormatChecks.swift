import MediaAuthoring

extension ConformanceCheck {
    static let formats = ConformanceCheck(
        "formats", "Frames have the size and encoding that format() states, and every row is drawn."
    ) { examination in
        let watched = try await examination.watched()
        if let lack = watched.lack, !watched.isShort { return .failed(lack) }
        if let fault = watched.fault { return .failed(fault) }
        if let stated = watched.stated, let again = try examination.stand.format(examination.rehearsal.settings),
            stated != again
        {
            return .failed("it states \(stated), and the second time \(again)")
        }
        if let stated = watched.stated, let first = watched.units.first, !stated.admits(first.format) {
            return .failed("it states \(stated), but begins with \(first.format)")
        }
        if let lack = watched.keyframeLack {
            return .failed(
                "it does not begin with a keyframe, and none arrives within \(lack.rounded(to: 1)) s of the request, "
                    + "so all frames are dropped")
        }
        return .passed("\(watched.units.count) of \(watched.stated ?? watched.units.first?.format ?? .rawAudio)")
    }

    static let formatChange = ConformanceCheck(
        "format-change", "A change of format is announced first, and the times continue."
    ) { examination in
        let values = examination.liveValues
        let before = try await examination.watched()
        guard !values.isEmpty || before.formats.count > 1 else {
            return .notApplicable("it has no live settings, and did not change by itself")
        }
        let run = try await examination.open()
        try await examination.set(values, on: run)
        let units = run.units
        let watched = Examination.Watched(stated: before.stated, units: units, outcome: await run.finish())
        if let fault = watched.fault { return .failed(fault) }
        if let step = watched.units.stepBack { return .failed(step) }
        if watched.formats.count > 1, examination.stand.offers(.rigid) {
            try await examination.refuse(values)
        }
        let tried = values.map { "\($0.0) to \($0.1)" }.joined(separator: ", ")
        return .passed(
            watched.formats.count > 1
                ? "\(watched.formats.count) formats, each announced" : "one format throughout, with \(tried)")
    }
}

extension Examination {
    /// Both ends of each live setting's range, or each of its words.
    var liveValues: [(name: String, value: SettingValue)] {
        stand.settings.filter(\.isChangeable).flatMap { contract in contract.ends.map { (contract.name, $0) } }
    }

    /// Changes live settings one after the other, with media in between. Ends the run and throws if it stops sending.
    func set(_ values: [(name: String, value: SettingValue)], on run: any NodeRun) async throws {
        guard try await waitsInVain(for: 3, from: run) == nil else {
            let count = run.units.count
            throw Finding.failed("it passed \(count) and no more\(await run.finish().words)")
        }
        for (name, value) in values {
            let count = run.units.count
            tries("when \(name) became \(value)")
            do {
                try await run.set(name, to: value)
            } catch {
                // A format that the device refuses gets a message, and the run continues.
                note(error)
            }
            if try await waitsInVain(for: 4, since: count, from: run, with: [name: value]) != nil {
                throw Finding.failed("after \(name) became \(value) it passed no more\(await run.finish().words)")
            }
        }
    }

    /// Changes the format with a consumer that accepts no other.
    fileprivate func refuse(_ values: [(name: String, value: SettingValue)]) async throws {
        let run = try await open([:], .rigid)
        _ = try await waitsInVain(for: 3, from: run)
        for (name, value) in values where run.outcome == nil {
            tries("when \(name) became \(value)")
            try? await run.set(name, to: value)
            await clock.runs(run, for: 0.2)
        }
        let units = run.units
        if case .ended = await run.finish() {
            throw Finding.failed("it returned without an error when a format change was refused")
        }
        if let fault = units.first(where: { $0.fault != nil })?.fault {
            throw Finding.failed("after a refused change \(fault)")
        }
    }
}

extension NodeOutcome? {
    /// How it ended, as the end of a sentence.
    var words: String {
        switch self {
        case .none: ""
        case .ended: "; it returned"
        case .failed(let error): "; it failed: \(error)"
        case .cancelled: "; it was cancelled"
        }
    }
}

extension Examination.Watched {
    fileprivate var fault: String? {
        units.enumerated().first { $1.fault != nil }.flatMap { index, unit in
            unit.fault.map { "frame \(index + 1): \($0)" }
        }
    }

    fileprivate var formats: Set<MediaFormat> { Set(units.map(\.format)) }
}

extension MediaFormat {
    /// Whether `other` matches this format in all known properties.
    fileprivate func admits(_ other: MediaFormat) -> Bool {
        kind == other.kind && encoding == other.encoding && width ?? other.width == other.width
            && height ?? other.height == other.height
    }
}

extension [MediaUnit] {
    /// The first time that does not increase, as text.
    var stepBack: String? {
        zip(self, dropFirst()).enumerated().first { $1.1.time <= $1.0.time }.map { index, pair in
            let step = pair.1.time.milliseconds(since: pair.0.time)
            return "after \(index + 1) the time steps by \(step.rounded(to: 3)) ms"
        }
    }
}

extension Double {
    var whole: Int { isFinite ? Int(max(-1e15, min(1e15, self.rounded()))) : .max }

    func rounded(to digits: Int) -> Double {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        return (self * scale).rounded() / scale
    }
}
