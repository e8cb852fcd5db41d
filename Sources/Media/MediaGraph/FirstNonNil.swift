extension Sequence {
    /// The first value that the closure makes of an element.
    ///
    /// `lazy.compactMap(_:).first` calls the closure twice for that element, and traps if it returns nil the second time: a
    /// state that another thread changes may have become nil in between.
    package func firstNonNil<Value>(_ value: (Element) -> Value?) -> Value? {
        for element in self {
            if let value = value(element) { return value }
        }
        return nil
    }
}
