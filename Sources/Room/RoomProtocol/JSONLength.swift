extension String {
    /// An upper bound of the bytes that the text takes in JSON, without its quotation marks: control characters take six.
    package var lengthInJSON: Int {
        utf8.reduce(0) { length, byte in
            switch byte {
            case ..<0x20, 0x7f: length + 6
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): length + 2
            default: length + 1
            }
        }
    }
}
