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
                if let fault = await examination.refuses([contract.name: value]) { return .failed(fault) }
            }
            for value in contract.ends {
                tried += 1
                if let fault = await examination.copes(with: [contract.name: value]) { return .failed(fault) }
            }
        }
        return .passed("\(tried) values of \(settings.count == 1 ? "one setting" : "\(settings.count) settings")")
    }
}

extension Examination {
    /// The fault in handling a value out of range.
    fileprivate func refuses(_ settings: [String: SettingValue]) async -> String? {
        do {
            let run = try await open(settings)
            _ = await run.stop()
            return "\(settings.shown) is out of range, but was accepted"
        } catch let error as MediaError {
            return error.message.contains(" ") ? nil : "\(settings.shown) is refused with only \(error)"
        } catch {
            return "\(settings.shown) is refused with \(error), which is not a MediaError"
        }
    }

    /// The fault in handling a value at the end of its range.
    fileprivate func copes(with settings: [String: SettingValue]) async -> String? {
        do {
            let run = try await open(settings)
            let lack = try await waitsInVain(for: 1, from: run, with: settings)
            let outcome = run.outcome
            let count = run.units.count
            let left = await run.stop()
            if case .failed(let error) = outcome { throw error }
            if count > 0 { return nil }
            if outcome != nil { return "with \(settings.shown) it returns without media and without an error" }
            return "with \(settings.shown) it passes no media for \((lack ?? 0).rounded(to: 1)) s and reports nothing"
                + (left == nil ? ", nor does it return" : "")
        } catch let error as MediaError {
            // Another check judges the messages, except for those of the host.
            let isHosts = error.code == MediaError.Code.nodeFormat || error.code.hasPrefix("pipeline.")
            if !isHosts { note(error) }
            return nil
        } catch is Unjudged {
            // At this end it sends a frame per minute.
            return nil
        } catch {
            return "with \(settings.shown) it fails with \(error), which is not a MediaError"
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
