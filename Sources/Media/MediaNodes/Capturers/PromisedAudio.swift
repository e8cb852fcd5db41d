import MediaGraph

extension NodePlan {
    private static let encoders = [
        "opus": ["opusenc"], "aac": AACEncoderNode.factories, "pcmu": ["mulawenc"], "pcma": ["alawenc"],
    ]

    /// Appends a decoder and an encoder that give the audio of a network camera in the format that its node promised. Throws
    /// `element.missing`.
    mutating func appendConversion(
        of encoding: Encoding, to promise: MediaFormat, prefix: String, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        let decoder = try environment.firstUsable(of: encoding.decoders).factory
        let encoder = try environment.firstUsable(of: Self.encoders[promise.encoding] ?? []).factory
        append(decoder, as: "\(prefix)decoder", Encoding.decoderProperties(decoder))
        append("audioconvert", as: "\(prefix)convert")
        append("audioresample", as: "\(prefix)resample")
        appendFilter(
            "audio/x-raw,rate=\(promise.sampleRate ?? 8000),channels=\(promise.channels ?? 1)", as: "\(prefix)raw")
        append(encoder, as: "\(prefix)encoder")
        guard let parser = Encoding.named(promise.encoding)?.parser else { return }
        try environment.require(parser)
        append(parser, as: "\(prefix)encoded")
    }
}
