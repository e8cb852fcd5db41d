import RoomClient
import RoomProtocol
import Testing

@testable import ConnectLiveSDK
@testable import connectlive

@Suite struct GuestTests {
    @Test func `a failure without a camera names the options of other sources`() {
        let failure = Failure(
            code: 1, "No camera was found. Plug one in, or publish a file or the test pattern. [camera.absent]")
        #expect(
            failure.description
                == "No camera was found. Plug one in, or pass --file FILE or --test-pattern. [camera.absent]")
    }

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
