package import RTP

/// How long the two ends of a connection may be silent. Both judge each other by the same times.
package enum SignsOfLife {
    /// How often an end asks for a sign of life. Without media, a network cut of 5 s lasts 8.2 s for signalling: up to
    /// one interval before it, and 1.2 s until TCP, whose pauses double from 0.2 s, tries again.
    package static let pingInterval = TimeInterval.seconds(2)
    /// How long an end may be silent, media included. A closed laptop or a cut network is detected within 10 s, and a
    /// network cut of 5 s does not exceed it.
    package static let silence = TimeInterval.seconds(9)
    /// How long signalling alone may be silent. After a cut, media returns immediately, but TCP doubles its pauses and
    /// may be silent as long again as the cut. Also the timeout of a request.
    package static let signallingSilence = TimeInterval.seconds(20)
}
