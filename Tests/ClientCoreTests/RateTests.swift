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

@Test func `a rate that forgets begins with the next sample`() {
    var window = RateWindow()
    for step in 0..<4 { window.sample(step * 15, now: at(Int64(step) * 500)) }
    window.forget()
    #expect(window.rate == 0 && window.measured == nil)
    window.sample(1000, now: at(2000))
    window.sample(1005, now: at(2500))
    #expect(window.rate == 10)
}
