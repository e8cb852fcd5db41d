internal import ConnectLiveSDK
internal import Foundation
internal import RoomClient

/// Shows a room's statistics: on a terminal in place, twice a second; otherwise one plain line every 5 s.
struct StatusLine {
    private static let terminalInterval = Duration.milliseconds(500)
    private static let plainInterval = Duration.seconds(5)

    /// Prints until it is cancelled.
    static func run(_ text: @escaping @Sendable () async -> String) async {
        let isTerminal = Console.isTerminal
        while true {
            do {
                try await Task.sleep(for: isTerminal ? terminalInterval : plainInterval)
            } catch {
                return Console.endStatus()
            }
            isTerminal ? Console.status(await text()) : Console.line(await text())
        }
    }

    /// The outgoing video: why it waits for its camera, size, rate, loss, and whether the encoder keeps up.
    static func publishing(_ statistics: RoomStatistics, _ state: StreamState) -> String {
        let text = parts(statistics).joined(separator: " | ")
        return if case .waiting(let reason) = state { "\(reason): \(text)" } else { text }
    }

    private static func parts(_ statistics: RoomStatistics) -> [String] {
        guard let video = statistics.published.first(where: \.isVideo) else {
            return [statistics.published.isEmpty ? "nothing published yet" : "publishing audio"]
        }
        let dropped = video.framesDroppedBeforeEncoder
        let work =
            video.isEncoded
            ? [
                "\(video.framesEncoded) frames encoded, \(dropped) dropped before the encoder",
                video.encoderKeepsUp ? "encoder keeps up" : "encoder too slow: reduce --size or --fps",
            ] : ["\(video.framesSent) frames sent as the source delivers them, nothing is encoded"]
        return [
            "publishing \(video.codec) \(video.width)x\(video.height)",
            bitrate(video.bitsPerSecond),
        ] + work + limitation(of: video, statistics) + [
            "loss \(percent(video.packetsLost, of: video.packetsSent))",
            roundTrip(statistics),
        ]
    }

    /// How much the network carries, if that limits the video.
    private static func limitation(of video: RoomStatistics.Published, _ statistics: RoomStatistics) -> [String] {
        guard video.limitation == .network, let rate = statistics.sendingBitsPerSecond else { return [] }
        guard rate > 0 else { return ["the network carries nothing"] }
        let dropped = video.framesDroppedForRate
        return [
            "the network carries \(number(rate / 1000, 0)) kbit/s" + (dropped > 0 ? ", \(dropped) frames skipped" : "")
        ]
    }

    /// The first incoming video, and how many others there are.
    static func viewing(_ statistics: RoomStatistics) -> String {
        let videos = statistics.received.filter { $0.isVideo && !$0.hasEnded }
        guard let video = videos.first else { return "waiting for a participant to publish video" }
        guard video.framesRendered > 0 else { return "waiting for the first frame" }
        var parts = [
            "\(video.codec) \(video.width)x\(video.height) \(number(video.framesPerSecond, 1)) frames/s",
            bitrate(video.bitsPerSecond),
            "loss \(percent(video.packetsLost, of: video.packetsReceived + video.packetsLost))",
            roundTrip(statistics),
        ]
        if let latency = video.latency {
            let median = number(latency.medianMilliseconds, 0)
            parts.append("capture to render \(latency.isMeasured ? "" : "about ")\(median) ms")
        }
        if videos.count > 1 { parts.append("and \(videos.count - 1) more") }
        return parts.joined(separator: " | ")
    }

    /// The incoming video, and whether the encoder of the outgoing one keeps up.
    static func demo(viewer: RoomStatistics, publisher: RoomStatistics) -> String {
        guard let video = publisher.published.first(where: \.isVideo) else { return viewing(viewer) }
        guard video.isEncoded else { return viewing(viewer) + " | nothing is encoded" }
        return viewing(viewer) + " | \(video.framesDroppedBeforeEncoder) dropped before the encoder, which "
            + (video.encoderKeepsUp ? "keeps up" : "does not keep up")
    }

    private static func roundTrip(_ statistics: RoomStatistics) -> String {
        statistics.roundTripMilliseconds.map { "round trip \(number($0, 1)) ms" } ?? "round trip not measured yet"
    }

    private static func bitrate(_ bitsPerSecond: Double) -> String { "\(number(bitsPerSecond / 1000, 0)) kbit/s" }

    private static func percent(_ part: Int, of whole: Int) -> String {
        whole > 0 ? "\(number(100 * Double(part) / Double(whole), 1)) %" : "0 %"
    }

    private static func number(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
