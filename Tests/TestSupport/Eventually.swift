public import Testing

/// Polls until the condition holds. Returns false if it does not in time, which is long: a handshake of a few
/// milliseconds can take seconds on a busy machine.
public func eventually(within seconds: Double = 30, _ condition: () async throws -> Bool) async rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try await !condition() {
        // A test whose time limit has passed does not sleep any more.
        guard ContinuousClock.now < deadline, !Task.isCancelled else { return false }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return true
}

/// Polls until the condition holds. Records an issue if it does not in time; the test goes on.
public func eventually(
    within seconds: Double = 30, _ what: @autoclosure () -> Comment, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async rethrows {
    if try await !eventually(within: seconds, condition) {
        Issue.record("not in time: \(what())", sourceLocation: sourceLocation)
    }
}

/// Polls until the condition holds.
///
/// - Throws: an error that ends the test, if it does not in time.
public func requireEventually(
    within seconds: Double = 30, _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async throws {
    let isInTime = try await eventually(within: seconds, condition)
    try #require(isInTime, "not in time: \(what)", sourceLocation: sourceLocation)
}
