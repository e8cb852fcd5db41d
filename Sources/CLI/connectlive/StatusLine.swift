internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph
internal import RoomClient

/// Shows a room's statistics: on a terminal in place, twice a second; otherwise one plain line every 5 s.
struct StatusLine {
    private static let terminalInterval = Duration.milliseconds(500)
    private static let plainInterval = Duration.seconds(5)

    /// Prints until it is cancelled.
    ///
    /// - Parameter news: gets lines of their own
    static func run(news: RoomNews? = nil, _ text: @escaping @Sendable () async -> String) async {
        let isTerminal = Console.isTerminal
        let steps = isTerminal ? 1 : Int(plainInterval / terminalInterval)
        var step = 0
        while true {
            do {
                try await Task.sleep(for: terminalInterval)
            } catch {
                return Console.endStatus()
            }
            await news?.tell()
            step += 1
            guard step.isMultiple(of: steps) else { continue }
            isTerminal ? Console.status(await text()) : Console.line(await text())
        }
    }

    /// The outgoing video: why it waits for its camera, size, rate, loss, and whether the encoder keeps up.
    static func publishing(_ statistics: RoomStatistics, _ state: StreamState) -> String {
        let text = parts(statistics).joined(separator: " | ")
        return if case .waiting(let reason) = state { "\(reason): \(text)" } else { text }
    }

    private static func parts(_ statistics: RoomStatistics) -> [String] {
        let outage = outage(statistics, ifInterrupted: "nothing has reached the room for")
        guard let video = statistics.published.first(where: \.isVideo) else {
            if let outage { return [outage] }
            guard let audio = statistics.published.first else { return [step(statistics)] }
            return ["publishing audio"] + limitation(of: audio)
        }
        // Rates and the encoder's state of the time before say nothing now.
        if let outage { return ["publishing \(video.codec) \(sizes(of: video))", outage] }
        let dropped = video.framesDroppedBeforeEncoder
        let work =
            video.isEncoded
            ? [
                "\(video.framesEncoded) frames encoded, \(dropped) dropped before the encoder",
                video.encoderKeepsUp ? "encoder keeps up" : "encoder too slow: \(QualityNews.advice)",
            ] : ["\(video.framesSent) frames sent as the source delivers them, \(passing(video))"]
        return [
            "publishing \(video.codec) \(sizes(of: video))",
            bitrate(video.bitsPerSecond),
        ] + work + limitation(of: video, statistics) + [
            "loss \(percent(video.recentLoss))",
            roundTrip(statistics),
        ] + relay(statistics)
    }

    /// The step for which a publisher waits that publishes nothing yet.
    private static func step(_ statistics: RoomStatistics) -> String {
        statistics.connectMilliseconds == nil
            ? "connecting to the room" : "in the room; waiting for the server to accept the streams"
    }

    /// Of video whose source encodes it.
    private static func passing(_ video: RoomStatistics.Published) -> String {
        let encoded = video.layers.filter { $0.framesEncoded != nil }
        guard !encoded.isEmpty else { return "nothing is encoded" }
        return "smaller sizes are encoded"
    }

    /// Why nothing flows at present, and since when. Nil if media flows.
    private static func outage(_ statistics: RoomStatistics, ifInterrupted words: String) -> String? {
        if let seconds = statistics.lostSeconds {
            return "\(statistics.isServerLost ? "the server" : "media") has been lost for \(number(seconds, 0)) s"
        }
        return statistics.interruptedSeconds.map { seconds in
            "\(words) \(number(seconds, 0)) s" + (statistics.path.map { ", \($0)" } ?? "")
        }
    }

    /// Size and rate of the outgoing video, and why they are not better. Nil before its first frame, and for video that is
    /// not encoded here.
    static func quality(_ statistics: RoomStatistics) -> VideoQuality? {
        guard let video = statistics.published.first(where: \.isVideo) else { return nil }
        if let quality = video.layeredQuality { return quality }
        guard video.isEncoded, video.width > 0 else { return nil }
        var quality = VideoQuality(
            width: video.width, height: video.height, framesPerSecond: video.framesPerSecond,
            limitation: video.limitation, limitedBitsPerSecond: carried(of: video, statistics).map { Int($0) })
        quality.lostShare = video.recentLoss
        return quality
    }

    /// Such as `640x360`, or `320x180+640x360` of a video in layers.
    private static func sizes(of video: RoomStatistics.Published) -> String {
        let active = video.layers.filter(\.isActive).map { "\($0.width)x\($0.height)" }
        return active.isEmpty ? "\(video.width)x\(video.height)" : active.joined(separator: "+")
    }

    /// The bits per second that the network carries, or the best one of the subscribers if that carries less. Nil if that is all that
    /// the video could use: sizes and rates return some seconds after the network has become better.
    static func carried(of video: RoomStatistics.Published, _ statistics: RoomStatistics) -> Double? {
        let rate = video.limitation == .subscribers ? video.limitedBitsPerSecond : statistics.sendingBitsPerSecond
        if let rate, let wish = video.wishedBitsPerSecond, rate >= wish { return nil }
        return rate
    }

    /// The bitrate of audio, if the network limits it.
    private static func limitation(of audio: RoomStatistics.Published) -> [String] {
        guard audio.limitation == .network, let rate = audio.limitedBitsPerSecond else { return [] }
        return ["\(bitrate(rate)), because the network carries no more"]
    }

    /// How much the network carries, if that limits the video.
    private static func limitation(of video: RoomStatistics.Published, _ statistics: RoomStatistics) -> [String] {
        if let quality = video.layeredQuality { return quality.limitation == .none ? [] : ["\(quality)"] }
        guard video.limitation == .network || video.limitation == .subscribers else { return [] }
        let rate = carried(of: video, statistics)
        if rate == 0 { return ["the network carries nothing"] }
        let skipped = video.framesSkippedPerSecond
        let plain = rate.map { "the network carries \(number($0 / 1000, 0)) kbit/s" }
        guard let carried = quality(statistics).map({ "\($0)" }) ?? plain else { return [] }
        return [carried + (skipped >= 0.5 ? ", \(number(skipped, 0)) frames/s skipped" : "")]
    }

    /// The first incoming video, and how many others there are.
    static func viewing(_ statistics: RoomStatistics) -> String {
        let videos = statistics.received.filter { $0.isVideo && !$0.hasEnded }
        if let outage = outage(statistics, ifInterrupted: "nothing has arrived from the room for") { return outage }
        guard let video = videos.first else {
            let heard = Set(statistics.received.filter { !$0.isVideo && !$0.hasEnded }.map(\.participantId)).count
            let audio = heard == 0 ? "" : "; audio of \(heard) participant\(heard == 1 ? "" : "s") arrives"
            return "waiting for a participant to publish video\(audio)"
        }
        guard video.framesRendered > 0 else {
            return "waiting for the first frame" + (video.limitation.map { ": \($0)" } ?? "")
        }
        let format = "\(video.codec) \(video.width)x\(video.height)"
        // Other figures of the time before say nothing now.
        guard video.framesPerSecond > 0 else {
            return "\(format) | no frames at present" + (video.limitation.map { ": \($0)" } ?? "")
        }
        var parts = [
            "\(format) \(number(video.framesPerSecond, 1)) frames/s",
            bitrate(video.bitsPerSecond),
            "loss \(percent(video.recentLoss))",
            roundTrip(statistics),
        ]
        if let latency = video.latency {
            let median = number(latency.recentMilliseconds, 0)
            parts.append("capture to render \(latency.isMeasured ? "" : "about ")\(median) ms")
        }
        parts += relay(statistics)
        if videos.count > 1 { parts.append("and \(videos.count - 1) more") }
        return parts.joined(separator: " | ")
    }

    /// The incoming video, and whether the encoder of the outgoing one keeps up.
    static func demo(viewer: RoomStatistics, publisher: RoomStatistics) -> String {
        guard let video = publisher.published.first(where: \.isVideo) else { return viewing(viewer) }
        guard video.isEncoded else { return viewing(viewer) + " | \(passing(video))" }
        return viewing(viewer) + " | \(video.framesDroppedBeforeEncoder) dropped before the encoder, which "
            + (video.encoderKeepsUp ? "keeps up" : "does not keep up")
    }

    private static func roundTrip(_ statistics: RoomStatistics) -> String {
        statistics.roundTripMilliseconds.map { "round trip \(number($0, 1)) ms" } ?? "round trip not measured yet"
    }

    /// The TURN server that media passes through, if there is one.
    private static func relay(_ statistics: RoomStatistics) -> [String] {
        statistics.path.map { $0.relay == nil ? [] : ["\($0)"] } ?? []
    }

    private static func bitrate(_ bitsPerSecond: Double) -> String { "\(number(bitsPerSecond / 1000, 0)) kbit/s" }

    private static func percent(_ share: Double) -> String { share > 0 ? "\(number(100 * share, 1)) %" : "0 %" }

    private static func number(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
