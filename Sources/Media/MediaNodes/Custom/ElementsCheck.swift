import GStreamerKit
import MediaGraph

/// Checks of a node around elements when it is added, as far as its elements are installed, because it is written by
/// users of the library.
extension ElementsNode {
    /// Returns the links. Throws `graph.invalid` for invalid names, properties, pads and formats.
    func check() throws(MediaError) -> [ElementLink] {
        try checkNames()
        try checkFormats()
        let previews = try checkedProperties()
        try checkEnds(previews)
        return try links.map { (link) throws(MediaError) in
            let (from, to) = (try pad(of: link.from), try pad(of: link.to))
            // Links between elements find matching pads themselves.
            if from.pad != nil || to.pad != nil {
                try check(from, isOutput: true, previews)
                try check(to, isOutput: false, previews)
            }
            return ElementLink(from: from, to: to)
        }
    }

    private func checkNames() throws(MediaError) {
        let names = elements.map(\.name)
        guard !names.isEmpty, Set(names).count == names.count, !names.contains("given") else {
            throw wrong("needs elements with unique names other than \"given\"")
        }
        if let name = names.first(where: { $0.isEmpty || $0.contains(".") }) {
            throw wrong("has an element named \"\(name)\"; use a name with a letter and without dots")
        }
        // Our own elements downstream of outputs and upstream of inputs have these prefixes in the same node.
        let ours = ["tee-", "branch-", "waiting-"]
        if let name = names.first(where: { name in ours.contains { name.hasPrefix($0) } }) {
            throw wrong(
                "has an element named \"\(name)\"; names that begin with \(ours.joined(separator: ", ")) are reserved")
        }
        guard takes != nil || gives != nil else { throw wrong("has neither input nor output; declare one of them") }
    }

    private func checkFormats() throws(MediaError) {
        for (verb, format) in [("takes", takes), ("gives", gives)] {
            guard let format, !format.isPossible else { continue }
            throw wrong("\(verb) \(format), which is not a valid format; use \(MediaFormat.possibilities)")
        }
    }

    /// The installed elements with their properties. A missing element is reported when the node is used.
    private func checkedProperties() throws(MediaError) -> [String: ElementPreview] {
        var previews: [String: ElementPreview] = [:]
        for element in elements where ElementFactory.describe(element.factory) != nil {
            if let own = ["name", "parent"].first(where: { element.properties[$0] != nil }) {
                throw wrong("sets \(element.name).\(own), which is not the element's own property; name it with \"as\"")
            }
            previews[element.name] = try ElementPreview(
                ElementPlan(name: element.name, factory: element.factory, properties: element.properties), node: name)
        }
        return previews
    }

    private func pad(of end: String) throws(MediaError) -> ElementPad {
        guard let pad = ElementPad(text: end) else {
            throw wrong("links \"\(end)\"; write the name of an element, or of its pad, such as mixer.sink_0")
        }
        guard elements.contains(where: { $0.name == pad.element }) else {
            let hint = pad.element.nearest(among: elements.map(\.name)).map { "; did you mean \($0)?" } ?? ""
            throw wrong("links \(end), but has no such element\(hint)")
        }
        return pad
    }

    /// Checks the pads for input from other nodes, and for output without a fixed format.
    private func checkEnds(_ previews: [String: ElementPreview]) throws(MediaError) {
        if takes != nil, let first = elements.first {
            try check(ElementPad(first.name), isOutput: false, previews)
        }
        if let gives, !gives.isRaw, let last = elements.last {
            try check(ElementPad(last.name), isOutput: true, previews)
        }
    }

    /// Throws if the runner would not find the pad either.
    private func check(
        _ pad: ElementPad, isOutput: Bool, _ previews: [String: ElementPreview]
    ) throws(MediaError) {
        guard let preview = previews[pad.element] else { return }
        let name = pad.pad ?? (isOutput ? "src" : "sink")
        if let found = preview.element.padByName(name), found.isSource == isOutput { return }
        let side = isOutput ? "output" : "input"
        let names = preview.padNames(isOutput: isOutput)
        let there = names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))"
        let hint = name.nearest(among: names).map { "did you mean \($0)?" } ?? there
        throw wrong("needs an \(side) \(pad.element).\(name), which the element does not have; \(hint)")
    }

    func wrong(_ what: String) -> MediaError {
        MediaError(
            code: MediaError.Code.graphInvalid,
            message: "The node \(name) \(what)\(what.hasSuffix("?") ? "" : ".")")
    }
}

extension ElementPad {
    /// An element or its pad: `mixer.sink_0`. Nil if one of the names is empty.
    init?(text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.allSatisfy({ !$0.isEmpty }) else { return nil }
        self.init(parts[0], parts.count > 1 ? parts[1] : nil)
    }
}
