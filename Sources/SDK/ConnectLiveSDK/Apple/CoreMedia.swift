// Apple's names of this SDK's types, for code that was written for iOS. (Linux)

/// A time or a duration in seconds.
public typealias CFTimeInterval = Double
