/// The properties of a stream that its publisher sets, and may change. All participants see them.
package struct StreamAttributes: Sendable, Hashable {
    /// Free text.
    package var extraValue: String
    /// Whether the publisher has the stream on. One that is off is muted.
    package var isActive: Bool
    /// Whether the audio is to be heard even if others are louder.
    package var isAlwaysOn: Bool
    /// The wished place and fit of the video in a composed recording: a weight and a mode, such as `5 fit`. The server composes none.
    package var sort: String

    package static let defaultSort = "0 crop"
    /// The most bytes of UTF-8 in an `extraValue`.
    package static let maximumExtraValueLength = 1024
    /// The most bytes of UTF-8 in a `sort`.
    package static let maximumSortLength = 32

    package init(
        extraValue: String = "", isActive: Bool = true, isAlwaysOn: Bool = false, sort: String = defaultSort
    ) {
        self.extraValue = extraValue
        self.isActive = isActive
        self.isAlwaysOn = isAlwaysOn
        self.sort = sort
    }

    /// The change that makes these attributes of others.
    package func change(from others: StreamAttributes) -> StreamChange {
        StreamChange(self, state: nil).differing(from: StreamChange(others, state: nil))
    }

    package mutating func apply(_ change: StreamChange) {
        extraValue = change.extraValue ?? extraValue
        isActive = change.isActive ?? isActive
        isAlwaysOn = change.isAlwaysOn ?? isAlwaysOn
        sort = change.sort ?? sort
    }
}

/// The fields of attributes, among those of the object that has them. Defaults are omitted.
extension StreamAttributes: Codable {
    private enum CodingKeys: String, CodingKey { case extraValue, active, alwaysOn, sort }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        extraValue = try fields.decodeIfPresent(String.self, forKey: .extraValue) ?? ""
        isActive = try fields.decodeIfPresent(Bool.self, forKey: .active) ?? true
        isAlwaysOn = try fields.decodeIfPresent(Bool.self, forKey: .alwaysOn) ?? false
        sort = try fields.decodeIfPresent(String.self, forKey: .sort) ?? Self.defaultSort
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        if !extraValue.isEmpty { try fields.encode(extraValue, forKey: .extraValue) }
        if !isActive { try fields.encode(false, forKey: .active) }
        if isAlwaysOn { try fields.encode(true, forKey: .alwaysOn) }
        if sort != Self.defaultSort { try fields.encode(sort, forKey: .sort) }
    }
}

/// The state and the attributes of a stream that change. Those that are nil stay.
package struct StreamChange: Sendable, Hashable {
    package var state: StreamState?
    package var isActive: Bool?
    package var isAlwaysOn: Bool?
    package var extraValue: String?
    package var sort: String?

    package init(
        state: StreamState? = nil, isActive: Bool? = nil, isAlwaysOn: Bool? = nil, extraValue: String? = nil,
        sort: String? = nil
    ) {
        self.state = state
        self.isActive = isActive
        self.isAlwaysOn = isAlwaysOn
        self.extraValue = extraValue
        self.sort = sort
    }

    /// All fields.
    package init(_ attributes: StreamAttributes, state: StreamState?) {
        self.init(
            state: state, isActive: attributes.isActive, isAlwaysOn: attributes.isAlwaysOn,
            extraValue: attributes.extraValue, sort: attributes.sort)
    }

    package var isEmpty: Bool { self == StreamChange() }

    /// Changes of one field each that have the same effect together.
    package var fields: [StreamChange] {
        [
            StreamChange(state: state), StreamChange(isActive: isActive), StreamChange(isAlwaysOn: isAlwaysOn),
            StreamChange(sort: sort), StreamChange(extraValue: extraValue),
        ].filter { !$0.isEmpty }
    }

    /// Adds a later change.
    package mutating func merge(_ later: StreamChange) {
        state = later.state ?? state
        isActive = later.isActive ?? isActive
        isAlwaysOn = later.isAlwaysOn ?? isAlwaysOn
        extraValue = later.extraValue ?? extraValue
        sort = later.sort ?? sort
    }

    /// The fields whose values differ from those of `known`.
    package func differing(from known: StreamChange) -> StreamChange {
        StreamChange(
            state: state == known.state ? nil : state, isActive: isActive == known.isActive ? nil : isActive,
            isAlwaysOn: isAlwaysOn == known.isAlwaysOn ? nil : isAlwaysOn,
            extraValue: extraValue == known.extraValue ? nil : extraValue, sort: sort == known.sort ? nil : sort)
    }

    /// Throws if a text is too long, or has characters that could change other text beside it.
    package func validate() throws(RoomError) {
        try state?.validate()
        if let extraValue, extraValue.utf8.count > StreamAttributes.maximumExtraValueLength {
            throw RoomError(
                .publishRefused,
                "The extraValue has \(extraValue.utf8.count) bytes; the limit is "
                    + "\(StreamAttributes.maximumExtraValueLength). Shorten it.")
        }
        guard let sort else { return }
        guard sort.utf8.count <= StreamAttributes.maximumSortLength else {
            throw RoomError(
                .messageMalformed,
                "The sort has \(sort.utf8.count) bytes; the limit is \(StreamAttributes.maximumSortLength). Shorten it."
            )
        }
        guard !sort.unicodeScalars.contains(where: \.isControl) else {
            throw RoomError(
                .messageMalformed, "The sort has a control character. Send a weight and a mode, such as '0 crop'.")
        }
    }
}

/// The fields that change, among those of the message that has the change.
extension StreamChange: Codable {
    private enum CodingKeys: String, CodingKey { case state, active, alwaysOn, extraValue, sort }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let lacksState = try !fields.contains(.state) || fields.decodeNil(forKey: .state)
        state = lacksState ? nil : try StreamState(from: decoder)
        isActive = try fields.decodeIfPresent(Bool.self, forKey: .active)
        isAlwaysOn = try fields.decodeIfPresent(Bool.self, forKey: .alwaysOn)
        extraValue = try fields.decodeIfPresent(String.self, forKey: .extraValue)
        sort = try fields.decodeIfPresent(String.self, forKey: .sort)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        if let state {
            if state == .live { try fields.encode(StreamState.liveName, forKey: .state) }
            try state.encode(to: encoder)
        }
        try fields.encodeIfPresent(isActive, forKey: .active)
        try fields.encodeIfPresent(isAlwaysOn, forKey: .alwaysOn)
        try fields.encodeIfPresent(extraValue, forKey: .extraValue)
        try fields.encodeIfPresent(sort, forKey: .sort)
    }
}

/// Changes the state and the attributes of a published stream.
package struct SetStream: Codable, Sendable, Equatable {
    package var stream: Int
    package var change: StreamChange

    package init(stream: Int, change: StreamChange) {
        self.stream = stream
        self.change = change
    }

    private enum CodingKeys: String, CodingKey { case stream }

    package init(from decoder: any Decoder) throws {
        stream = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .stream)
        change = try StreamChange(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(stream, forKey: .stream)
        try change.encode(to: encoder)
    }
}

/// The state and the attributes of a stream that have changed.
package struct StreamChanged: Codable, Sendable, Equatable {
    package var participant: String
    package var stream: Int
    /// Has always the present state, which is live if the message has none: earlier versions read it so.
    package var change: StreamChange

    package init(participant: String, stream: Int, state: StreamState, change: StreamChange = StreamChange()) {
        self.participant = participant
        self.stream = stream
        self.change = change
        self.change.state = state
    }

    private enum CodingKeys: String, CodingKey { case participant, stream }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        participant = try fields.decode(String.self, forKey: .participant)
        stream = try fields.decode(Int.self, forKey: .stream)
        change = try StreamChange(from: decoder)
        change.state = try StreamState(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(participant, forKey: .participant)
        try fields.encode(stream, forKey: .stream)
        try change.state?.encode(to: encoder)
        var rest = change
        rest.state = nil
        try rest.encode(to: encoder)
    }
}
