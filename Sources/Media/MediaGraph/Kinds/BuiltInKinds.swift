extension NodeKind {
    /// The kinds that come with the media floor; other floors and GStreamer's elements add theirs in a catalogue.
    public static let builtIn: [NodeKind] = capturers + processors + codecs + renderers + recorders + transport
}
