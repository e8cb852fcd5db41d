internal import GStreamerKit
internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol
internal import ServerCore

/// The elements that write one stream's packets to a file, without decoding: depayloader, parser, muxer and file.
struct RecordingPipeline {
    let pipeline: Pipeline
    let source: PushSource

    /// - Parameter onMessage: called on any thread.
    init(
        _ codec: Codec, to path: String, onMessage: @escaping @Sendable (BusMessage) -> Void
    ) throws(MediaError) {
        let chain = Self.chain(of: codec)
        var elements = [try Element("appsrc", Self.source(of: codec))]
        for (factory, properties) in chain { elements.append(try Element(factory, properties)) }
        elements.append(
            try Element(
                "filesink",
                // Unbuffered: recorded data is in the file, not in the memory of a process that may be killed.
                ["location": .text(path), "buffer-mode": "unbuffered", "sync": false, "async": false]))
        pipeline = Pipeline(onMessage: onMessage)
        for element in elements { pipeline.add(element) }
        for (element, next) in zip(elements, elements.dropFirst()) { try element.link(next) }
        source = PushSource(elements[0])
        if codec == .vp9 { SpatialLayerJoiner.join(at: elements[0].source) }
        keepFormat(before: elements[chain.count])
    }

    /// Throws if an element is not installed.
    static func check() throws(MediaError) {
        for codec in Codec.allCases {
            for (factory, properties) in chain(of: codec) { _ = try Element(factory, properties) }
        }
    }

    private static func source(of codec: Codec) -> [String: SettingValue] {
        let audio = codec.media == .audio ? ",sprop-maxcapturerate=(string)48000,sprop-stereo=(string)1" : ""
        let caps =
            "application/x-rtp,media=\(codec.media.rawValue),clock-rate=\(codec.clockRate),"
            + "encoding-name=\(codec.rawValue.uppercased()),payload=(int)\(codec.payloadType)\(audio)"
        return PushSource.properties.merging(["caps": .text(caps)]) { $1 }
    }

    private static func chain(of codec: Codec) -> [(factory: String, properties: [String: SettingValue])] {
        guard let encoding = Encoding.named(codec.rawValue.lowercased()),
            let depayloader = encoding.depayloaders.first?.value
        else { preconditionFailure("\(codec) has no payload format") }
        // After a loss, nothing broken is recorded.
        var chain = [(depayloader, encoding.isVideo ? ["wait-for-keyframe": true] : [:] as [String: SettingValue])]
        if !encoding.framing.isEmpty { chain.append(("capsfilter", ["caps": .text(encoding.caps)])) }
        if let parser = encoding.parser { chain.append((parser, encoding.parserProperties)) }
        // An index entry for each packet of audio would be of no use.
        chain.append(("matroskamux", ["writing-app": "connectlive", "min-index-interval": 500_000_000]))
        return chain
    }

    /// Lets the muxer see the first format alone. It refuses others, and needs none: the stream itself has the sizes of VP8 and
    /// VP9, and the parameter sets of H.264.
    private func keepFormat(before muxer: Element) {
        let isKnown = AtomicBool()
        muxer.pads.first { !$0.isSource }?.peer?.onEvent { event in
            guard case .caps = event else { return .pass }
            defer { isKnown.raise() }
            return isKnown.value ? .drop : .pass
        }
    }
}
