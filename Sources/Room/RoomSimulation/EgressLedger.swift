internal import ICELite
internal import RTP

/// The sequence numbers that the server has sent to each receiver of its clients, to find those that it left out.
struct EgressLedger {
    private struct Key: Hashable {
        var to: TransportAddress
        var ssrc: UInt32
    }

    private struct Numbers {
        var first: Int
        var highest: Int
        var sent = 1

        mutating func add(_ number: UInt16) {
            let unwrapped = highest + Int(Int16(truncatingIfNeeded: Int(number) - highest))
            sent += 1
            first = min(first, unwrapped)
            highest = max(highest, unwrapped)
        }
    }

    private var streams: [Key: Numbers] = [:]

    /// Notes a datagram, if it is RTP. The header is in the clear.
    mutating func note(_ datagram: Span<UInt8>, to address: TransportAddress) {
        guard datagram.count >= RTPHeader.minimumLength, (128...191).contains(datagram[0]),
            !(192...223).contains(datagram[1])
        else { return }
        var ssrc: UInt32 = 0
        for index in 8..<12 { ssrc = ssrc << 8 | UInt32(datagram[index]) }
        let number = UInt16(datagram[2]) << 8 | UInt16(datagram[3])
        let key = Key(to: address, ssrc: ssrc)
        if streams[key]?.add(number) == nil {
            streams[key] = Numbers(first: Int(number), highest: Int(number))
        }
    }

    /// How many numbers between a stream's first and its highest one were not sent.
    var missing: Int { streams.values.reduce(0) { $0 + $1.highest - $1.first + 1 - $1.sent } }
}
