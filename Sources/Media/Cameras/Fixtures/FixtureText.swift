internal import Foundation
package import MediaGraph

extension CameraFixture {
    /// The longest time, in seconds, and the fastest rate that a camera plays.
    static let (longest, fastest) = (1e9, 1000.0)
    static let mostAlignment = 65_536

    /// Reads a file's text.
    ///
    /// - Parameter file: the file's path, for messages.
    /// - Throws: `camera.fixture` with the place of the fault in the text.
    package init(json: String, of file: String? = nil) throws(MediaError) {
        func unreadable(_ reason: String) -> MediaError {
            MediaError(
                code: MediaError.Code.cameraFixture,
                message:
                    "The recorded camera\(file.map { " \($0)" } ?? "") is unreadable: \(reason)\(reason.hasSuffix("?") ? "" : ".") Correct the file; "
                    + "docs/camera-fixtures.md has its format.")
        }
        do {
            let tree = try Self.tree(of: json)
            self = try JSONDecoder().decode(CameraFixture.self, from: Data(json.utf8))
            if let unknown = try surplus(in: tree) { throw Unreadable(words: unknown) }
        } catch let error as Unreadable {
            throw unreadable(error.words)
        } catch let error as DecodingError {
            throw unreadable(Self.sentence(error))
        } catch {
            throw unreadable("\(error)")
        }
        if let problem { throw unreadable(problem) }
    }

    /// The file's text, the same for the same camera.
    package var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // A fixture has no values that JSON lacks.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) + "\n" } ?? ""
    }

    // MARK: The text

    private static func tree(of json: String) throws -> Any {
        do {
            return try JSONSerialization.jsonObject(with: Data(json.utf8), options: .fragmentsAllowed)
        } catch {
            let reason = (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String ?? ""
            guard let place = reason.firstMatch(of: #/ around character ([0-9]+)/#).flatMap({ Int($0.1) }) else {
                throw Unreadable(words: reason.contains("end of file") ? "it ends too early" : "a number is too large")
            }
            let before = json.utf8.prefix(max(place - 1, 0))
            let line = before.count { $0 == UInt8(ascii: "\n") } + 1
            let column = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
            throw Unreadable(words: "it is not JSON at line \(line), column \(column)")
        }
    }

    /// The first field of a text that this camera, which was read from it, does not have.
    private func surplus(in tree: Any) throws -> String? {
        var bare = self
        // The frames' bytes do not matter, and are long.
        bare.frames = frames?.map { Frame(format: $0.format, size: $0.size, data: []) }
        let known = try JSONSerialization.jsonObject(with: JSONEncoder().encode(bare))
        return Self.surplus(tree, known, "").map { "\($0) is not a field" }
    }

    private static func surplus(_ read: Any, _ known: Any, _ place: String) -> String? {
        if let read = read as? [String: Any] {
            let known = known as? [String: Any] ?? [:]
            for (name, value) in read.sorted(by: { $0.key < $1.key }) where !(value is NSNull) {
                let at = place.isEmpty ? name : "\(place).\(name)"
                guard let there = known[name] else { return at }
                if let found = surplus(value, there, at) { return found }
            }
        } else if let read = read as? [Any], let known = known as? [Any] {
            for (index, (value, there)) in zip(read, known).enumerated() {
                if let found = surplus(value, there, "\(place)[\(index)]") { return found }
            }
        }
        return nil
    }

    private static func sentence(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "\((context.codingPath + [key]).place) is missing"
        case .typeMismatch(let type, let context): "\(context.codingPath.place) is not \(words(for: type))"
        case .valueNotFound(_, let context): "\(context.codingPath.place) is null"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? "a number is too large, or has a fraction where a whole one is needed"
                : "\(context.codingPath.place) is not \(context.codingPath.last?.stringValue == "data" ? "base 64" : "usual")"
        @unknown default: "\(error)"
        }
    }

    private static func words(for type: any Any.Type) -> String {
        if type == String.self { return "a text" }
        if type == Bool.self { return "true or false" }
        if type == Double.self { return "a number" }
        if type is any BinaryInteger.Type { return "a whole number" }
        return "\(type)".hasPrefix("Array") ? "a list" : "an object"
    }

    /// A sentence about a value, for `CameraFixture.init`.
    fileprivate struct Unreadable: Error {
        let words: String
    }
}

extension [any CodingKey] {
    /// Such as `formats[0].sizes`.
    fileprivate var place: String {
        isEmpty
            ? "the file"
            : map { $0.intValue.map { "[\($0)]" } ?? "." + $0.stringValue }.joined().drop { $0 == "." } + ""
    }
}

/// Decodes a text.
///
/// - Parameter form: the expected text, as words after "is not".
func decoded<Value>(_ decoder: any Decoder, _ form: String, _ read: (String) -> Value?) throws -> Value {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let value = read(text) else {
        throw CameraFixture.Unreadable(words: "\(decoder.codingPath.place): \"\(text.cleaned)\" is not \(form)")
    }
    return value
}

extension CameraFixture.Fault.Kind: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoded(decoder, Self.form, Self.init(rawValue:))
    }

    private static let form = "a fault: \(allCases.map(\.rawValue).joined(separator: ", "))"
}

extension DeviceControl.Kind: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoded(decoder, Self.form, Self.init(rawValue:))
    }

    private static let form = "a kind of control: \(allCases.map(\.rawValue).joined(separator: ", "))"
}

// MARK: Contradictions

extension CameraFixture {
    /// The first contradiction of the file, as a sentence without its end.
    private var problem: String? {
        if version != 1 { return "version is \(version), and this program reads 1" }
        if formats.isEmpty { return "formats is empty" }
        return first(formats, "formats") { format, place in
            first(format.sizes, "\(place).sizes") { size, place in size.problem.map { "\(place): \($0)" } }
        } ?? timingProblem
            ?? first(controls ?? [], "controls") { control, place in
                control.problem.map { "\(place)\($0)" }
                    ?? ((controls ?? []).count { $0.identifier == control.identifier } > 1
                        ? "\(place).identifier: several controls have \(control.identifier)" : nil)
            }
            ?? first(frames ?? [], "frames") { frame, place in
                has(frame.format, frame.size)
                    ? frame.data.isEmpty ? "\(place).data is empty" : nil
                    : "\(place): the camera has no \(frame.format) in \(frame.size)"
            } ?? first(faults ?? [], "faults") { problem(of: $0, at: $1) }
    }

    private func first<Part>(_ parts: [Part], _ name: String, _ problem: (Part, String) -> String?) -> String? {
        for (index, part) in parts.enumerated() {
            if let found = problem(part, "\(name)[\(index)]") { return found }
        }
        return nil
    }

    private var timingProblem: String? {
        if let first = timing?.firstFrame, !(0...Self.longest).contains(first) {
            return "timing.firstFrame is not from 0 to \(Int(Self.longest)) seconds"
        }
        if let alignment = quirks?.strideAlignment, !(1...Self.mostAlignment).contains(alignment) {
            return "quirks.strideAlignment is not from 1 to \(Self.mostAlignment) bytes"
        }
        return nil
    }

    /// Whether the camera offers a format in a size.
    func has(_ format: FourCC, _ size: FrameSize) -> Bool {
        offers.contains { offer in
            offer.format == format && offer.sizes.contains { $0.range.nearest(to: size) == size }
        }
    }

    private func problem(of fault: Fault, at place: String) -> String? {
        for (name, time) in [("at", fault.at), ("until", fault.until), ("by", fault.by)] {
            if let time, !(abs(time) <= Self.longest) {
                return "\(place).\(name) is more than \(Int(Self.longest)) seconds"
            }
        }
        if let until = fault.until, !(until > fault.at) { return "\(place).until has to be later than at" }
        if let rate = fault.rate, let problem = rate.problem { return "\(place).rate: \(problem)" }
        if let needed = fault.missing { return "\(place): \(fault.fault.rawValue) needs \(needed)" }
        if let useless = fault.useless { return "\(place): \(fault.fault.rawValue) has no \(useless)" }
        let names = deviceControls.map(\.name)
        if let name = fault.control, !names.contains(name) {
            return
                "\(place).control: the camera has no control \(name.cleaned)\(name.suggestion(among: names, else: ""))"
        }
        return nil
    }
}

extension CameraFixture.Size {
    /// As words after its place.
    fileprivate var problem: String? {
        switch (size, from, to) {
        case (.some, nil, nil): if step != nil { return "a single size has no step" }
        case (nil, let from?, let to?):
            if from.width > to.width || from.height > to.height { return "from \(from) is larger than to \(to)" }
        default: return "it needs size, or from and to"
        }
        for rate in (rates ?? []) + [slowest, fastest].compactMap(\.self) {
            if let problem = rate.problem { return problem }
        }
        switch (slowest, fastest) {
        case (nil, nil): return nil
        case (let slowest?, let fastest?):
            if rates != nil { return "it needs rates, or slowest and fastest" }
            return slowest > fastest ? "slowest \(slowest) is above fastest \(fastest)" : nil
        default: return "it needs both slowest and fastest"
        }
    }
}

extension FrameRate {
    fileprivate var problem: String? {
        perSecond > CameraFixture.fastest ? "the rate \(self) is above \(Int(CameraFixture.fastest)) frames/s" : nil
    }
}

extension CameraFixture.Control {
    /// As words after its place.
    fileprivate var problem: String? {
        if kind != .button {
            for (name, value) in [("minimum", minimum), ("maximum", maximum), ("standard", standard)] where value == nil
            {
                return ".\(name) is missing"
            }
        }
        let (minimum, maximum) = (minimum ?? 0, maximum ?? 0)
        if minimum > maximum { return ".minimum \(minimum) is larger than maximum \(maximum)" }
        if let step, step < 1 { return ".step is not at least 1" }
        if let standard, kind != .button, !(minimum...maximum).contains(standard) {
            return ".standard \(standard) is not from \(minimum) to \(maximum)"
        }
        if let item = items?.keys.sorted().first(where: { Int($0) == nil }) {
            return ".items: \"\(item.cleaned)\" is not a whole number"
        }
        return nil
    }
}

extension CameraFixture.Fault {
    private var fields: [(name: String, isGiven: Bool)] {
        [
            ("by", by != nil), ("rate", rate != nil), ("size", size != nil), ("control", control != nil),
            ("value", value != nil),
        ]
    }

    /// The names of the fields that this kind needs, and of those that it may have.
    private var shape: (needed: [String], allowed: [String]) {
        switch fault {
        case .late, .shiftedTime: (["by"], [])
        case .slow: (["rate"], ["control", "value"])
        case .changedControl: (["control", "value"], [])
        case .changedSource: (["size"], [])
        case .refusedControl: ([], ["control"])
        default: ([], [])
        }
    }

    /// The name of a field that this kind lacks.
    fileprivate var missing: String? {
        fields.first { shape.needed.contains($0.name) && !$0.isGiven }?.name
    }

    /// The name of a field that this kind does not use.
    fileprivate var useless: String? {
        fields.first { $0.isGiven && !(shape.needed + shape.allowed).contains($0.name) }?.name
    }
}
