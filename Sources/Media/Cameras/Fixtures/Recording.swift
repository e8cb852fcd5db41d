package import MediaGraph

extension CameraFixture {
    /// Describes an open device, and records its first undamaged frames in a mode. Blocks until they are there.
    ///
    /// - Parameters:
    ///   - mode: nil for a description alone.
    ///   - name: the device's name for errors. Nil for that of its model.
    ///   - count: frames to keep. 0 records the description alone.
    ///   - timeout: for each frame.
    ///   - clock: that of the frames' timestamps.
    ///   - damaged: called with the number of damaged frames if there were any.
    /// - Throws: the device's errors, and `camera.silent` if a frame does not arrive in time.
    package init(
        recording device: any CaptureDevice, in mode: CaptureMode?, frames count: Int, of name: String? = nil,
        timeout: Duration = .seconds(5), on clock: CaptureClock = .monotonic, damaged: (Int) -> Void = { _ in }
    ) throws(MediaError) {
        let information = device.information
        self.init(
            driver: information.driver, card: information.card, bus: information.bus,
            formats: try device.formats().compactMap(Format.init), controls: try device.controls().map(Control.init))
        if let mode, count > 0 {
            let lost = try record(device, in: mode, frames: count, of: name ?? card, timeout, clock)
            if lost > 0 { damaged(lost) }
        }
        // A file that is not a camera is refused here, not where it is read.
        _ = try CameraFixture(json: json)
    }

    /// Returns the number of damaged frames.
    private mutating func record(
        _ device: any CaptureDevice, in mode: CaptureMode, frames count: Int, of name: String, _ timeout: Duration,
        _ clock: CaptureClock
    ) throws(MediaError) -> Int {
        let layout = try device.configure(mode)
        try layout.check(of: name)
        var check = FrameCheck(layout)
        let end = clock.now + timeout * (count + 1)
        try device.start(buffers: 4)
        defer { device.stop() }
        let start = clock.now
        var (numbers, times): ([UInt32], [Duration?]) = ([], [])
        var kept: [Frame] = []
        /// JPEGs without a frame header, or without the end that others have.
        var unreadable = 0
        var hasOpenEnds = false
        while kept.count < count {
            let limit = max(min(timeout, end - clock.now), .zero)
            switch limit > .zero ? try device.next(within: limit) : nil {
            case .frame(let frame):
                guard check.judge(frame, at: clock.now) != .damaged else { continue }
                guard check.isReadable(frame) else {
                    unreadable += 1
                    continue
                }
                let isOpenEnded = check.isOpenEnded(frame)
                if hasOpenEnds, !isOpenEnded {
                    // The camera does write ends, so those before were cut.
                    unreadable += kept.count
                    (kept, numbers, times) = ([], [], [])
                }
                hasOpenEnds = isOpenEnded
                if kept.isEmpty, let time = frame.timestamp, time > start {
                    timing = Timing(firstFrame: ((time - start) / .milliseconds(1)).rounded() / 1000)
                }
                numbers.append(frame.sequence)
                times.append(frame.timestamp)
                kept.append(
                    Frame(format: layout.mode.format, size: layout.mode.size, data: frame.contiguous(in: layout)))
            case nil:
                throw Self.silent(name, layout.mode.format, check.counts.damaged + unreadable, kept.count, of: count)
            case .controlChanged, .sourceChanged, .woken: continue
            }
        }
        self.frames = kept
        quirks = Self.quirks(layout, numbers, times)
        offer(layout.mode)
        return check.counts.damaged + unreadable
    }

    private static func silent(
        _ name: String, _ format: FourCC, _ damaged: Int, _ kept: Int, of count: Int
    ) -> MediaError {
        let cause = damaged > 0 ? "; \(damaged) others were damaged" : ""
        let advice =
            damaged > 0
            ? "Check its cable and hub, or choose \(format.isJPEG ? "another format" : "MJPG") or a smaller size"
            : "Choose another size, rate or format"
        return MediaError(
            code: MediaError.Code.cameraSilent,
            message:
                "The camera \(name) delivered \(kept) of \(count) frames\(cause). \(advice), or record its description alone, "
                + "without frames.")
    }

    /// Adds a mode that a driver chose and does not list.
    private mutating func offer(_ mode: CaptureMode) {
        guard !has(mode.format, mode.size) else { return }
        let size = Size(size: mode.size, rates: mode.rate.map { [$0] } ?? [])
        if let place = formats.firstIndex(where: { $0.format == mode.format }) {
            formats[place].sizes.append(size)
        } else {
            formats.append(Format(format: mode.format, sizes: [size]))
        }
    }

    private static func quirks(_ layout: CaptureLayout, _ numbers: [UInt32], _ times: [Duration?]) -> Quirks? {
        var quirks = Quirks()
        if numbers.count > 1, numbers.allSatisfy({ $0 == 0 }) { quirks.countsNothing = true }
        if times.allSatisfy({ $0 == nil }) { quirks.hasNoTimestamps = true }
        if let row = layout.mode.rowBytes, let stride = layout.planes.first?.stride {
            // The largest power of two that explains the padding, or the row itself.
            let powers = (0...16).reversed().map { 1 << $0 }
            let alignment = powers.first { (row + $0 - 1) / $0 * $0 == stride } ?? stride
            if stride > row { quirks.strideAlignment = min(alignment, mostAlignment) }
        }
        return quirks == Quirks() ? nil : quirks
    }
}

extension CapturedFrame {
    /// The bytes of all planes, as a device with a single piece of memory gives them.
    fileprivate func contiguous(in layout: CaptureLayout) -> [UInt8] {
        guard pieces > 1, let first = layout.planes.first else { return copy() }
        return copy().prefix(first.stride * layout.mode.size.height) + (1..<pieces).flatMap { copy(plane: $0) }
    }
}

extension CameraFixture.Format {
    /// Nil for a format whose code cannot be written. Sizes and rates beyond those of a file are left out.
    fileprivate init?(_ offer: FormatOffer) {
        guard FourCC(text: offer.format.description) == offer.format else { return nil }
        self.init(
            format: offer.format, description: offer.description.isEmpty ? nil : offer.description,
            sizes: offer.sizes.compactMap { size in
                guard let range = size.range.usable else { return nil }
                var result = CameraFixture.Size()
                if range.isDiscrete {
                    result.size = range.largest
                } else {
                    (result.from, result.to, result.step) = (range.smallest, range.largest, range.step)
                }
                switch size.rates {
                case .list(let rates): result.rates = rates.filter { $0.perSecond <= CameraFixture.fastest }
                case .range(let slowest, let fastest):
                    let most = FrameRate(Int(CameraFixture.fastest))
                    (result.slowest, result.fastest) = (min(slowest, most), min(fastest, most))
                }
                return result
            })
    }
}

extension CameraFixture.Control {
    fileprivate init(_ control: DeviceControl) {
        let hasValue = control.kind != .button
        // Some drivers have a standard value beyond their limits.
        let standard = min(max(control.standard, control.minimum), control.maximum)
        self.init(
            identifier: control.identifier, title: control.title, kind: control.kind,
            minimum: hasValue ? control.minimum : nil, maximum: hasValue ? control.maximum : nil,
            step: control.step == 1 ? nil : control.step, standard: hasValue ? standard : nil,
            items: control.items.isEmpty
                ? nil : Dictionary(control.items.map { ("\($0.value)", $0.name) }) { first, _ in first },
            isReadOnly: control.isReadOnly ? true : nil)
    }
}
