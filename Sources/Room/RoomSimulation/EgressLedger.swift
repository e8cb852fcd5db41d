internal import RTP

/// The sequence numbers that the server has sent to the receivers of one client, to find those that it left out.
struct EgressLedger {
    private struct Numbers {
        var first: Int
        var highest: Int
        var sent = 1
        /// Of the streams that the receiver carried, one after another.
        var sources: Set<UInt32> = []

        var missing: Int { highest - first + 1 - sent }

        mutating func add(_ number: UInt16) {
            let unwrapped = highest + Int(Int16(truncatingIfNeeded: Int(number) - highest))
            sent += 1
            first = min(first, unwrapped)
            highest = max(highest, unwrapped)
        }
    }

    /// By SSRC. A restarted server uses others.
    private var receivers: [UInt32: Numbers] = [:]

    /// Notes a datagram of the server.
    mutating func note(_ contents: Contents) {
        guard case .media(let media) = contents else { return }
        if receivers[media.ssrc]?.add(media.number) == nil {
            receivers[media.ssrc] = Numbers(first: Int(media.number), highest: Int(media.number))
        }
        if let source = media.source { receivers[media.ssrc]?.sources.insert(source) }
    }

    /// How many numbers between a receiver's first and its highest one were not sent.
    var missing: Int { receivers.values.reduce(0) { $0 + $1.missing } }

    /// The most numbers that a receiver misses beyond those that its publishers' links account for. Below 1 if none is
    /// broken.
    ///
    /// - Parameter explained: how many gaps a source may cause.
    func unexplained(_ explained: (UInt32) -> Int) -> Int {
        receivers.values.map { numbers in
            numbers.missing - numbers.sources.reduce(0) { $0 + explained($1) }
        }.max() ?? 0
    }
}
