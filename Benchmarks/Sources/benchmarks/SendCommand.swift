internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import PeerIO
internal import RTP
internal import RoomClient

/// The link as its publisher estimates it, five times a second. `at` is CLOCK_MONOTONIC in seconds.
struct SendingSample: Codable, Sendable {
    var at: Double
    var bitsPerSecond: Double?
}

/// Publishes the video of a file, as an application with the SDK does.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Publishes a file; prints the estimate of its link, a line of JSON each 0.2 s.")

    @Option(help: "A video file.") var file: String
    @Option(help: "Server, ws://HOST:PORT.") var server: String
    @Option(help: "Service id.") var serviceId: String
    @Option(help: "Service secret.") var serviceSecret: String
    @Option(help: "The most bits per second of the video.") var bitrate = 2_500_000
    @Option(help: "How long to publish.") var seconds = 60.0

    func run() async throws {
        endProcess(after: Int(seconds) + 60)
        ConnectLive.callbackQueue = DispatchQueue(label: "callbacks")
        let (code, message) = await ConnectLive.signIn(
            serviceId: serviceId, serviceSecret: serviceSecret, endpoint: server)
        guard code == 0 else { throw BenchmarkError(message) }
        var config = Config()
        config.mediaOptions.source = .file
        config.mediaOptions.fileName = file
        config.mediaOptions.hasAudio = false
        config.mediaOptions.videoBitrate = bitrate
        guard let media = ConnectLive.createLocalMedia(config: config) else {
            throw BenchmarkError("There is no local media.")
        }
        let publisher = CallParticipant(config)
        publisher.connect(to: "links")
        try publisher.room.publish(media)
        let end = ContinuousClock.now + .seconds(seconds)
        while .now < end {
            try publisher.check()
            let statistics = await publisher.room.statistics()
            try printJSON(
                SendingSample(
                    at: Double(EventLoop.now.nanoseconds) / 1e9, bitsPerSecond: statistics.sendingBitsPerSecond))
            try await Task.sleep(for: .milliseconds(200))
        }
        publisher.room.disconnect()
        await media.stop()
    }
}
