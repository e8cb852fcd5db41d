import RoomClient
import RoomProtocol
import Testing

@testable import ConnectLiveSDK
@testable import connectlive

@Suite struct GuestTests {
    /// A publisher without a camera has nothing left to do, but one whose media a room takes later has.
    @Test(arguments: [(RoomError.Code.tooManyRequests, false), (.publishRefused, true), (.cameraUnavailable, true)])
    func `a publisher stays in a room that takes its media later`(code: RoomError.Code, ends: Bool) async {
        let guest = Guest(.unlimited, endsOnProblem: true)
        guest.onError(code: code.number, message: "The room says no.", isCritical: false)
        guest.onDisconnected(reason: .disconnected)
        let end = await Result { try await guest.untilEnded() }
        if case .failure = end { #expect(ends) } else { #expect(!ends) }
    }
}
