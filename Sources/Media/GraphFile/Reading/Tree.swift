/// A file as scalars, lists and maps with their places, before their interpretation.
indirect enum Tree {
    case scalar(Scalar)
    case list([Tree], GraphPlace)
    case map([Entry], GraphPlace)

    struct Scalar {
        var text: String
        /// Quoted text is always text.
        var isQuoted: Bool
        var place: GraphPlace
        /// Whether a variable was filled in. Then the setting decides the type, quoted or not.
        var wasFilledIn = false

        /// Empty, or a word for null. A node of the kind `null` is written the same way.
        var isNull: Bool { !isQuoted && !wasFilledIn && ["", "~", "null", "Null", "NULL"].contains(text) }
    }

    struct Entry {
        var key: Scalar
        var value: Tree
    }

    var place: GraphPlace {
        switch self {
        case .scalar(let scalar): scalar.place
        case .list(_, let place), .map(_, let place): place
        }
    }

    /// A noun for messages.
    var noun: String {
        switch self {
        case .scalar(let scalar): scalar.text.isEmpty && !scalar.isQuoted ? "nothing" : "\"\(scalar.text.clipped)\""
        case .list: "a list"
        case .map: "a map"
        }
    }
}
