internal import Foundation
package import RoomProtocol

extension ServerStatistics {
    /// Asks a server for its statistics, with the service's secret. Throws 1305 if the server is unreachable, and the
    /// server's error if it refuses.
    package static func request(from location: ServerLocation) async throws(RoomError) -> ServerStatistics {
        let key = Data("\(location.serviceId):\(location.serviceSecret ?? "")".utf8).base64EncodedString()
        let answer = try await HTTPExchange(.get, Signalling.statisticsPath, authorization: "Basic \(key)")
            .run(at: location.address)
        let body = Data(answer.body.utf8)
        if answer.status == 200, let statistics = try? JSONDecoder().decode(ServerStatistics.self, from: body) {
            return statistics
        }
        if let problem = try? JSONDecoder().decode(Problem.self, from: body) { throw problem.error }
        throw RoomError(
            .versionUnsupported,
            "The server \(location.address) has no statistics that this program can read (HTTP status \(answer.status)). "
                + "Use the same release on both ends.")
    }
}
