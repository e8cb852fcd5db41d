import RoomProtocol
import Testing

@testable import connectlive

@Suite struct RoomListTests {
    @Test func `a server cannot control the terminal with the names of its rooms and participants`() {
        let participant = RoomList.Participant(id: "\u{9b}2Jann", streams: 1, isConnected: true)
        let list = RoomList(rooms: [RoomList.Room(name: "\u{1b}]0;title\u{7}", participants: [participant])])
        #expect(
            RoomsCommand.ListCommand.lines(list) == [
                "ROOM        PARTICIPANT  STREAMS", "\u{fffd}]0;title\u{fffd}  \u{fffd}2Jann             1",
            ])
    }
}
