import MediaGraph
internal import Cameras
internal import MediaNodes

/// A camera as `connectlive devices` prints it.
struct CameraListing: Encodable {
    struct Mode: Encodable {
        let format: String
        let sizes: String
        /// Frames per second, the fastest first; one text for a range of rates.
        let rates: [String]
        /// Of the fastest rate, or the nearest slower one that the bus carries. Nil without USB, and if it is unknown.
        let bytesPerSecond: Int?
        let isEstimate: Bool
    }

    struct Control: Encodable {
        let name: String
        let values: String
        let standard: Int
        let unit: String?
        let notes: [String]
    }

    let name: String
    let path: String
    let model: String
    let bus: String?
    let modes: [Mode]
    /// What `publish` sends of this camera, or why it cannot.
    let publish: String
    let controls: [Control]

    init(_ place: CameraPlace, _ offers: [FormatOffer], _ controls: [DeviceControl], problem: String? = nil) {
        name = place.name
        path = place.path
        model = place.model
        bus = place.usb.map { "USB bus \($0.bus), \($0.speed) Mbit/s" }
        modes = offers.flatMap { offer in offer.sizes.map { Mode(offer, $0, on: place.usb) } }
        publish =
            problem ?? CaptureChoice(of: offers)?.sentence(or: CaptureChoice(of: offers, mayPass: false))
            ?? "publish cannot use it: no node reads any of its formats"
        self.controls = controls.map(Control.init)
    }

    /// The cameras that are plugged in. One that cannot be described has no modes, and the reason instead.
    static func all() -> [CameraListing] {
        CameraSystem.machine.places().map { place in
            do throws(MediaError) {
                let device = try CameraSystem.machine.open(place)
                defer { device.close() }
                return CameraListing(place, try device.formats(), try device.controls())
            } catch {
                return CameraListing(place, [], [], problem: error.message)
            }
        }
    }

    /// A camera by its name.
    ///
    /// - Throws: the errors of `CameraSystem.open`, such as `camera.absent`.
    init(named name: String) throws(MediaError) {
        let opened = try CameraSystem.machine.open(name, mayReserve: false)
        defer { opened.device.close() }
        self.init(opened.place, try opened.device.formats(), try opened.device.controls())
    }

    /// A camera of libcamera.
    static func lines(of camera: LibraryCamera) -> [String] {
        let modes =
            camera.modes.isEmpty
            ? ["libcamera tells the modes of this camera only when it is opened"] : camera.modes
        return ["  \(camera.name)  (libcamera)"] + modes.map { "    \($0)" }
            + ["    \(CaptureChoice.sentenceOfLibraryCamera)"]
    }

    var lines: [String] {
        var lines = ["  \(name)  \(model)  (\([path, bus].compactMap(\.self).joined(separator: ", ")))"]
        var table = Table(.left, .left, .left, .left)
        for mode in modes {
            let cost = mode.bytesPerSecond.map { "\(mode.isEstimate ? "about " : "")\(megabytes($0)) MB/s of the bus" }
            table.add(
                "    \(mode.format)", mode.sizes,
                mode.rates.isEmpty ? "" : "\(mode.rates.joined(separator: ", ")) frames/s", cost ?? "")
        }
        lines += table.lines() + ["    \(publish)"]
        var settings = Table(.left, .left, .left, .left)
        for control in controls {
            let unit = control.unit.map { " (\($0))" } ?? ""
            settings.add(
                "    \(control.name)", control.values + unit,
                control.values.isEmpty ? "" : "default \(control.standard)",
                control.notes.joined(separator: ", "))
        }
        return lines + settings.lines()
    }
}

extension CameraListing.Mode {
    init(_ offer: FormatOffer, _ size: FormatOffer.Size, on usb: USBPlace?) {
        format = offer.format.description
        sizes =
            size.range.isDiscrete
            ? "\(size.range.largest)"
            : "\(size.range.smallest) to \(size.range.largest), step \(size.range.step)"
        let known: [FrameRate]
        switch size.rates {
        case .list(let list):
            known = list.sorted(by: >)
            rates = known.map(\.short)
        case .range(let slowest, let fastest):
            known = [fastest, slowest]
            rates = ["\(slowest.short) to \(fastest.short)"]
        }
        let cost = known.lazy.compactMap { usb?.cost(of: CaptureMode(offer.format, size.range.largest, $0)) }.first
        bytesPerSecond = cost?.bytesPerSecond
        isEstimate = cost?.isEstimate ?? false
    }
}

extension CameraListing.Control {
    init(_ control: DeviceControl) {
        name = control.name
        standard = control.standard
        unit = control.unit
        values =
            switch control.kind {
            case .button: ""
            case .boolean: "0 or 1"
            case .menu, .integerMenu: control.items.map { "\($0.value) \($0.name)" }.joined(separator: ", ")
            case .bitmask: "bits of \(control.maximum)"
            case .integer, .wideInteger:
                "\(control.minimum) to \(control.maximum)" + (control.step == 1 ? "" : ", step \(control.step)")
            }
        notes = [
            control.kind == .button ? "button" : nil, control.isReadOnly ? "read-only" : nil,
            control.isInactive ? "inactive: another control overrides it" : nil,
        ].compactMap(\.self)
    }
}

/// With one decimal.
private func megabytes(_ bytes: Int) -> String {
    let tenths = (bytes + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
}
