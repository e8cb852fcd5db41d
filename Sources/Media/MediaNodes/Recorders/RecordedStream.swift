import MediaGraph

/// One of the two streams that a recording may have.
enum RecordedStream: String, CaseIterable, Sendable {
    case video
    case audio

    /// The error for what a recording lacks: a stream, or everything if `stream` is nil. `end` is the second of the
    /// recording at which the stream ends, if it has begun. `cause` is the reason why the input has no data, if known.
    static func shortfall(
        _ stream: Self?, of path: String, node: String, end: Double?, cause: String? = nil
    ) -> MediaError {
        let message =
            if let cause {
                "The recording \(path) \(stream.map { "has no \($0)" } ?? "is empty"): \(cause). Choose a file with "
                    + "audio, or unlink the audio port of \"\(node)\"."
            } else if let stream, let end {
                "The \(stream) of the recording \(path) ends after \(tenths(end)) s: \"\(node)\" received none for "
                    + "\(RecordingGate.limit / 1_000_000_000) s. Check the nodes that feed its \(stream) port."
            } else if let stream {
                "The recording \(path) has no \(stream): \"\(node)\" received none in time. Check the nodes that feed "
                    + "its \(stream) port."
            } else {
                "The recording \(path) is empty: \"\(node)\" received nothing to begin with. Check the nodes that feed it."
            }
        return MediaError(code: MediaError.Code.recordingIncomplete, message: message)
    }

    /// The error for a recording whose end was not written within `seconds`.
    static func unfinished(_ path: String, seconds: Int) -> MediaError {
        MediaError(
            code: MediaError.Code.recordingIncomplete,
            message: "The end of the recording \(path) was not written within \(seconds) s. Check the disk that it is "
                + "on, and the end of the recording.")
    }

    /// The error for an HLS recording without the data of this segment.
    static func lacking(_ segment: String, of path: String) -> MediaError {
        MediaError(
            code: MediaError.Code.recordingIncomplete,
            message: "The recording \(path) lacks its segment \(segment), which is missing or empty. Check what else "
                + "writes or removes files there.")
    }

    private static func tenths(_ seconds: Double) -> Double { (seconds * 10).rounded() / 10 }
}
