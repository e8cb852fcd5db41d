package import RoomClient

extension RoomSession {
    func getLocalStats() async -> StatisticsReport {
        let statistics = await link.statistics
        return StatisticsReport(statistics.up, at: statistics.time)
    }

    func getLocalStats(completion: @escaping (StatisticsReport) -> Void) {
        report(to: completion) { StatisticsReport($0.up, at: $0.time) }
    }

    func getRemoteStats() async -> StatisticsReport {
        let statistics = await link.statistics
        return StatisticsReport(statistics.down, at: statistics.time)
    }

    func getRemoteStats(completion: @escaping (StatisticsReport) -> Void) {
        report(to: completion) { StatisticsReport($0.down, at: $0.time) }
    }

    func getLocalQualityStatsReport() async -> QualitySession? { await link.statistics.up.map { QualitySession($0) } }

    func getRemoteQualityStatsReport() async -> QualitySession? {
        await link.statistics.down.map { QualitySession($0) }
    }

    private func report(
        to completion: @escaping (StatisticsReport) -> Void,
        _ make: @escaping @Sendable (RoomStatistics) -> StatisticsReport
    ) {
        let callback = Callback(completion, among: delegate)
        // Also after the application has released the room.
        Task.detached { [link] in callback(make(await link.statistics)) }
    }

    /// Statistics have come at their interval.
    func tell(_ statistics: RoomStatistics) {
        tell(replacing: .statistics) { [quality] audience in
            // Here, so that the intervals of those that were replaced are part of this one.
            let stat = quality.next(statistics)
            audience.tell(.stat(stat))
        }
    }
}

extension Room {
    /// The connection's statistics.
    package func statistics() async -> RoomStatistics {
        guard let session = self as? RoomSession else { return RoomStatistics() }
        return await session.link.statistics
    }
}
