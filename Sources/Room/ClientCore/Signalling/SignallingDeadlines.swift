package import RTP

/// Timeouts of signalling.
package enum SignallingDeadlines {
    /// Opening a TCP connection.
    package static let connect = TimeInterval.seconds(5)
    /// One HTTP exchange or WebSocket handshake, including the connection.
    package static let exchange = TimeInterval.seconds(8)
    /// Interval between pings.
    package static let ping = TimeInterval.seconds(2)
    /// How long the server may be silent, media included. A network cut of 5 s does not exceed it.
    package static let silence = TimeInterval.seconds(9)
    /// How long signalling alone may be silent. After a cut, media returns immediately, but TCP doubles its pauses and
    /// may be silent as long again as the cut. Also the timeout of a request.
    package static let signallingSilence = TimeInterval.seconds(20)
    /// How long to wait for the reply to `leave`. Then the connection closes anyway.
    package static let leave = TimeInterval.seconds(1)
}
