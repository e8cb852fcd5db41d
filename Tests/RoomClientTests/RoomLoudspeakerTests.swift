import MediaGraph
import MediaNodes
import RoomProtocol
import Testing

@testable import RoomClient

/// The loudspeaker of a room, which each audio stream opens for itself.
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

    @Test func `the loss and the return for all streams are told once each`() {
        let speaker = loudspeaker()
        for stream in 1...3 { speaker.handle(Self.gone, of: stream) }
        #expect(told.events == ["lost It is gone."])
        for stream in 1...3 {
            #expect(told.events.count == 1)
            speaker.handle(Self.back, of: stream)
        }
        #expect(told.events == ["lost It is gone.", "returned"])
        speaker.handle(Self.absent, of: 1)
        #expect(told.events.last == "waiting It is not there.")
    }

    @Test func `the end of the streams is no return, and the next one that plays is`() {
        let speaker = loudspeaker()
        speaker.handle(Self.absent, of: 1)
        speaker.end(1)
        #expect(speaker.isAway)
        speaker.handle(Self.absent, of: 2)
        #expect(told.events.count == 1)
        speaker.end(2)
        speaker.play(3)
        #expect(told.events == ["waiting It is not there.", "returned"])
        speaker.play(3)
        #expect(told.events.count == 2)
    }
}
