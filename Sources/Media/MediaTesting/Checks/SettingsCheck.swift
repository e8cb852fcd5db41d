import MediaAuthoring

extension ConformanceCheck {
    static let settings = ConformanceCheck(
        "settings",
        "A value out of its range is refused with a message; at both ends of the range, the node works or reports "
            + "why not."
    ) { examination in
        let settings = examination.stand.settings
        guard !settings.isEmpty else { return .notApplicable("it has no settings") }
        var tried = 0
        for contract in settings {
            for value in contract.strangers {
                tried += 1
                try await examination.expectRefusal(of: [contract.name: value])
            }
            for value in contract.ends {
                tried += 1
                try await examination.expectMedia(with: [contract.name: value])
            }
        }
        return .passed("\(tried) values of \(settings.count == 1 ? "one setting" : "\(settings.count) settings")")
    }
}

extension Examination {
    /// Throws unless it refuses these settings, which are out of range, with a message.
    fileprivate func expectRefusal(of settings: [String: SettingValue]) async throws {
        let run: any NodeRun
        do {
            run = try await open(settings)
        } catch let error as MediaError {
            if error.message.contains(" ") { return }
            throw Finding.failed("\(settings.shown) is refused with only \(error)")
        } catch {
            throw Finding.failed("\(settings.shown) is refused with \(error), which is not a MediaError")
        }
        _ = await run.stop()
        throw Finding.failed("\(settings.shown) is out of range, but was accepted")
    }

    /// Throws unless it works with these settings, at the end of their range, or reports why not.
    fileprivate func expectMedia(with settings: [String: SettingValue]) async throws {
        do {
            let run = try await open(settings)
            let lack = try await waitsInVain(for: 1, from: run, with: settings)
            let outcome = run.outcome
            let count = run.units.count
            let left = await run.stop()
            if case .failed(let error) = outcome { throw error }
            if count > 0 { return }
            throw Finding.failed(
                outcome == nil
                    ? silence(settings.shown, lack ?? 0, left)
                    : "with \(settings.shown) it returns without media and without an error")
        } catch let error as MediaError {
            // Another check judges the messages, except for those of the host.
            let isHosts = error.code == MediaError.Code.nodeFormat || error.code.hasPrefix("pipeline.")
            if !isHosts { note(error) }
        } catch let finding as Finding {
            // At this end it may send a frame per minute, which is not judged.
            if finding.verdict == .failed { throw finding }
        } catch {
            throw Finding.failed("with \(settings.shown) it fails with \(error), which is not a MediaError")
        }
    }
}

extension SettingContract {
    /// How far to try numbers without a range.
    private static let far = 1_000_000_000

    /// The ends of its range, or each of its words.
    var ends: [SettingValue] {
        switch domain {
        case .flag: [.flag(false), .flag(true)]
        case .integer(let range):
            [.integer(max(range.lowerBound, -Self.far)), .integer(min(range.upperBound, Self.far))]
        case .number(let range):
            [.number(max(range.lowerBound, -Double(Self.far))), .number(min(range.upperBound, Double(Self.far)))]
        case .choice(let words): words.map { .text($0) }
        case .text: []
        }
    }

    /// Invalid values: beyond the ends, and of another type.
    var strangers: [SettingValue] {
        switch domain {
        case .flag: [.text("perhaps")]
        case .integer(let range):
            (range.lowerBound == .min ? [] : [.integer(range.lowerBound - 1)])
                + (range.upperBound == .max ? [] : [.integer(range.upperBound + 1)]) + [.text("many")]
        case .number(let range):
            [range.lowerBound.nextDown, range.upperBound.nextUp].filter(\.isFinite).map { .number($0) }
                + [.text("many")]
        case .choice: [.text("no-such-word")]
        case .text: [.flag(true)]
        }
    }
}
