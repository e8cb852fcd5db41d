import ConnectLiveSDK
import Synchronization
import Testing

/// A room that an application implements itself, for its tests. It has the members of iOS, and no others.
private final class OwnRoom: Room {
    private final class Me: LocalParticipant {
        let id = "me"
        let videos: [Int: any LocalVideo] = [:]
        let audios: [Int: any LocalAudio] = [:]
    }

    private let me = Me()
    private let current = Mutex(RoomStatus.initialized)
    var isConnected: Bool { status == .connected }
    var status: RoomStatus { current.withLock { $0 } }
    var localParticipant: any LocalParticipant { me }
    let remoteParticipants: [String: any RemoteParticipant] = [:]

    func connect(roomId: String) { current.withLock { $0 = .connected } }
    func disconnect() { current.withLock { $0 = .disconnected } }
    func publish(_ media: (any LocalMedia)?) throws {}
    func publish(_ media: (any LocalMedia)?, _ record: Bool) throws {}
    func unpublish(_ media: (any LocalMedia)?) {}
    func subscribe(videoIds: [Int]) {}
    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) { completion(.success(())) }
    func subscribe(videoId: Int) async -> Result<Void, any Error> { .success(()) }
    func unsubscribe(videoIds: [Int]) {}
    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void) { completion(.success(())) }
    func unsubscribe(videoId: Int) async -> Result<Void, any Error> { .success(()) }
    func getVideoOccupants() -> [String] { [] }
    func getAudioOccupants() -> [String] { [] }
    func setMuted(_ isMuted: Bool) {}
    func sendUserMessage(targets: [String], message: String, type: String) async -> Result<Void, any Error> {
        .success(())
    }
    func sendUserMessage(
        targets: [String], message: String, type: String, completion: @escaping (Result<Void, any Error>) -> Void
    ) { completion(.success(())) }
    func requestScreenShare(
        appGroup: String, extensionName: String, completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
    ) throws {}
    func stopScreenShare(isLeftRoom: Bool) {}
    func getAudioLevels() async -> [String: Int] { [:] }
    func getAudioLevels(completion: @escaping ([String: Int]) -> Void) { completion([:]) }
    func getLocalStats() async -> StatisticsReport { report }
    func getLocalStats(completion: @escaping (StatisticsReport) -> Void) { completion(report) }
    func getRemoteStats() async -> StatisticsReport { report }
    func getRemoteStats(completion: @escaping (StatisticsReport) -> Void) { completion(report) }
    func getLocalQualityStatsReport() async -> QualitySession? { nil }
    func getRemoteQualityStatsReport() async -> QualitySession? { nil }
    func restartIce() {}

    private var report: StatisticsReport { StatisticsReport(statistics: [:], timeStamp: 0) }
}

@Suite(.timeLimit(.minutes(1))) struct OwnRoomTests {
    @Test func `an application's own room needs the members of iOS alone`() async {
        let room: any Room = OwnRoom()
        room.connect(roomId: "own")
        #expect(room.isConnected && room.localParticipant.id == "me")
        // Members that only Linux has.
        #expect(room.disconnectError == nil)
        for await event in room.events { Issue.record("\(event)") }
    }
}
