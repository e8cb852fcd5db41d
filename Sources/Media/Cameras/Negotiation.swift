package import MediaGraph

/// The requested output of a camera.
package struct CaptureWish: Sendable, Hashable {
    package let size: FrameSize
    package let rate: FrameRate
    /// GStreamer's names of the formats that the consumer reads (`FourCC.name`), the cheapest first.
    package let formats: [String]
    /// The format that wins over the others if its rate and size serve. Nil for none.
    package let favourite: String?
    /// Whether a mode has to have at least this size and rate. Otherwise the nearest mode serves.
    package let isRequired: Bool
    /// Whether a mode of `formats` has to have exactly this size.
    package let isExact: Bool
    /// Formats that serve if the camera has no mode of the others.
    package let otherwise: [String]

    package init(
        _ size: FrameSize, _ rate: FrameRate, formats: [String], favourite: String? = nil, isRequired: Bool = false,
        isExact: Bool = false, otherwise: [String] = []
    ) {
        self.isExact = isExact
        self.otherwise = otherwise
        self.size = size
        self.rate = rate
        self.formats = formats
        self.favourite = favourite
        self.isRequired = isRequired
    }
}

extension CaptureWish {
    /// The camera's modes that serve a wish, the best first. Each pixel format counts once for a size and rate.
    ///
    /// The rule: only formats that the consumer reads. Then, in this order,
    /// 1. a rate of at least the wish (30000/1001 serves 30), or else the fastest; an unlisted rate counts as sufficient,
    /// 2. a size that covers the wish, because it can be cropped and scaled down,
    /// 3. the favourite format,
    /// 4. the size with the nearest number of pixels,
    /// 5. a rate that the driver lists,
    /// 6. the format that is cheapest for the consumer, and no emulated one,
    /// 7. the slower rate.
    package func ranked(_ offers: [FormatOffer]) -> [CaptureMode] {
        candidates(offers).map(\.mode)
    }

    /// The best mode.
    ///
    /// - Parameter camera: its name, for the message.
    /// - Throws: `camera.no-mode` if the camera has no readable format, or if no mode has the required size and rate. The
    ///   message lists the nearest three modes.
    package func choose(from offers: [FormatOffer], of camera: String) throws(MediaError) -> CaptureMode {
        let candidates = candidates(offers)
        guard let best = candidates.first else {
            let there = Set(offers.map { $0.format.name ?? $0.format.description }).sorted().joined(separator: ", ")
            let read = formats + otherwise.filter { !formats.contains($0) }
            let lack =
                read.count == 1
                ? "does not offer \(read[0])" : "offers none of the formats \(read.joined(separator: ", "))"
            throw Self.refusal(
                "The camera \(camera) \(lack)\(there.isEmpty ? "" : ", only \(there)"). Choose another camera or format."
            )
        }
        guard isRequired, best.isTooSlow || best.isTooSmall else { return best.mode }
        let nearest = candidates.prefix(3).map { $0.mode.description }.joined(separator: ", ")
        throw Self.refusal(
            "The camera \(camera) has no mode with \(size) at \(rate.short) frames/s. Choose one of the nearest: "
                + "\(nearest).")
    }

    /// - Throws: `camera.no-mode` if a driver chose a mode that a required wish does not allow.
    func check(_ mode: CaptureMode, of camera: String) throws(MediaError) {
        let isTooSlow = mode.rate.map { $0.perSecond < rate.perSecond * RateOffer.tolerance } ?? false
        guard isRequired, isTooSlow || mode.size.width < size.width || mode.size.height < size.height else { return }
        throw Self.refusal(
            "The camera \(camera) chose \(mode) instead of \(size) at \(rate.short) frames/s. Choose another size or "
                + "rate.")
    }

    private static func refusal(_ message: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraNoMode, message: message)
    }

    private struct Candidate {
        let mode: CaptureMode
        let isTooSlow: Bool
        let isTooSmall: Bool
        let cost: [Double]
    }

    private func candidates(_ offers: [FormatOffer]) -> [Candidate] {
        let first = candidates(offers, formats).filter { !isExact || $0.mode.size == size }
        return first.isEmpty ? candidates(offers, otherwise) : first
    }

    private func candidates(_ offers: [FormatOffer], _ formats: [String]) -> [Candidate] {
        var seen: Set<[String]> = []
        return offers.flatMap { offer in offer.sizes.compactMap { candidate(offer, $0, formats) } }
            .sorted { $0.cost.lexicographicallyPrecedes($1.cost) }
            .filter { found in
                let name = found.mode.format.name ?? ""
                return seen.insert([name, "\(found.mode.size)", found.mode.rate?.description ?? ""]).inserted
            }
    }

    /// The mode of a format in a range of sizes that is nearest to the wish. Nil if the consumer does not read the format.
    private func candidate(_ offer: FormatOffer, _ sizes: FormatOffer.Size, _ formats: [String]) -> Candidate? {
        guard let name = offer.format.name, let rank = formats.firstIndex(of: name) else { return nil }
        let found = sizes.range.nearest(to: size)
        let rate = sizes.rates.nearest(to: rate)
        let isTooSlow = rate.map { $0.perSecond < self.rate.perSecond * RateOffer.tolerance } ?? false
        let isTooSmall = found.width < size.width || found.height < size.height
        return Candidate(
            mode: CaptureMode(offer.format, found, rate), isTooSlow: isTooSlow, isTooSmall: isTooSmall,
            cost: [
                isTooSlow ? self.rate.perSecond / max(rate?.perSecond ?? 0, 0.001) : 0, isTooSmall ? 1 : 0,
                favourite == nil || favourite == name ? 0 : 1, Double(abs(found.pixels - size.pixels)),
                rate == nil ? 1 : 0, Double(rank),
                offer.isEmulated ? 1 : 0, rate?.perSecond ?? 0,
            ])
    }
}
