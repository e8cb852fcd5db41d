internal import RTP
internal import RoomProtocol

extension Participant {
    /// Begins the recordings that a `publish` asks for, and notes in its answer which of them have begun. Returns why others have
    /// not: their streams go on without.
    func record(
        _ publish: Publish, _ streams: [PublishedStream], in room: RoomName, _ answer: inout Published
    ) -> [RoomError] {
        var problems: [RoomError] = []
        for (index, (asked, stream)) in zip(publish.streams, streams).enumerated() where asked.record == true {
            do throws(RoomError) {
                try record(stream, in: room)
                answer.streams[index].recording = true
            } catch {
                answer.streams[index].recording = false
                // Once for video and audio.
                if !problems.contains(error) { problems.append(error) }
            }
        }
        return problems
    }

    private func record(_ stream: PublishedStream, in room: RoomName) throws(RoomError) {
        guard mayRecord else {
            throw RoomError(
                .recordingUnavailable,
                "The server records nothing for a page without the service's secret. The streams go on without a recording."
            )
        }
        guard let record = settings.record else {
            throw RoomError(
                .recordingUnavailable,
                "The server does not record: it has no folder for recordings. The streams go on without a recording.")
        }
        let sink = try record(
            RecordedStream(room: room, participant: id, stream: stream.info.id, codec: stream.codec))
        stream.record(to: sink, clock: captureClock)
    }

    /// The recording of a stream has failed. The client is told, and the stream goes on.
    func recordingFailed(of stream: Int, _ error: RoomError) {
        guard let stream = streams.first(where: { $0.info.id == stream }), stream.stopRecording() else { return }
        line.send(.error(Problem(error)))
    }
}
