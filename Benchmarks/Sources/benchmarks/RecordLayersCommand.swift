internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import Synchronization

/// Encodes a film once for each layer of a video, with the number of each frame drawn in it.
struct RecordLayersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record-layers", abstract: "Writes layer-WIDTH.mkv for each of some sizes of a film.")

    @Option(help: "The film.") var file: String
    @Option(parsing: .upToNextOption, help: "WIDTHxHEIGHT:BITS-PER-SECOND of each layer.") var layers: [String]
    @Option(help: "The folder to write to.") var folder: String
    @Option(help: "How long to record.") var seconds = 8.0

    /// Frames between keyframes.
    private static let keyframeInterval = 25

    func run() async throws {
        endProcess(after: Int(seconds) + 30)
        let film = File(path: file)
        let branches = try layers.map { layer in
            let numbers = layer.split { "x:".contains($0) }.compactMap { Int($0) }
            guard numbers.count == 3 else { throw BenchmarkError("'\(layer)' is not WIDTHxHEIGHT:BITS-PER-SECOND.") }
            return (width: numbers[0], height: numbers[1], rate: numbers[2])
        }
        let pipeline = try await MediaPipeline {
            for branch in branches {
                let count = FrameCount()
                film.video
                    >>> Scale(width: branch.width, height: branch.height)
                    >>> FrameFunction { $0.draw(barCode: count.next()) }
                    >>> VideoEncoder(
                        .vp8, bitrate: Bitrate(bitsPerSecond: branch.rate), keyframeInterval: Self.keyframeInterval)
                    >>> Recorder(path: "\(folder)/layer-\(branch.width).mkv")
            }
        }
        try await pipeline.start()
        try await Task.sleep(for: .seconds(seconds))
        await pipeline.stop()
    }
}

private final class FrameCount: Sendable {
    private let count = Mutex<UInt32>(0)

    func next() -> UInt32 {
        count.withLock { count in
            count += 1
            return count - 1
        }
    }
}
