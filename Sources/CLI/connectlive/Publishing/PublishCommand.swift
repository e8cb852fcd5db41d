internal import ArgumentParser
internal import Cameras
internal import ConnectLiveSDK
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol

struct PublishCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish", abstract: "Publish a camera, a file or the test pattern to a room.")

    @OptionGroup var room: RoomFlag
    @OptionGroup var source: SourceFlags
    @OptionGroup var encoding: EncodingFlags
    @OptionGroup var server: ServerFlags
    @OptionGroup var network: NetworkFlags

    @Option(help: "Write the measured values since the newest entry into the room to this JSON file at the end.")
    var report: String?

    @OptionGroup var length: SecondsFlag

    @Flag(help: "Let the server record the streams, if it runs with --recordings.") var record = false

    @Flag(
        help: ArgumentHelp(
            "Never give up: wait for devices that are not plugged in and for the server, and join again after each end, "
                + "unless an administrator ended it. A service manager such as systemd learns the state."))
    var forever = false

    func validate() throws {
        var unused: [String] = []
        if source.file != nil {
            if encoding.size != nil { unused.append("--size") }
            if encoding.fps != nil { unused.append("--fps") }
        }
        if source.chosenCamera == nil {
            if source.mic != nil { unused.append("--mic") }
            if source.controls != nil { unused.append("--controls") }
        }
        guard let last = unused.popLast() else { return }
        let names = unused.isEmpty ? last : unused.joined(separator: ", ") + " and " + last
        throw ValidationError(
            "Leave out \(names): \(source.name) does not use \(unused.isEmpty ? "it" : "them").")
    }

    func run() async throws {
        if let report { try OutputFile.check(report) }
        var config = Config()
        network.apply(to: &config)
        network.tryRelays()
        config.reconnectSeconds = room.reconnectSeconds
        source.apply(to: &config.mediaOptions)
        encoding.apply(to: &config.mediaOptions)
        let choice = choice
        var isAdapted = true
        let interruption = Interruption()
        if let choice {
            // Opening a camera blocks.
            let answer = try await interruption.unlessSignalled { [options = config.mediaOptions] in
                try await offPoolInTime("The choice of the camera's settings") { () throws(MediaError) in
                    choice.adapted(options)
                }
            }
            guard let found = answer else { return }
            if let found {
                config.mediaOptions = found.options
                if choice.size == nil { Console.line(found.sentence) }
            }
            isAdapted = found != nil
        }
        let larger = try await interruption.unlessSignalled { [options = config.mediaOptions] in
            try await enlargement(options)
        }
        guard let larger else { return }
        if let larger { Console.line(larger) }
        if forever { return try await publishForever(config, isAdapted ? nil : choice, interruption) }
        config.mediaOptions.needsCamera = source.chosenCamera != nil
        // Open the file or the camera before anything appears in the room.
        guard let media = try await LocalSource.start(config, until: interruption) else { return }
        do {
            try await server.signIn(waiting: ServerFlags.waitsForever)
            try await publish(media, config, interruption)
        } catch {
            await media.stop()
            throw error
        }
        await media.stop()
    }

    /// One sentence if `--size` is larger than every mode of the camera.
    private func enlargement(_ options: LocalMediaOptions) async throws -> String? {
        guard let camera = source.chosenCamera, let size = encoding.size else { return nil }
        let mayPass = options.videoCodec != .vp8 && options.videoBitrate == nil
        return try await offPoolInTime("The choice of the camera's settings") {
            [fps = encoding.fps] () throws(MediaError) in
            CaptureChoice.enlargement(
                of: camera, to: FrameSize(size.width, size.height), framesPerSecond: fps, mayPass: mayPass)
        }
    }

    /// Settings that the command line leaves open. Nil if there are none.
    private var choice: OpenSettings? {
        guard let camera = source.chosenCamera, encoding.size == nil || encoding.fps == nil else { return nil }
        let size = encoding.size.map { FrameSize($0.width, $0.height) }
        return OpenSettings(camera: camera, size: size, framesPerSecond: encoding.fps)
    }

    private func publishForever(
        _ config: Config, _ choice: OpenSettings?, _ interruption: Interruption
    ) async throws {
        try server.checkAddress()
        Console.neverBlock()
        var config = config
        config.mediaOptions.waitsForDevices = true
        let manager = await ServiceManager.connect()
        guard let media = try await LocalSource.start(config, adaptingTo: choice, until: interruption) else { return }
        let publication = LastingPublication(
            roomName: room.room, server: server, config: config, choice: choice, isRecorded: record, manager: manager)
        let end = await Result {
            try await publication.lasting.until(interruption, seconds: length.seconds) { await publication.run(media) }
        }
        try write(publication.lastStatistics)
        try end.get()
    }

    /// Writes the file that the command line names.
    private func write(_ statistics: RoomStatistics) throws {
        if let report { try Report(publisher: statistics).writeJSON(to: report) }
    }

    private func publish(_ media: any LocalMedia, _ config: Config, _ interruption: Interruption) async throws {
        let roomName = room.room
        let guest = Guest(.seconds(config.reconnectSeconds), endsOnProblem: true) {
            Attendance.begin("publish", in: roomName, as: $0)
        }
        let room = ConnectLive.createRoom(config: config, delegate: guest)
        guest.enter(room, named: roomName)
        try room.publish(media, record)
        let status = Task {
            await StatusLine.run(
                news: RoomNews(outgoing: { await room.statistics() }, layers: config.mediaOptions.videoLayers)
            ) {
                StatusLine.publishing(await room.statistics(), media.video.state)
            }
        }
        defer { status.cancel() }
        let end = await Result {
            try await Attendance.until(interruption, seconds: length.seconds, [guest], leaving: room)
        }
        try write(await room.statistics())
        try end.get()
    }
}

/// The settings that the command line leaves open, for the camera to decide.
struct OpenSettings: Sendable {
    let camera: String
    let size: FrameSize?
    let framesPerSecond: Int?

    /// The options for the camera, and one line about them. Nil for a camera that is not plugged in, which gets the settings
    /// of `Config`. Blocks up to 2 s.
    ///
    /// - Parameter isLate: whether a slate is published already. Its codec stays, so H.264 of the camera does not decide.
    func adapted(
        _ options: LocalMediaOptions, isLate: Bool = false
    ) -> (options: LocalMediaOptions, sentence: String)? {
        let mayPass = !isLate && options.videoCodec != .vp8 && options.videoBitrate == nil
        let best = CaptureChoice.of(camera, size: size, framesPerSecond: framesPerSecond, mayPass: mayPass)
        guard best != nil || isOfLibrary else { return nil }
        var options = options
        let chosen = best.map { FrameSize($0.width, $0.height) } ?? CaptureChoice.usualSize
        if size == nil { (options.videoWidth, options.videoHeight) = (chosen.width, chosen.height) }
        let rate = best?.framesPerSecond ?? CaptureChoice.usualRate
        // H.264 that is faster passes at its own rate.
        if framesPerSecond == nil, best?.passing == nil || rate <= 60 { options.videoFPS = min(rate, 60) }
        return (options, best?.sentence ?? CaptureChoice.sentenceOfLibraryCamera)
    }

    /// Whether the camera is one of libcamera, as far as can be told without opening it.
    private var isOfLibrary: Bool {
        if camera == CameraSystem.any { return !Devices.libraryCameras().isEmpty }
        return Devices.hasLibCamera && (camera == "libcamera" || camera.hasPrefix("libcamera:"))
    }
}

/// Local media that has started.
enum LocalSource {
    /// Starts media. Returns nil if a signal comes before that has succeeded; no device is open then.
    static func start(
        _ config: Config, adaptingTo choice: OpenSettings? = nil, until interruption: Interruption
    ) async throws -> (any LocalMedia)? {
        let media = try make(config, adaptingTo: choice)
        if try await interruption.unlessSignalled({ try await begin(media) }) != nil { return media }
        await media.stop()
        return nil
    }

    /// - Parameter choice: settings for a camera that arrives later.
    static func start(_ config: Config, adaptingTo choice: OpenSettings? = nil) async throws -> any LocalMedia {
        let media = try make(config, adaptingTo: choice)
        try await begin(media)
        return media
    }

    private static func make(_ config: Config, adaptingTo choice: OpenSettings?) throws -> any LocalMedia {
        guard let media = ConnectLive.createLocalMedia(config: config) else {
            throw CommandFailure(
                code: "setting.invalid",
                "There is neither video nor audio to publish. Choose a source that has one.")
        }
        if let capture = media.localCapture {
            capture.observe(
                as: capture, failed: { _ in },
                // An application has no flags, so the message of the SDK names none.
                warning: {
                    Console.error(
                        $0.replacing(
                            "To wait for a microphone, name it.", with: "To wait for a microphone, pass --mic NAME."))
                },
                device: { [weak media] kind, event in
                    guard let choice, kind == .video, case .deviceReturned = event else { return }
                    Task.detached {
                        try? await media?.update { options in
                            if let found = choice.adapted(options, isLate: true) { options = found.options }
                        }
                    }
                })
        }
        return media
    }

    /// Starts media, until the task is cancelled.
    private static func begin(_ media: any LocalMedia) async throws {
        do {
            try await withTaskCancellationHandler {
                try await media.start()
            } onCancel: {
                Task { await media.stop() }
            }
        } catch let error as ConnectLiveError {
            throw Failure(code: error.code, error.errorDescription ?? "\(error)")
        }
    }
}
