import ConnectLiveSDK
import Foundation
import Logging
import MediaGraph
import RoomRecording
import RoomServer
import ServerCore
import TestFixtures
import TestSupport
import Testing

@testable import RoomClient

/// Recordings that a server makes of an application's streams.
extension SDKTests {
    @Suite(.timeLimit(.minutes(2)))
    struct Recordings {
        private func names(_ suffix: String, in folder: TemporaryFolder) -> [String] {
            let all = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            return all.filter { $0.hasSuffix(suffix) }.sorted()
        }

        private func recorder(_ folder: TemporaryFolder) throws -> RecordingFolder {
            try RecordingFolder(folder.path, log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        private func start(_ file: String, in folder: TemporaryFolder) throws -> Double {
            struct Report: Decodable { let start: String }
            let data = try Data(contentsOf: URL(filePath: "\(folder.path)/\(file.dropLast(4)).json"))
            let text = try JSONDecoder().decode(Report.self, from: data).start
            let second = try Date(text.prefix(19) + "Z", strategy: .iso8601)
            return second.timeIntervalSince1970 + (Double("0" + text.dropFirst(19).dropLast()) ?? 0)
        }

        /// Publishes the pattern, recorded, until the server has written so much of the video. Returns how many frames
        /// were encoded meanwhile. A busy machine leaves some out.
        private func publish(_ codec: VideoCodec, in folder: TemporaryFolder) async throws -> Int {
            var request = MediaRequest.testPattern()
            (request.codec, request.framesPerSecond) = (codec, 30)
            let media = ConnectLive.createLocalMedia(request)
            let client = Client()
            _ = try await client.join("recorded")
            try client.room.publish(media, true)
            try await client.listener.wait(for: "published") { if case .localPublished = $0 { true } else { nil } }
            try await requireEventually("four seconds of video and sound") {
                let captured = media.localCapture?.encoderStatistics.encoded ?? 0
                return captured > 150 && names(".mkv", in: folder).count == 2
            }
            let encoded = try #require(media.localCapture?.encoderStatistics.encoded)
            client.room.unpublish(media)
            try await client.listener.wait(for: "unpublished") { if case .localUnpublished = $0 { true } else { nil } }
            try await requireEventually("both reports") { names(".json", in: folder).count == 2 }
            await media.stop()
            return encoded
        }

        @Test(arguments: [VideoCodec.vp8, .h264]) func `the server's files have every frame and all sound, in step`(
            codec: VideoCodec
        ) async throws {
            let folder = TemporaryFolder()
            try await onStage(recorder: try recorder(folder)) { _ in
                let encoded = try await publish(codec, in: folder)
                let files = names(".mkv", in: folder)
                let video = try #require(files.first { $0.hasSuffix("-video.mkv") })
                let audio = try #require(files.first { $0.hasSuffix("-audio.mkv") })
                let pictures = DecodedRecording("\(folder.path)/\(video)")
                let sound = DecodedRecording("\(folder.path)/\(audio)")
                #expect(pictures.problem == nil && sound.problem == nil)
                // Some were encoded before the session was secured.
                let recorded = pictures.numbers.count
                #expect(recorded > 100 && recorded >= encoded - 30, "\(recorded) of \(encoded)")
                #expect(zip(pictures.numbers, pictures.numbers.dropFirst()).allSatisfy { $0 ?? 0 < $1 ?? .max })
                #expect(sound.secondsOfSound > 3)
                let offset = try start(audio, in: folder) - start(video, in: folder)
                let delays = pictures.beepsAfterFlashes(sound.beeps, offset: offset)
                #expect(delays.count > 2 && delays.allSatisfy { abs($0) < 15 }, "\(delays), offset \(offset)")
            }
        }

        @Test func `a server that does not record says so once, and the streams go on`() async throws {
            try await onStage { _ in
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern())
                let client = Client()
                _ = try await client.join("not-recorded")
                try client.room.publish(media, true)
                let error = try await client.listener.wait(for: "the error") { event -> (Int, String)? in
                    if case .error(let code, let message, isCritical: false) = event { (code, message) } else { nil }
                }
                #expect(error.0 == 2022 && error.1.contains("does not record"), "\(error)")
                let viewer = Client()
                _ = try await viewer.join("not-recorded")
                let publisher = viewer.room.remoteParticipants[client.room.localParticipant.id]
                #expect(publisher?.videos.keys.contains(media.video.id) == true)
                #expect(client.listener.names.count { $0 == "error" } == 1)
                await media.stop()
            }
        }
    }
}
