internal import ClientCore
internal import MediaGraph
internal import RTP
package import RoomProtocol

extension RoomEngine {
    /// Publishes a capture's streams, and starts it if necessary. Waits for the source and the server only.
    ///
    /// - Parameters:
    ///   - isRecorded: whether the server is to record the streams. `.problem` reports that it does not.
    ///   - isWanted: read when the capture has started. If false, nothing is announced, and this throws.
    package func publish(
        _ capture: LocalCapture, video: StreamAttributes = StreamAttributes(),
        audio: StreamAttributes = StreamAttributes(), isRecorded: Bool = false,
        isWanted: @escaping @Sendable () -> Bool = { true }
    ) async throws(RoomError) -> [PublishedStream] {
        // Others would see a video without frames.
        let tracks = try await capture.publish()
        guard isWanted() else { throw RoomError(.outOfOrder, "The local media was unpublished while it started.") }
        return try await publish(
            tracks.map { track in
                Publication(track, track.codec.media == .video ? video : audio, isRecorded: isRecorded)
            })
    }

    /// Publishes tracks.
    package func publish(_ publications: [Publication]) async throws(RoomError) -> [PublishedStream] {
        try await prepare(publications)
        let result = await withCheckedContinuation { continuation in
            connection.offerPrepared { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Adds the tracks to the up session when no other offer is pending, and connects them.
    private func prepare(_ publications: [Publication]) async throws(RoomError) {
        let offers = publications.map { TrackOffer($0.track, $0.attributes, isRecorded: $0.isRecorded) }
        let result = await withCheckedContinuation { continuation in
            connection.preparePublishing(offers) { [weak self] result in
                if case .success(let mids) = result {
                    for (publication, mid) in zip(publications, mids) {
                        publication.track.connect(
                            TrackReceiver(
                                take: { [weak self] batch in self?.post { $0.connection.send(batch, mid: mid) } },
                                stateChanged: { [weak self] in self?.post { $0.connection.stateChanged(mid: mid) } }))
                    }
                }
                continuation.resume(returning: result.map { _ in })
            }
        }
        try result.get()
    }

    /// Changes the attributes of a published stream. See `RoomConnection.setStream`. Returns false if the loop is overloaded,
    /// and changes nothing then.
    package nonisolated func setStream(_ id: Int, _ change: StreamChange) -> Bool {
        post { $0.connection.setStream(id, change) }
    }

    /// Ends published streams, and stops sending them immediately.
    ///
    /// - Parameter then: called on the loop, when the server has replied or the connection has ended.
    package nonisolated func unpublish(
        _ streams: [Int], then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        let isTaken = post { $0.connection.unpublish(streams, then: then) }
        if !isTaken { then(.failure(Self.overloaded)) }
    }
}
