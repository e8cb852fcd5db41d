internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol

struct ViewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "view", abstract: "Watch the videos of a room in a window (tiled; needs a display), and hear it.")

    @OptionGroup var room: RoomFlag

    @Option(help: "Show the videos of this participant only. All are heard. A restart of the server changes its id.")
    var participant: String?

    @Option(
        help:
            "Write the last frame of the first video to this .png or .jpg file at the end; fail if all cameras are away."
    )
    var snapshot: String?

    @Option(help: "Write the measured values since the newest entry into the room to this JSON file at the end.")
    var report: String?

    @OptionGroup var length: SecondsFlag

    @Flag(help: "Do not open a window.") var noWindow = false

    @Flag(
        help: ArgumentHelp(
            "Never give up: wait for the server, and join again after each end, unless an administrator ended it. A service "
                + "manager such as systemd learns the state."))
    var forever = false

    @OptionGroup var server: ServerFlags
    @OptionGroup var network: NetworkFlags

    private var config: Config {
        var config = Config()
        network.apply(to: &config)
        config.reconnectSeconds = room.reconnectSeconds
        return config
    }

    func validate() throws {
        let endings = [".png", ".jpg", ".jpeg"]
        if let snapshot, !endings.contains(where: snapshot.lowercased().hasSuffix) {
            throw ValidationError("--snapshot is \"\(snapshot)\"; write a path that ends in .png, .jpg or .jpeg.")
        }
    }

    func run() async throws {
        for path in [snapshot, report].compactMap({ $0 }) { try OutputFile.check(path) }
        network.tryRelays()
        let interruption = Interruption()
        if forever { return try await viewForever(interruption) }
        try await server.signIn(waiting: ServerFlags.waitsForever)
        let screen = try Screen(title: "Room \(room.room)", hasWindow: !noWindow)
        let audience = Audience(
            screen: screen, only: participant, .seconds(config.reconnectSeconds),
            onConnected: { [room = room.room] in Attendance.begin("view", in: room, as: $0) })
        let room = ConnectLive.createRoom(config: config, delegate: audience.guest)
        audience.enter(room, named: self.room.room)
        let status = Task {
            await StatusLine.run(news: RoomNews(incoming: { await room.statistics() })) {
                StatusLine.viewing(await room.statistics())
            }
        }
        let ended = await Result {
            try await audience.stay(until: interruption, seconds: length.seconds)
        }
        status.cancel()
        await status.value
        await screen.close()
        let measured = try write(audience.lastStatistics, screen)
        try ended.get()
        let isAudioEnough = audience.absence == nil && audience.lastStatistics.hasAudioAlone
        if let seconds = length.seconds, measured.framesRendered ?? 0 == 0, !isAudioEnough {
            let limitation = audience.lastStatistics.received.first { $0.limitation != nil }?.limitation
            throw CommandFailure(
                code: "view.nothing-rendered",
                "No frame was rendered in the room '\(self.room.room)' within \(seconds.formatted()) s. "
                    + (audience.absence.map { "\($0) Check --participant." }
                        ?? Self.advice(limitation)
                        ?? "Check that \(participant.map { "participant \($0)" } ?? "a participant") publishes video "
                        + "there."))
        }
        try checkSnapshot(screen)
    }

    /// One sentence if a link carries too little of the video that is there.
    static func advice(_ limitation: RoomStatistics.Received.Limitation?) -> String? {
        switch limitation?.cause {
        case .link?, .publisher(.network?)?:
            limitation.map {
                "There is video, but \($0). Publish it with fewer bits, for example with --codec vp8 or --layers 3."
            }
        default: nil
        }
    }

    /// Throws if there was no frame to write. A slate is none.
    private func checkSnapshot(_ screen: Screen) throws {
        guard let snapshot else { return }
        guard screen.snapshot == nil else {
            if let absence = screen.absence {
                Console.line("\(absence) \(snapshot) shows the last frame from before that.")
            }
            return
        }
        throw CommandFailure(
            code: "snapshot.missing",
            "The image \(snapshot) was not written: no video of the room \(room.room) showed its source. "
                + (screen.absence ?? "Check that a participant publishes video there."))
    }

    private func viewForever(_ interruption: Interruption) async throws {
        try server.checkAddress()
        let screen = try Screen(title: "Room \(room.room)", hasWindow: !noWindow)
        let view = LastingView(
            roomName: room.room, participant: participant, server: server, config: config, screen: screen,
            manager: await ServiceManager.connect())
        let end = await Result {
            try await view.lasting.until(interruption, seconds: length.seconds) { await view.run() }
        }
        await screen.close()
        try write(view.lastStatistics, screen)
        try end.get()
        try checkSnapshot(screen)
    }

    /// Writes the files that the command line names.
    @discardableResult
    private func write(_ statistics: RoomStatistics, _ screen: Screen) throws -> Report {
        let measured = Report(viewer: statistics)
        if let report { try measured.writeJSON(to: report) }
        if let snapshot, let frame = screen.snapshot { try FrameImage.write(frame, to: snapshot) }
        return measured
    }
}

extension RoomStatistics {
    /// Whether there is audio to hear, and no video to see.
    fileprivate var hasAudioAlone: Bool {
        !received.contains(where: \.isVideo) && received.contains { $0.packetsReceived > 0 }
    }
}
