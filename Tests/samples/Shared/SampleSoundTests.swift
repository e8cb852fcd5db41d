import ConnectLiveSDK
import Foundation
import TestFixtures
import TestSupport
import Testing

extension SampleTests {
    /// The audio session, levels and the muting of rooms, with a PulseAudio whose microphone hears its loudspeaker.
    @MainActor @Suite(.timeLimit(.minutes(2))) struct Sound {
        private func machine() throws -> PulseAudioRoom {
            let machine = try PulseAudioRoom()
            _ = try machine.plug(microphone: "desk-microphone")
            try machine.tell("set-default-source", "desk-microphone")
            return machine
        }

        /// How many streams of this process play or record.
        private func count(_ kind: String, on machine: PulseAudioRoom) -> Int {
            let streams = (try? machine.tell("list", kind))?.components(separatedBy: " #").dropFirst() ?? []
            // The made-up microphone has a stream, too.
            return streams.filter { !$0.contains("Driver: module-") }.count
        }

        /// Whether the loudspeaker of the machine sounds in the next fifth of a second.
        private func isAudible(_ machine: PulseAudioRoom, _ folder: TemporaryFolder) throws -> Bool {
            let file = folder.file("heard")
            let command =
                "parec --device=speaker.monitor --format=s16le --rate=8000 --channels=1 | head -c 3200 > \(file)"
            let outcome = try machine.program("/bin/sh", ["-c", command]).runToEnd(within: 20)
            try #require(outcome.status == 0, "\(outcome.output)")
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
            let samples = stride(from: 0, to: bytes.count - 1, by: 2).map { place in
                Int16(bitPattern: UInt16(bytes[place]) | UInt16(bytes[place + 1]) << 8)
            }
            return samples.contains { abs(Int($0)) > 200 }
        }

        /// Waits until the loudspeaker sounds, or is silent.
        private func waitUntil(_ machine: PulseAudioRoom, isAudible wanted: Bool) async throws {
            let folder = TemporaryFolder()
            try await wait(for: wanted ? "sound" : "silence") {
                (try? isAudible(machine, folder)) == wanted
            }
        }

        /// A room with the audio of a test pattern in it, which hears nothing itself.
        private func speaker() async throws -> Guide {
            let far = try await app()
            far.config.playsRemoteAudio = false
            far.room = ConnectLive.createRoom(config: far.config, delegate: far)
            far.s19Connect()
            far.s20Publish()
            return far
        }

        @available(*, deprecated)
        @Test
        func `README 5, 6: the delegate of the audio session hears how it begins and ends, until another follows`()
            async throws
        {
            let machine = try machine()
            try await withServer { _ in
                let readme = Readme()
                let delegate = try #require(readme.s6AudioDelegate() as? AudioDelegateOfReadme)
                readme.s5AudioSession(delegate)
                try await wait(for: "the session") { delegate.lines == ["will true", "did true"] }
                let far = try await speaker()
                let near = try await app()
                near.s19Connect()
                try await wait(for: "sound") { delegate.lines.last == "started" }
                near.s31Disconnect()
                try await wait(for: "the end of the sound") {
                    delegate.lines.suffix(3) == ["stopped", "will false", "did false"]
                }
                let count = delegate.lines.count
                readme.s5AudioSessionAlone()
                near.s18CreateRoom(near)
                near.s19Connect()
                try await waitUntil(machine, isAudible: true)
                #expect(delegate.lines.count == count)
                for guide in [near, far] { guide.s31Disconnect() }
            }
        }

        @Test func `guide 4, 5, 29, README 31: a session opens microphone and loudspeaker, and a muted room is silent`()
            async throws
        {
            let machine = try machine()
            try await withServer { _ in
                let far = try await speaker()
                let near = Guide()
                let delegate = near.s5AudioDelegate()
                try await wait(for: "the session") { delegate.lines == ["did true"] }
                near.config.mediaOptions.hasVideo = false
                near.s12CreateMedia()
                near.s18CreateRoom(near)
                near.s19Connect()
                near.s20Publish()
                try await wait(for: "a call") {
                    count("sink-inputs", on: machine) == 1 && count("source-outputs", on: machine) == 1
                }
                ConnectLive.setAudioSessionConfiguration(category: .playback, mode: .default, options: [])
                try await wait(for: "no microphone") { count("source-outputs", on: machine) == 0 }
                near.s4AudioSession()
                try await wait(for: "the microphone") { count("source-outputs", on: machine) == 1 }
                #expect(delegate.lines == ["did true"])
                let room = try #require(near.room)
                try await waitUntil(machine, isAudible: true)
                near.s29Mute()
                try await waitUntil(machine, isAudible: false)
                room.setMuted(false)
                try await waitUntil(machine, isAudible: true)
                Readme().s31Mute(room)
                try await waitUntil(machine, isAudible: false)
                #expect(room.getAudioOccupants() == [far.room?.localParticipant.id])
                for guide in [near, far] { guide.s31Disconnect() }
                await near.media?.stop()
            }
        }
    }
}
