extension String {
    /// This text with control characters replaced, because servers, participants and child processes could control the
    /// terminal with them. Line breaks and tabs stay.
    var printable: String {
        func controls(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
        }
        guard unicodeScalars.contains(where: controls) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { controls($0) ? "\u{fffd}" : $0 }))
    }
}
