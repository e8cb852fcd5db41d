import MediaAuthoring

/// How long to watch a node. A low frame rate needs more time.
extension Examination {
    /// The longest single wait, in seconds.
    private static let longest = 30.0

    /// The time for this many frames, at least `seconds`. Throws if it is too long.
    func span(of pictures: Double, orAtLeast seconds: Double) throws -> Double {
        guard let rate, rate > 0 else { return seconds }
        let span = pictures / rate
        guard span <= max(seconds, Self.longest) else { throw tooSlow(rate) }
        return max(seconds, span)
    }

    /// The longest wait for the first frame, in seconds.
    var frameTimeout: Double { max(stand.frameTimeout, min(Self.longest, 3 / max(rate ?? 1, 0.01))) }

    /// Waits until this many units have arrived since `before`, for the time that this takes at the present rate and
    /// two frames more. Returns the seconds waited without success, or nil on success. If the wait would be too long,
    /// ends the run and throws.
    func waitsInVain(
        for count: Int, since before: Int = 0, from run: any NodeRun, with settings: [String: SettingValue] = [:]
    ) async throws -> Double? {
        if await clock.gives(before + count, from: run, within: stand.frameTimeout) { return nil }
        guard run.outcome == nil else { return stand.frameTimeout }
        // The requested format may not be the present one yet.
        let asked = try? stand.format(rehearsal.settings.merging(settings) { $1 })?.framesPerSecond
        let rate = [asked, run.units.last?.format.framesPerSecond].compactMap { $0 }.filter { $0 > 0 }.min()
        guard let rate, Double(count + 2) / rate > stand.frameTimeout else { return stand.frameTimeout }
        let span = Double(count + 2) / rate
        guard span <= Self.longest else {
            _ = await run.stop()
            throw tooSlow(rate)
        }
        return await clock.gives(before + count, from: run, within: span - stand.frameTimeout) ? nil : span
    }

    private func tooSlow(_ rate: Double) -> Finding {
        .notApplicable(
            "it sends a frame every \((1 / rate).rounded(to: 1)) s, and the kit waits at most "
                + "\(Self.longest.whole) s for some")
    }
}
