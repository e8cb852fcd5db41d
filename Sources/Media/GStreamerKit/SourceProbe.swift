internal import Dispatch
package import MediaGraph
import Synchronization

/// Finds a source's format by running it: some sources report a missing device only then.
package enum SourceProbe {
    package enum Answer: Sendable {
        /// The format of the first buffer.
        case format(Caps?)
        case failed(PipelineFailure)
        /// No buffer arrived within the timeout.
        case silent
    }

    /// Runs the source until its format is known, at most `seconds`. `media` is the requested media type
    /// (`video/x-raw`). `converters` let the source choose any format of that type; with `wished`, it chooses that one if it
    /// has it.
    ///
    /// pipewiresrc blocks for half a minute at its start if its node does not exist. So it starts on a separate thread,
    /// which ends by itself.
    package static func ask(
        _ factory: String, _ properties: [String: SettingValue], media: String, converters: [String],
        wished: String? = nil, seconds: Double
    ) throws(MediaError) -> Answer {
        let source = try Element(factory, properties)
        let filter = try Element("capsfilter", ["caps": .text(media)])
        var chain = [source, filter]
        for converter in converters { chain.append(try Element(converter)) }
        if let wished { chain.append(try Element("capsfilter", ["caps": .text(wished)])) }
        let sink = try Element("fakesink", ["sync": false, "async": false])
        let first = FirstAnswer()
        let pipeline = Pipeline { message in
            if case .error(let failure) = message { first.give(.failed(failure)) }
        }
        chain.append(sink)
        for element in chain { pipeline.add(element) }
        for (from, to) in zip(chain, chain.dropFirst()) { try from.link(to) }
        let pad = filter.source
        pad.watchBuffers { [weak pad] _ in first.give(.format(pad?.caps)) }
        let queue = DispatchQueue(label: "media.source-probe")
        queue.async { _ = pipeline.play() }
        let answer = first.wait(seconds: seconds)
        let isClosed = DispatchSemaphore(value: 0)
        queue.async {
            pipeline.stop()
            isClosed.signal()
        }
        // The device is free when this returns, so that the next opening does not find it busy, or get another channel of it.
        if answer != nil { _ = isClosed.wait(timeout: .now() + closingLimit) }
        return answer ?? .silent
    }

    private static let closingLimit = DispatchTimeInterval.seconds(2)

    private final class FirstAnswer: Sendable {
        private let answer = Mutex<Answer?>(nil)
        private let isThere = DispatchSemaphore(value: 0)

        func give(_ new: Answer) {
            let isFirst = answer.withLock { answer in
                defer { answer = answer ?? new }
                return answer == nil
            }
            if isFirst { isThere.signal() }
        }

        func wait(seconds: Double) -> Answer? {
            _ = isThere.wait(timeout: .now() + seconds)
            return answer.withLock { $0 }
        }
    }
}
