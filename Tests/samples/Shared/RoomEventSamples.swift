import ConnectLiveSDK
import Foundation
import Testing

/// Subscribes to every video, and returns the reason for the end.
func watchEverything(in name: String) async -> DisconnectReason? {
    let room = ConnectLive.createRoom()
    // From here on, so that none is missed.
    let events = room.events
    room.connect(roomId: name)
    for await event in events {
        switch event {
        case .remoteVideoPublished(_, let video): room.subscribe(videoIds: [video.id])
        case .userMessage(let sender, let message, _): print("\(sender): \(message)")
        case .error(_, let message, let isCritical): print(isCritical ? "The end: \(message)" : message)
        case .disconnected(let reason): return reason
        default: break
        }
    }
    return nil
}

/// A model of the main actor that follows its room.
@MainActor final class FollowingModel {
    private(set) var lines: [String] = []

    func follow(_ events: RoomEvents) async {
        for await event in events {
            if case .disconnected = event { lines.append("end") } else { lines.append("event") }
        }
    }
}

/// The code of docs/room-events.md.
@MainActor @Suite(.timeLimit(.minutes(1))) struct RoomEventSampleTests {
    @Test func `a loop gets the reason for the end`() async {
        #expect(await watchEverything(in: "no name of a room") == .disconnected)
    }

    @Test func `a model of the main actor follows a room that has a delegate too`() async {
        let delegate = FiveMethodDelegate()
        let room = ConnectLive.createRoom(config: nil, delegate: delegate)
        let model = FollowingModel()
        let events = room.events
        room.connect(roomId: "no name of a room")
        await model.follow(events)
        #expect(model.lines == ["event", "end"])
    }
}
