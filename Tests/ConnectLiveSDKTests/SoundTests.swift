import RoomProtocol
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import RoomClient

/// Levels and muting of a room, on a scripted link.
@Suite(.timeLimit(.minutes(1))) struct SoundTests {
    private let scripted = ScriptedRoom()
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private func audio(_ id: Int) -> StreamInfo { StreamInfo(id: id, media: .audio, codec: "opus", extraValue: "") }

    private func received(_ id: Int, by participant: String, _ level: Double?) -> RoomStatistics.Received {
        var entry = RoomStatistics.Received(streamId: id, participantId: participant, isVideo: false)
        entry.audioLevel = level
        return entry
    }

    private func join() {
        room.connect(roomId: "scripted")
        let others = [
            ParticipantInfo(id: "ann", streams: [audio(1), audio(2)]), ParticipantInfo(id: "bob", streams: [audio(3)]),
            ParticipantInfo(id: "eve", streams: [audio(4)]),
        ]
        link.send(.connected(participant: "me", others: others))
    }

    @Test func `the levels are those of the participants in the slots, and the louder one of two`() async {
        join()
        #expect(await room.getAudioLevels() == [:])
        for (stream, participant) in [(1, "ann"), (2, "ann"), (3, "bob")] {
            link.send(.audioHeard(participant: participant, stream: stream))
        }
        // -20, -40 and no dBFS, and a stream that had a slot before.
        link.statistics.received = [
            received(1, by: "ann", 0.1), received(2, by: "ann", 0.01), received(3, by: "bob", nil),
            received(4, by: "eve", 0.5),
        ]
        #expect(await room.getAudioLevels() == ["ann": 67, "bob": 0])
        let levels = Collected<[String: Int]>()
        room.getAudioLevels { levels.append($0) }
        await eventually("the levels") { levels.count == 1 }
        #expect(levels.all == [["ann": 67, "bob": 0]])
        link.send(.audioUnheard(participant: "ann", stream: 1))
        link.send(.audioUnheard(participant: "bob", stream: 3))
        #expect(await room.getAudioLevels() == ["ann": 33])
    }

    @Test func `muting the room and its audios are calls of their own`() throws {
        join()
        let audio = try #require(room.remoteParticipants["bob"]?.audios[3])
        #expect(!audio.isMuted && audio.volume == 1)
        room.setMuted(true)
        audio.volume = 0.5
        audio.isMuted = true
        #expect(audio.isMuted && audio.volume == 0.5)
        room.setMuted(false)
        for volume in [-1, 7, .nan] as [Double] { audio.volume = volume }
        #expect(
            Array(link.calls.dropFirst()) == [
                .setMuted(true), .setVolume(0.5, isMuted: false, 3), .setVolume(0.5, isMuted: true, 3),
                .setMuted(false), .setVolume(0, isMuted: true, 3), .setVolume(2, isMuted: true, 3),
                .setVolume(0, isMuted: true, 3),
            ])
    }

    @Test func `the audio of a stream that has ended changes no other one that gets its id`() async throws {
        join()
        let bob = try #require(room.remoteParticipants["bob"]), ann = try #require(room.remoteParticipants["ann"])
        let audios = try [#require(bob.audios[3]), #require(ann.audios[1])]
        link.send(.streamUnpublished(participant: "bob", audio(3)))
        link.send(.participantLeft(ParticipantInfo(id: "ann", streams: [audio(1), audio(2)])))
        await eventually("they are gone") { room.remoteParticipants["ann"] == nil && bob.audios.isEmpty }
        for audio in audios { audio.isMuted = true }
        #expect(Array(link.calls.dropFirst()) == [] && audios.allSatisfy { $0.isMuted })
    }

    @Test func `the options of voices hold for the process, and are those of speech without gain control`() {
        #expect(LocalMediaOptions.audioType == .voice && !LocalMediaOptions.autoGain)
        defer { VoiceProcessing.choice.change { $0 = VoiceProcessing() } }
        LocalMediaOptions.audioType = .music
        LocalMediaOptions.autoGain = true
        #expect(LocalMediaOptions.audioType.rawValue == "music" && LocalMediaOptions.autoGain)
        #expect(VoiceProcessing.choice.value.controlsGain && !VoiceProcessing.choice.value.isOn)
    }
}
