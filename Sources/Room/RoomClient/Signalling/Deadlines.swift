package import RTP

/// How long signalling waits.
package enum SignallingDeadlines {
    /// Opening a TCP connection.
    package static let connect = TimeInterval.seconds(5)
    /// One HTTP exchange, or the WebSocket's handshake, connecting included.
    package static let exchange = TimeInterval.seconds(8)
    /// Between pings.
    package static let ping = TimeInterval.seconds(1)
    /// Without a byte from the server for this long, media included, it is gone; a cut of 5 s fits in.
    package static let silence = TimeInterval.seconds(9)
    /// The same for signalling alone: after a cut media is back at once, while TCP doubles its pauses and may be as long
    /// silent again as the cut was. A request waits as long for its answer.
    package static let patience = TimeInterval.seconds(20)
    /// For the answer to `leave`, after which the connection is closed all the same.
    package static let leave = TimeInterval.seconds(1)
}
