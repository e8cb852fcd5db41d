extension CameraFixture {
    /// Describes an open device, and records its first frames in a mode. Blocks until they are there.
    ///
    /// - Parameters:
    ///   - count: frames to keep. 0 records the description alone.
    ///   - timeout: for each frame.
    ///   - clock: that of the frames' timestamps.
    /// - Throws: the device's errors, and `camera.silent` if a frame does not arrive in time.
    package init(
        recording device: any CaptureDevice, in mode: CaptureMode, frames count: Int, timeout: Duration = .seconds(5),
        on clock: CaptureClock = .monotonic
    ) throws(CaptureError) {
        let information = device.information
        self.init(
            driver: information.driver, card: information.card, bus: information.bus,
            formats: try device.formats().map(Format.init), controls: try device.controls().map(Control.init))
        guard count > 0 else { return }
        let layout = try device.configure(mode)
        try device.start(buffers: 4)
        defer { device.stop() }
        let start = clock.now
        var (numbers, times): ([UInt32], [Duration?]) = ([], [])
        var kept: [Frame] = []
        while kept.count < count {
            switch try device.next(within: timeout) {
            case .frame(let frame):
                if kept.isEmpty, let time = frame.timestamp, time > start {
                    timing = Timing(firstFrame: ((time - start) / .milliseconds(1)).rounded() / 1000)
                }
                numbers.append(frame.sequence)
                times.append(frame.timestamp)
                kept.append(Frame(format: layout.mode.format, size: layout.mode.size, data: frame.copy()))
            case nil:
                throw CaptureError(
                    code: CaptureError.Code.silent, call: "VIDIOC_DQBUF", number: 0,
                    "The camera \(information.card) delivered \(kept.count) of \(count) frames. Choose another mode.")
            case .controlChanged, .sourceChanged, .woken: continue
            }
        }
        self.frames = kept
        quirks = Self.quirks(layout, numbers, times)
    }

    private static func quirks(_ layout: CaptureLayout, _ numbers: [UInt32], _ times: [Duration?]) -> Quirks? {
        var quirks = Quirks()
        if numbers.count > 1, numbers.allSatisfy({ $0 == 0 }) { quirks.countsNothing = true }
        if times.allSatisfy({ $0 == nil }) { quirks.hasNoTimestamps = true }
        if let bits = layout.mode.format.bitsInFirstPlane, let stride = layout.planes.first?.stride {
            let plain = layout.mode.size.width * bits / 8
            // The largest power of two that explains the padding.
            if stride > plain { quirks.strideAlignment = stride & -stride }
        }
        return quirks == Quirks() ? nil : quirks
    }
}

extension CameraFixture.Format {
    fileprivate init(_ offer: FormatOffer) {
        self.init(
            format: offer.format, description: offer.description.isEmpty ? nil : offer.description,
            sizes: offer.sizes.map { size in
                var result = CameraFixture.Size()
                if size.range.isDiscrete {
                    result.size = size.range.largest
                } else {
                    (result.from, result.to, result.step) = (size.range.smallest, size.range.largest, size.range.step)
                }
                switch size.rates {
                case .list(let rates): result.rates = rates
                case .range(let slowest, let fastest): (result.slowest, result.fastest) = (slowest, fastest)
                }
                return result
            })
    }
}

extension CameraFixture.Control {
    fileprivate init(_ control: DeviceControl) {
        self.init(
            identifier: control.identifier, title: control.title, kind: control.kind, minimum: control.minimum,
            maximum: control.maximum, step: control.step == 1 ? nil : control.step, standard: control.standard,
            items: control.items.isEmpty
                ? nil : Dictionary(control.items.map { ("\($0.value)", $0.name) }) { first, _ in first },
            isReadOnly: control.isReadOnly ? true : nil)
    }
}
