/// A file's text as scalars, lists and maps with their places, before anything is known about graphs.
indirect enum Tree {
    case scalar(Scalar)
    case list([Tree], GraphPlace)
    case map([Entry], GraphPlace)

    struct Scalar {
        var text: String
        /// Quoted text is text, whatever it looks like.
        var isQuoted: Bool
        var place: GraphPlace
        /// Whether a variable was filled in: then the setting says what the text is read as, quoted or not.
        var wasFilledIn = false

        /// Nothing, or a word for it; a node of the kind `null` is written the same way.
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

    /// What it is, for a sentence.
    var noun: String {
        switch self {
        case .scalar(let scalar): scalar.text.isEmpty && !scalar.isQuoted ? "nothing" : "\"\(scalar.text.clipped)\""
        case .list: "a list"
        case .map: "a map"
        }
    }
}
