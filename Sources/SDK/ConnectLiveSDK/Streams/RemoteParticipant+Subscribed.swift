extension RemoteParticipant {
    /// Whether one of the participant's videos is subscribed.
    public var isVideoSubscribed: Bool { videos.values.contains { $0.isSubscribed } }
}
