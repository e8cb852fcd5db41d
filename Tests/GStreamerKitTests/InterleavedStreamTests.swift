import MediaGraph
import TestFixtures
import Testing

@testable import GStreamerKit

@Suite struct InterleavedStreamTests {
    private func taken(_ numbers: [UInt16]) -> [String] {
        var all = InterleavedNumbers()
        return numbers.map { number in
            let (new, endsGap) = all.take(number)
            return "\(new)" + (endsGap ? "!" : "")
        }
    }

    @Test func `numbers without a gap stay, also where they wrap`() {
        #expect(taken([65_534, 65_535, 0, 1]) == ["65534", "65535", "0", "1"])
    }

    @Test func `a gap is closed, and its end known`() {
        #expect(taken([10, 11, 14, 15, 17]) == ["10", "11", "12!", "13", "14!"])
        #expect(taken([65_535, 2, 3]) == ["65535", "0!", "1"])
    }

    @Test func `a packet that comes again, or late, gets a number that was there`() {
        #expect(taken([10, 11, 11, 14, 13, 15]) == ["10", "11", "11", "12!", "11", "13"])
    }

    /// A relay reads them by UDP.
    @Test func `once a packet returns into a gap, later gaps stay for those that come late`() {
        #expect(taken([10, 12, 11, 13, 15, 14, 16]) == ["10", "11!", "10", "12", "14", "13", "15"])
        // A packet that comes again shows no other order.
        #expect(taken([10, 12, 12, 10, 14]) == ["10", "11!", "11", "9", "12!"])
    }

    /// Its packets are numbered from anywhere on.
    @Test func `a camera that begins anew goes on`() {
        #expect(taken([10, 11, 13, 60_000, 60_001]) == ["10", "11", "12!", "59999", "60000"])
    }

    /// The clock stands still, so a jitter buffer that waits never ends.
    @Test func `a jitter buffer passes on what follows a gap without a wait, and marks it`() throws {
        let clock = SteppedClock()
        let pipeline = Pipeline(clock: clock.clock) { _ in }
        let source = try PushSource(
            Element(
                "appsrc",
                PushSource.properties.merging([
                    "caps": "application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=(int)96"
                ]) { $1 }))
        let buffer = try Element(
            "rtpjitterbuffer",
            ["latency": 800, "do-lost": true, "faststart-min-packets": 1, "drop-on-latency": false])
        let sink = try Element("fakesink", ["sync": false, "async": false])
        for element in [source.element, buffer, sink] { pipeline.add(element) }
        try source.element.link(buffer)
        try buffer.link(sink)
        GapCloser.attach(to: buffer.pointer)
        let passed = Record<String>()
        sink.sink.watchBuffers { buffer in
            var bytes: [UInt8] = []
            buffer.append(to: &bytes)
            passed.add("\(bytes[12])" + (buffer.followsGap ? "!" : ""))
        }
        defer { pipeline.stop() }
        #expect(pipeline.play())
        for (index, number) in ([100, 101, 102, 105, 106, 109] as [UInt8]).enumerated() {
            let time = UInt8(index)
            let packet: [UInt8] = [0x80, 96, 0, number, 0, 0, time * 10, 0, 0, 0, 0, 7, number]
            if index == 0 {
                _ = source.push(first: packet.span.bytes, sequenceNumber: UInt16(number), timestamp: 0)
            } else {
                _ = source.push(packet.span.bytes, timestamp: UInt64(index) * 33_000_000)
            }
        }
        #expect(passed.wait { $0.count == 6 })
        #expect(passed.entries.dropFirst() == ["101", "102", "105!", "106", "109!"])
    }
}
