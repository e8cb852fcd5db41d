import MediaGraph

/// What a check throws that can say nothing about this capturer.
struct Unjudged: Error {
    let words: String
}

/// How long a capturer is watched and waited for: what gives few pictures a second is given time for some.
extension Examination {
    /// No single wait is longer, in seconds.
    private static let longest = 30.0

    /// How long it takes until so many pictures have come, or `seconds` where that is longer. Throws where it is too long.
    func span(of pictures: Double, orAtLeast seconds: Double) throws -> Double {
        guard let rate, rate > 0 else { return seconds }
        let span = pictures / rate
        guard span <= max(seconds, Self.longest) else { throw tooSlow(rate) }
        return max(seconds, span)
    }

    /// The longest wait for its first picture, in seconds.
    var patience: Double { max(stand.patience, min(Self.longest, 3 / max(rate ?? 1, 0.01))) }

    /// Waits until so many have come since there were `before`, as long as that takes at the rate of the moment and two
    /// pictures more. The seconds that it has waited in vain; nil where they have come. Where it would be too long, ends
    /// the run and throws.
    func waitsInVain(
        for count: Int, since before: Int = 0, from run: any CaptureRun, with settings: [String: SettingValue] = [:]
    ) async throws -> Double? {
        if await clock.gives(before + count, from: run, within: stand.patience) { return nil }
        guard run.outcome == nil else { return stand.patience }
        // The format that it was asked for may be one that it has not come to yet.
        let asked = try? stand.format(rehearsal.settings.merging(settings) { $1 })?.framesPerSecond
        let rate = [asked, run.units.last?.format.framesPerSecond].compactMap { $0 }.filter { $0 > 0 }.min()
        guard let rate, Double(count + 2) / rate > stand.patience else { return stand.patience }
        let span = Double(count + 2) / rate
        guard span <= Self.longest else {
            _ = await run.stop()
            throw tooSlow(rate)
        }
        return await clock.gives(before + count, from: run, within: span - stand.patience) ? nil : span
    }

    private func tooSlow(_ rate: Double) -> Unjudged {
        Unjudged(
            words:
                "it gives a picture every \((1 / rate).rounded(to: 1)) s, and no more than \(Self.longest.whole) s are "
                + "waited for some")
    }
}
