import MediaGraph
import MediaNodes
import RoomProtocol
import Testing

@testable import RoomClient

/// The loudspeaker of the process, as the application of one room hears of it.
@Suite struct RoomLoudspeakerTests {
    private final class Told {
        var events: [String] = []
    }

    private let told = Told()

    private func loudspeaker() -> RoomLoudspeaker {
        RoomLoudspeaker { [told] event in
            switch event {
            case .waiting(let error): told.events.append("waiting \(error.message)")
            case .lost(let error): told.events.append("lost \(error.message)")
            case .returned: told.events.append("returned")
            }
        }
    }

    private static let gone = MediaEvent.deviceLost(
        node: "speaker", cause: MediaError(code: MediaError.Code.speakerLost, message: "It is gone."))
    private static let absent = MediaEvent.deviceWaiting(
        node: "speaker", cause: MediaError(code: MediaError.Code.speakerAbsent, message: "It is not there."))
    private static let back = MediaEvent.deviceReturned(node: "speaker")

    @Test func `the loss and the return are told once each`() {
        let speaker = loudspeaker()
        speaker.handle(Self.back)
        speaker.handle(Self.gone)
        speaker.handle(Self.absent)
        #expect(told.events == ["lost It is gone."])
        speaker.handle(Self.back)
        speaker.handle(Self.back)
        #expect(told.events == ["lost It is gone.", "returned"])
        speaker.handle(Self.absent)
        #expect(told.events.last == "waiting It is not there.")
    }

    @Test func `a loudspeaker that plays without an event has returned`() {
        let speaker = loudspeaker()
        speaker.plays()
        speaker.handle(Self.absent)
        speaker.plays()
        speaker.plays()
        #expect(told.events == ["waiting It is not there.", "returned"])
    }
}
