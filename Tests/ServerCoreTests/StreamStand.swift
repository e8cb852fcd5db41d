import PeerLoop
import RTP

@testable import ServerCore

/// The publisher's session of a stream.
final class StubSource: StreamSource {
    var isReady: Bool { true }
    var isPublisher: Bool { true }
    private(set) var keyframeRequests = 0
    /// The watched layers of each limit.
    private(set) var limits: [[Int]?] = []

    func requestKeyframe() { keyframeRequests += 1 }
    func limit(to part: Carried, watched: [Int]?) { limits.append(watched) }
    func begin() {}
    func pause() {}
}

extension Loop {
    /// Lets time pass on a loop that no thread drives.
    func advance(by time: TimeInterval) {
        let end = now + time
        while nextTimer <= end {
            now = max(now, nextTimer)
            while fireNextTimer() {}
        }
        now = end
    }
}
