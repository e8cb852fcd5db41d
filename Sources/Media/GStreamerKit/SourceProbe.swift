internal import Dispatch
package import MediaGraph
import Synchronization

/// Finds out what a source gives by letting it give something: some say only then that their device is not there.
package enum SourceProbe {
    package enum Answer: Sendable {
        /// What the first buffer is.
        case format(Format)
        case failed(PipelineFailure)
        /// Nothing came in the time given.
        case silent
    }

    package struct Format: Sendable, Hashable {
        package let width: Int?
        package let height: Int?
        package let framesPerSecond: Double?
    }

    /// Runs the source until its format is known, `seconds` at most. `media` is what is asked of it (`video/x-raw`),
    /// `converter` what makes it free to choose within that.
    ///
    /// pipewiresrc holds up its own start for half a minute where its node does not exist. So it is started on a thread
    /// of its own, and left there to find its end by itself.
    package static func ask(
        _ factory: String, _ properties: [String: SettingValue], media: String, converter: String, seconds: Double
    ) throws(MediaError) -> Answer {
        let source = try Element(factory, properties.mapValues(PropertyValue.init))
        let filter = try Element("capsfilter", ["caps": .text(media)])
        let converter = try Element(converter)
        let sink = try Element("fakesink", ["sync": false, "async": false])
        let first = FirstAnswer()
        let pipeline = Pipeline { message in
            if case .error(let failure) = message { first.give(.failed(failure)) }
        }
        for element in [source, filter, converter, sink] { pipeline.add(element) }
        for (from, to) in [(source, filter), (filter, converter), (converter, sink)] { try from.link(to) }
        let pad = filter.source
        pad.onBuffer { [weak pad] _ in
            let format = pad?.caps?.structures.first
            first.give(
                .format(
                    Format(
                        width: format?.integer("width"), height: format?.integer("height"),
                        framesPerSecond: format?.fractions("framerate").first { $0 > 0 })))
            return .pass
        }
        let queue = DispatchQueue(label: "media.source-probe")
        queue.async { _ = pipeline.play() }
        defer { queue.async { pipeline.stop() } }
        return first.wait(seconds: seconds) ?? .silent
    }

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
