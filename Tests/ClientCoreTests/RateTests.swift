import RTP
import Testing

@testable import ClientCore

private func at(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds)
}

@Test func `a rate is the mean of about two seconds`() {
    var window = RateWindow()
    #expect(window.rate == 0)
    for step in 0..<20 { window.sample(step * 15, now: at(Int64(step) * 500)) }
    #expect(window.rate == 30)
    // Within some seconds, the values show that the stream stopped.
    for step in 20..<26 { window.sample(19 * 15, now: at(Int64(step) * 500)) }
    #expect(window.rate == 0)
}

@Test func `keyframe requests are spaced, and none is lost`() {
    var requests = KeyframeRequests()
    #expect(requests.asked(at: at(0)) == .now)
    #expect(requests.asked(at: at(10)) == .at(at(100)))
    #expect(requests.asked(at: at(50)) == .pending)
    requests.delivered(at: at(100))
    #expect(requests.asked(at: at(199)) == .at(at(200)))
    requests.delivered(at: at(200))
    #expect(requests.asked(at: at(300)) == .now)
    #expect(requests.count == 5)
}
