/// A key, as a terminal and a window report it.
enum Key: Equatable {
    case character(Character)
    case enter, escape, backspace, up, down, left, right
    /// Ctrl-C, or the window is closed.
    case quit
}

/// The actions of keys, and the texts around the videos.
@MainActor final class Controls {
    enum Field: Int, CaseIterable { case room, name, camera, microphone }

    let conference: Conference
    private(set) var field = Field.room
    /// The chat line that is being written.
    private var draft: String?

    init(_ conference: Conference) { self.conference = conference }

    func press(_ key: Key) {
        if key == .quit { return conference.end() }
        switch conference.stage {
        case .lobby: pressInLobby(key)
        case .inRoom: if let draft { write(draft, key) } else { pressInRoom(key) }
        case .joining where key == .escape: conference.leave()
        case .joining, .ended: break
        }
    }

    private func pressInLobby(_ key: Key) {
        switch (key, field) {
        case (.enter, _): Task { await conference.join() }
        case (.escape, _): conference.end()
        case (.up, _): move(-1)
        case (.down, _), (.character("\t"), _): move(1)
        case (.left, .camera): conference.chooseCamera(step: -1)
        case (.right, .camera): conference.chooseCamera(step: 1)
        case (.left, .microphone): conference.chooseMicrophone(step: -1)
        case (.right, .microphone): conference.chooseMicrophone(step: 1)
        case (_, .room): Self.edit(&conference.roomName, key)
        case (_, .name): Self.edit(&conference.name, key)
        default: break
        }
    }

    private func move(_ step: Int) {
        let count = Field.allCases.count
        field = Field(rawValue: (field.rawValue + step + count) % count) ?? .room
    }

    private func pressInRoom(_ key: Key) {
        switch key {
        case .character("m"): conference.toggleMicrophone()
        case .character("c"): conference.toggleCamera()
        case .character("n"): conference.chooseCamera(step: 1)
        case .character("s"): conference.toggleScreenShare()
        case .character("t"), .enter: draft = ""
        case .character("q"): conference.leave()
        default: break
        }
    }

    private func write(_ line: String, _ key: Key) {
        var line = line
        Self.edit(&line, key)
        if key == .enter, !line.isEmpty { Task { [line] in await conference.send(line) } }
        draft = [.enter, .escape].contains(key) ? nil : line
    }

    private static func edit(_ text: inout String, _ key: Key) {
        switch key {
        case .character(let character) where !character.isNewline && character != "\t": text.append(character)
        case .backspace: _ = text.popLast()
        default: break
        }
    }

    // MARK: - Texts

    var title: String {
        switch conference.stage {
        case .lobby: "Lobby"
        case .joining: "Joining \(conference.roomName)"
        case .inRoom: "\(conference.roomName)\(conference.isSharing ? ", your screen is shared" : "")"
        case .ended: "Goodbye"
        }
    }

    /// The fields of the lobby, with their values.
    var form: [(field: Field, label: String, value: String)] {
        [
            (.room, "Room", conference.roomName), (.name, "Name", conference.name),
            (.camera, "Camera", chosen(conference.cameras)),
            (.microphone, "Microphone", chosen(conference.microphones)),
        ]
    }

    private func chosen(_ choice: Conference.Choice) -> String {
        if conference.usesTestPattern { return "test pattern" }
        guard choice.devices.indices.contains(choice.index) else { return "none found: you join without one" }
        let label = choice.devices[choice.index].label
        return choice.devices.count > 1 ? "‹ \(label) ›" : label
    }

    var help: String {
        switch conference.stage {
        case .lobby: "Enter join   ↑↓ field   ←→ device   Esc quit"
        case .joining: "Esc cancel"
        case .inRoom:
            draft.map { "Say: \($0)▏" }
                ?? "m \(conference.isMicrophoneOn ? "mute" : "unmute")   c camera \(conference.isCameraOn ? "off" : "on")   "
                + "n next camera   t chat   s \(conference.isSharing ? "end sharing" : "share screen")   q leave"
        case .ended: ""
        }
    }
}
