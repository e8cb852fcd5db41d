/// The inputs that read an output. The planner collects them before it plans the node of the output, so that a source can
/// choose the format that needs the least work.
///
/// A value: `work(for:)` and `choice(among:)` give the same result for the same inputs, whatever the machine does.
public struct Demand: Sendable, Hashable {
    /// An input that reads the output.
    public struct Consumer: Sendable, Hashable {
        /// Such as `room.video`.
        public let name: String
        /// The formats that it accepts, best first.
        public let port: Port
        /// The demand for the output of its node, if that has the format of this input, as that of `rate`.
        public let onward: Demand?
        /// Whether it is the input of a decoder, for which nothing can be decoded.
        let isDecoder: Bool
        /// Whether it sends to peers, whose decoders of H.264 need not read more than constrained baseline (RFC 7742,
        /// section 6.2).
        let isForPeers: Bool
        /// Whether it is a further layer of a video, which is always encoded for it.
        let layer: LayerInput?
        /// The codec in which an inserted encoder feeds it in the graph that runs. Nil if none does.
        let running: String?

        /// A consumer by its name and its input.
        public init(
            _ name: String, _ port: Port, onward: Demand? = nil, isDecoder: Bool = false, isForPeers: Bool = false,
            layer: LayerInput? = nil, running: String? = nil
        ) {
            self.name = name
            self.port = port
            self.onward = onward
            self.isDecoder = isDecoder
            self.isForPeers = isForPeers
            self.layer = layer
            self.running = running
        }
    }

    /// The inputs that read the output.
    public let consumers: [Consumer]
    /// The inputs of the encoders that the planner can insert, by codec.
    let encoders: [String: Port]

    /// The demand of these consumers.
    public init(_ consumers: [Consumer] = [], encoders: [String: Port] = [:]) {
        self.consumers = consumers
        self.encoders = encoders
    }

    /// Whether a consumer sends to peers, perhaps through nodes that do not change the format.
    public var reachesPeers: Bool { consumers.contains { $0.isForPeers || $0.onward?.reachesPeers ?? false } }

    /// Whether there are consumers, and all send to peers, perhaps through nodes that do not change the format.
    public var reachesOnlyPeers: Bool {
        !consumers.isEmpty && consumers.allSatisfy { $0.isForPeers || $0.onward?.reachesOnlyPeers ?? false }
    }

    /// The demand for the output of an inserted node: of the consumers that it feeds.
    ///
    /// - Parameter format: that of the output with this demand.
    func part(behind adapter: Adapter, from format: MediaFormat) -> Demand {
        Demand(consumers.filter { adapters(from: format, to: $0)?.last == adapter })
    }

    // MARK: Work

    /// The nodes to insert so that every consumer gets a format that it accepts, each counted once for all consumers that
    /// share it. Nil if no inserted node can help one of them.
    public func work(for format: MediaFormat) -> Work? {
        var shared: Set<Adapter> = []
        var onward = Work.none
        for consumer in consumers {
            guard let adapters = adapters(from: format, to: consumer) else { return nil }
            shared.formUnion(adapters)
            guard let next = consumer.onward else { continue }
            guard let more = next.work(for: adapters.last?.output(like: format) ?? format) else { return nil }
            onward += more
        }
        return shared.reduce(onward) { $0 + $1.work }
    }

    /// The number of consumers that accept a format unchanged.
    func served(by format: MediaFormat) -> Int {
        consumers.filter { $0.takes(format) }.map { $0.onward?.served(by: format) ?? 1 }.reduce(0, +)
    }

    /// How far down a format stands in the lists of the consumers that accept it, added up.
    func distance(of format: MediaFormat) -> Int {
        consumers.filter { $0.takes(format) }.map { consumer in
            (consumer.port.encodings(of: format.kind).firstIndex(of: format.encoding) ?? 0)
                + (consumer.onward?.distance(of: format) ?? 0)
        }.reduce(0, +)
    }

    // MARK: Adapters

    /// The nodes to insert between the output and a consumer, in their order. Nil if none can help.
    func adapters(from format: MediaFormat, to consumer: Consumer) -> [Adapter]? {
        let port = consumer.port
        if consumer.takes(format) { return [] }
        let isVideo = format.kind == .rawVideo || format.kind == .encodedVideo
        let (raw, encoded): (MediaKind, MediaKind) =
            isVideo ? (.rawVideo, .encodedVideo) : (.rawAudio, .encodedAudio)
        guard format.kind == raw || format.kind == encoded else { return nil }
        var adapters: [Adapter] = []
        if format.kind == encoded {
            // Another encoding is decoded first.
            guard !consumer.isDecoder else { return nil }
            adapters.append(isVideo ? .decodeVideo : .decodeAudio)
        }
        let current = adapters.last?.output(like: format) ?? format
        if port.kinds.contains(raw) {
            if port.takes(current) { return adapters }
            guard isVideo, let wanted = pixelFormat(for: port, of: current) else { return nil }
            return adapters + [.convert(wanted)]
        }
        // All layers of a video have its codec.
        let given = consumer.layer != nil && port.takes(format) ? format.encoding : nil
        guard port.kinds.contains(encoded), let codec = given ?? codec(for: consumer, encoded, of: current),
            let input = encoders[codec]
        else {
            return nil
        }
        if !input.takes(current) {
            guard isVideo, let wanted = pixelFormat(for: input, of: current) else { return nil }
            adapters.append(.convert(wanted))
        }
        return adapters + [consumer.layer.map { .layer(codec, $0) } ?? .encode(codec)]
    }

    /// The codec to encode in for a consumer, among those that it accepts. One that is fed keeps its codec, so that an edit
    /// does not interrupt it. For another one, it is a codec in which others are fed, or else that which serves most.
    private func codec(for consumer: Consumer, _ encoded: MediaKind, of format: MediaFormat) -> String? {
        let there = consumer.port.encodings(of: encoded).filter { encoders[$0] != nil }
        if let running = consumer.running, there.contains(running) { return running }
        // Not every codec takes every size.
        let suitable = there.filter { Encoding.named($0)?.takesSize(of: format) ?? true }
        let codecs = suitable.isEmpty ? there : suitable
        // The same order of codecs for all consumers, so that those with a codec in common share its encoder.
        let ranked = codecs.map { ($0, rank(of: $0, encoded)) }
        return ranked.dropFirst().reduce(ranked.first) { best, next in
            best.map { $0.1 < next.1 } ?? false ? next : best
        }?.0
    }

    /// Compared in this order. Of codecs that serve as many consumers, the one that they prefer comes first, and then the one
    /// that peers prefer.
    private func rank(of codec: String, _ encoded: MediaKind) -> (Int, Int, Int, Int) {
        let lists = consumers.map { (place: $0.port.encodings(of: encoded).firstIndex(of: codec), consumer: $0) }
        let places = lists.compactMap(\.place)
        let first = lists.first { $0.consumer.isForPeers }?.place ?? lists.first?.place
        return (
            consumers.contains { $0.running == codec } ? 1 : 0, places.count, -places.reduce(0, +), -(first ?? .max)
        )
    }

    /// The pixel format that serves most consumers, among those that `port` accepts. A consumer of encoded video counts
    /// with the input of its encoder.
    private func pixelFormat(for port: Port, of format: MediaFormat) -> String? {
        let inputs = consumers.compactMap { consumer in
            consumer.port.kinds.contains(.rawVideo)
                ? consumer.port : codec(for: consumer, .encodedVideo, of: format).flatMap { encoders[$0] }
        }
        return port.encodings(of: .rawVideo).firstMaximum { format in
            inputs.count { $0.takes(.rawVideo(format)) }
        }
    }
}

/// A node that the planner inserts.
enum Adapter: Sendable, Hashable {
    case decodeVideo
    case decodeAudio
    /// To a pixel format.
    case convert(String)
    /// With a codec.
    case encode(String)
    /// With a codec, as a further layer of a video.
    case layer(String, LayerInput)

    var work: Work {
        switch self {
        case .decodeVideo, .decodeAudio: Work(decodes: 1)
        case .convert: Work(conversions: 1)
        case .encode, .layer: Work(encodes: 1)
        }
    }

    /// Its output for an input of the given size and rate.
    func output(like input: MediaFormat) -> MediaFormat {
        var format = input
        switch self {
        case .decodeVideo: (format.kind, format.encoding) = (.rawVideo, "I420")
        case .decodeAudio: format = .rawAudio
        case .convert(let pixelFormat): format.encoding = pixelFormat
        case .encode(let codec): (format.kind, format.encoding) = (MediaKind(ofEncoding: codec), codec)
        case .layer(let codec, let input):
            (format.kind, format.encoding) = (MediaKind(ofEncoding: codec), codec)
            format = input.layer.scaled(format)
        }
        return format
    }
}

/// Encoders, decoders and conversions of a format. Compared in this order: an encode outweighs any number of decodes.
public struct Work: Sendable, Hashable, Comparable {
    /// The number of encodes.
    public var encodes: Int
    /// The number of decodes.
    public var decodes: Int
    /// The number of conversions.
    public var conversions: Int

    /// No work.
    public static let none = Work()

    /// Work of these numbers.
    public init(encodes: Int = 0, decodes: Int = 0, conversions: Int = 0) {
        (self.encodes, self.decodes, self.conversions) = (encodes, decodes, conversions)
    }

    public static func < (left: Work, right: Work) -> Bool {
        (left.encodes, left.decodes, left.conversions) < (right.encodes, right.decodes, right.conversions)
    }

    /// The sum of both.
    public static func + (left: Work, right: Work) -> Work {
        Work(
            encodes: left.encodes + right.encodes, decodes: left.decodes + right.decodes,
            conversions: left.conversions + right.conversions)
    }

    /// Adds the work of the second.
    public static func += (left: inout Work, right: Work) { left = left + right }
}

extension Work: CustomStringConvertible {
    /// Such as `1 encode and 1 conversion`.
    public var description: String {
        let counts = [(encodes, "encode"), (decodes, "decode"), (conversions, "conversion")].filter { $0.0 > 0 }
        guard !counts.isEmpty else { return "no encode, decode or conversion" }
        return counts.map { "\($0) \($1)\($0 == 1 ? "" : "s")" }.joinedAsList
    }
}

extension [String] {
    /// Such as `a, b and c`.
    var joinedAsList: String {
        guard let last, count > 1 else { return first ?? "" }
        return "\(dropLast().joined(separator: ", ")) and \(last)"
    }
}

extension Sequence {
    /// The first of the elements with the largest value.
    fileprivate func firstMaximum(_ value: (Element) -> Int) -> Element? {
        var best: (element: Element, value: Int)?
        for element in self {
            let value = value(element)
            if best.map({ value > $0.value }) ?? true { best = (element, value) }
        }
        return best?.element
    }
}
