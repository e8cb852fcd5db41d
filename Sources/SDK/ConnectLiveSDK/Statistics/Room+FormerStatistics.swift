// The forms of statistics that earlier versions of the original SDK had.
extension Room {
    /// The objects of `getLocalStats()`, by their ids.
    @available(*, deprecated, renamed: "getLocalStats()")
    public func getLocalStatsReport() async -> [String: Statistics] { await getLocalStats().statistics }

    /// Passes the objects of `getLocalStats()`, by their ids, to a completion.
    ///
    /// - Parameter completion: receives them, on the callback queue
    @available(*, deprecated, renamed: "getLocalStats(completion:)")
    public func getLocalStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
        getLocalStats { (report: StatisticsReport) in completion(report.statistics) }
    }

    /// Passes the objects of `getLocalStats()` to a completion.
    ///
    /// - Parameter completion: receives the objects by their ids, on the callback queue
    @available(*, deprecated, message: "Use the completion that receives a StatisticsReport.")
    @_disfavoredOverload
    public func getLocalStats(completion: @escaping ([String: Statistics]) -> Void) {
        getLocalStats { (report: StatisticsReport) in completion(report.statistics) }
    }

    /// The objects of `getRemoteStats()`, by their ids.
    @available(*, deprecated, renamed: "getRemoteStats()")
    public func getRemoteStatsReport() async -> [String: Statistics] { await getRemoteStats().statistics }

    /// Passes the objects of `getRemoteStats()`, by their ids, to a completion.
    ///
    /// - Parameter completion: receives them, on the callback queue
    @available(*, deprecated, renamed: "getRemoteStats(completion:)")
    public func getRemoteStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
        getRemoteStats { (report: StatisticsReport) in completion(report.statistics) }
    }

    /// Passes the objects of `getRemoteStats()` to a completion.
    ///
    /// - Parameter completion: receives the objects by their ids, on the callback queue
    @available(*, deprecated, message: "Use the completion that receives a StatisticsReport.")
    @_disfavoredOverload
    public func getRemoteStats(completion: @escaping ([String: Statistics]) -> Void) {
        getRemoteStats { (report: StatisticsReport) in completion(report.statistics) }
    }
}
