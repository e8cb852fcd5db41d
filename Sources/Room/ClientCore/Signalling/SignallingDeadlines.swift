package import RTP

/// Timeouts of signalling.
package enum SignallingDeadlines {
    /// Opening a TCP connection.
    package static let connect = TimeInterval.seconds(5)
    /// One HTTP exchange or WebSocket handshake, including the connection.
    package static let exchange = TimeInterval.seconds(8)
    /// How long to wait for the reply to `leave`. Then the connection closes anyway.
    package static let leave = TimeInterval.seconds(1)
}
