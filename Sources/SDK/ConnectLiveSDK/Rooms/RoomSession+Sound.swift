internal import Glibc
internal import MediaGraph
internal import RoomClient
internal import Synchronization

extension RoomSession {
    func setMuted(_ isMuted: Bool) { link.setMuted(isMuted) }

    func getAudioLevels() async -> [String: Int] { levels(in: await link.statistics) }

    func getAudioLevels(completion: @escaping ([String: Int]) -> Void) {
        let callback = Callback(completion, among: delegate)
        Task.detached { callback(await self.getAudioLevels()) }
    }

    /// A participant may have two slots, and one that is silent has the level 0.
    private func levels(in statistics: RoomStatistics) -> [String: Int] {
        var levels: [String: Int] = [:]
        for (stream, participant) in state.withLock({ $0.heard }) {
            let received = statistics.received.first { $0.streamId == stream && !$0.hasEnded }
            let level = received?.audioLevel.map { LevelScale.value(ofDecibels: 20 * log10($0)) } ?? 0
            levels[participant] = max(levels[participant] ?? 0, level)
        }
        return levels
    }
}
