internal import ClientCore
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The applications of a room that make random calls, and the check of what they get.
// @unchecked: the tasks of a simulation run one at a time, on the thread that runs it.
final class CallingApplications: @unchecked Sendable {
    // Sendable by hand: used on the simulation's thread only.

    private static let room = "room"
    /// From the last call until everyone has what it wants.
    private static let settling = TimeInterval.seconds(12)
    /// For how long a viewer shows the frames that were on their way when it paused: repairs and its playout delay included.
    private static let lateFrames = TimeInterval.milliseconds(1500)

    private let options: RandomCalls
    private unowned let simulation: World
    private let deliveries: DeliveryCheck
    private let applications: [CallingApplication]
    private var random: RandomSource
    /// The calls that have not returned.
    private(set) var pending: [String] = []
    /// Of the present round, for failures.
    private var round: [String] = []
    /// Streams that their publishers ended in this round, which calls of others may meet.
    private var ended: Set<Int> = []
    /// The audio streams that are sent to everyone, and when others last were.
    private var audible: Set<Int> = []
    private var silenced: [Int: MonotonicTime] = [:]
    private(set) var made = 0
    private(set) var overtaken = 0
    private(set) var longestSettling = TimeInterval.zero
    private(set) var hasEnded = false

    init(_ options: RandomCalls, seed: UInt64, _ deliveries: DeliveryCheck, in simulation: World) {
        self.options = options
        self.deliveries = deliveries
        self.simulation = simulation
        var random = RandomSource(seed: seed ^ 0xca11)
        applications = (0..<options.clients).map { number in
            let link = options.links[Int.random(in: 0..<options.links.count, using: &random)]
            let client = simulation.client("client \(number)", link: link)
            client.receivers = ReceiverPool(
                initial: Int.random(in: 0...2, using: &random), maximum: options.watched,
                growth: Int.random(in: 1...2, using: &random))
            return CallingApplication(client)
        }
        self.random = random
    }

    func run() async throws {
        for application in applications { join(application) }
        try await settle()
        for _ in 0..<options.rounds {
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                makeCall(of: applications[Int.random(in: 0..<applications.count, using: &random)])
                try await simulation.sleep(for: .milliseconds(Int64.random(in: 0...80, using: &random)))
            }
            try await settle()
        }
        for application in applications where application.isInside { leave(application) }
        try await settle()
        if let problem = simulation.remains { fail(problem) }
        hasEnded = true
    }

    private func fail(_ problem: String) { simulation.fail("\(problem) After: \(round.joined(separator: ", ")).") }

    // MARK: - Calls

    private func makeCall(of application: CallingApplication) {
        guard !application.isBusy else { return }
        guard application.isInside else { return join(application) }
        switch Int.random(in: 0..<100, using: &random) {
        case ..<4: leave(application)
        case ..<14: publishVideo(application)
        case ..<20: publishAudio(application)
        case ..<28: unpublish(application)
        case ..<36: change(application)
        case ..<60: subscribe(application)
        case ..<75: unsubscribe(application)
        case ..<90: setPaused(application)
        default: setProfile(application)
        }
    }

    /// Starts a call.
    ///
    /// - Parameter stream: one that others may end meanwhile, so that the call fails
    private func start(
        _ name: String, of application: CallingApplication, on stream: Int? = nil,
        _ call: @escaping @Sendable () async throws -> Void
    ) {
        let name = "\(application.client.name) \(name)"
        made += 1
        round.append(name)
        pending.append(name)
        updateDeliveries()
        simulation.task(name) { [self] in
            defer { if let index = pending.firstIndex(of: name) { pending.remove(at: index) } }
            do {
                try await call()
            } catch {
                guard let stream, ended.contains(stream) || !isPublished(stream) else { throw error }
                overtaken += 1
            }
            updateDeliveries()
        }
    }

    private func join(_ application: CallingApplication) {
        (application.isInside, application.isBusy, application.hasPublished) = (true, true, false)
        start("joins", of: application) {
            try await application.client.join(Self.room)
            application.isBusy = false
        }
    }

    private func leave(_ application: CallingApplication) {
        guard !application.isBusy else { return }
        (application.isInside, application.isBusy) = (false, true)
        ended.formUnion(application.published.keys)
        // Its own calls fail, too.
        ended.formUnion(application.views.keys)
        (application.videos, application.audios, application.views) = ([:], [:], [:])
        application.left = simulation.loop.now
        start("leaves", of: application) {
            try await application.client.leave()
            application.isBusy = false
        }
    }

    private func publishVideo(_ application: CallingApplication) {
        guard application.videos.count < 2 else { return }
        guard application.layered == nil else { return }
        // A browser has an up session of its own.
        let isLayered = !application.hasPublished && Bool.random(using: &random)
        (application.isBusy, application.hasPublished) = (true, true)
        let isHD = Bool.random(using: &random)
        start(isLayered ? "publishes layers" : "publishes a video", of: application) {
            let stream =
                if isLayered {
                    try await application.client.publish(layers: Self.layers)
                } else {
                    try await application.client.publish(
                        VideoFormat(
                            framesPerSecond: 10, packetsPerFrame: isHD ? 3 : 1, packetsPerKeyframe: isHD ? 8 : 2))
                }
            application.videos[stream] = StreamAttributes()
            application.isBusy = false
        }
    }

    private static let layers = [
        VideoLayer(width: 160, height: 90, payload: 60), VideoLayer(width: 320, height: 180, payload: 150),
        VideoLayer(width: 640, height: 360, packetsPerFrame: 2, payload: 200),
    ].map { layer in
        // As Chromium.
        var layer = layer
        layer.hasCaptureTimes = true
        return layer
    }

    private func publishAudio(_ application: CallingApplication) {
        guard application.audios.count < 2, application.layered == nil else { return }
        (application.isBusy, application.hasPublished) = (true, true)
        start("publishes audio", of: application) {
            let stream = try await application.client.publishAudio()
            application.audios[stream] = StreamAttributes()
            application.isBusy = false
        }
    }

    private func unpublish(_ application: CallingApplication) {
        guard application.layered == nil, let stream = any(application.published.keys) else { return }
        application.videos[stream] = nil
        application.audios[stream] = nil
        ended.insert(stream)
        start("unpublishes \(stream)", of: application) { try await application.client.unpublish(stream) }
    }

    /// Mutes, or changes another attribute.
    private func change(_ application: CallingApplication) {
        guard application.layered == nil, let stream = any(application.published.keys) else { return }
        let change =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: StreamChange(sort: "\(Int.random(in: 0...9, using: &random)) fit")
            case 1: StreamChange(extraValue: "\(Int.random(in: 0...9, using: &random))")
            default: StreamChange(isActive: .random(using: &random))
            }
        application.videos[stream]?.apply(change)
        application.audios[stream]?.apply(change)
        start("changes \(stream)", of: application) { application.client.change(stream, change) }
    }

    private func subscribe(_ application: CallingApplication) {
        let known = application.client.streams.filter(\.isVideo).map(\.id)
        guard application.views.count < options.watched,
            let stream = any(known.filter { application.views[$0] == nil })
        else { return }
        let view = StreamView(isPaused: Int.random(in: 0..<8, using: &random) == 0)
        application.views[stream] = view
        start("subscribes to \(stream)", of: application, on: stream) {
            try await application.client.subscribe(to: stream, view)
        }
    }

    private func unsubscribe(_ application: CallingApplication) {
        guard let stream = any(application.views.keys) else { return }
        application.views[stream] = nil
        start("unsubscribes from \(stream)", of: application, on: stream) {
            try await application.client.unsubscribe(from: stream)
        }
    }

    private func setPaused(_ application: CallingApplication) {
        guard let stream = any(application.views.keys), var view = application.views[stream] else { return }
        view.isPaused.toggle()
        set(view, of: stream, application, view.isPaused ? "pauses" : "resumes")
    }

    private func setProfile(_ application: CallingApplication) {
        let layered = application.views.keys.filter { simulation.camera(of: $0) != nil }
        guard let stream = any(layered), var view = application.views[stream] else { return }
        view.profile = [.low, .mid, .high][Int.random(in: 0..<3, using: &random)]
        set(view, of: stream, application, "sets the profile of")
    }

    private func set(_ view: StreamView, of stream: Int, _ application: CallingApplication, _ verb: String) {
        application.views[stream] = view
        application.changes[stream] = simulation.loop.now
        start("\(verb) \(stream)", of: application, on: stream) {
            try await application.client.setView(view, of: stream)
        }
    }

    /// The keys of a dictionary have another order in each process.
    private func any(_ streams: some Collection<Int>) -> Int? {
        let sorted = streams.sorted()
        return sorted.isEmpty ? nil : sorted[Int.random(in: 0..<sorted.count, using: &random)]
    }

    // MARK: - What everyone gets

    private var present: [CallingApplication] { applications.filter(\.isInside) }

    private func isPublished(_ stream: Int) -> Bool { present.contains { $0.published[stream] != nil } }

    private func updateDeliveries() {
        let now = simulation.loop.now
        let active = Set(present.flatMap { $0.audios.filter(\.value.isActive).keys })
        for stream in audible.subtracting(active) { silenced[stream] = now }
        audible = active
        var wanted: Set<DeliveryCheck.Delivery> = []
        var ending: [DeliveryCheck.Delivery: MonotonicTime] = [:]
        for application in applications {
            func delivery(of stream: Int) -> DeliveryCheck.Delivery {
                .init(client: application.client.number, stream: stream)
            }
            for (stream, view) in application.views where !view.isPaused { wanted.insert(delivery(of: stream)) }
            let heard = audible.subtracting(application.audios.keys)
            if application.isInside {
                wanted.formUnion(heard.map(delivery))
            } else {
                for stream in heard { ending[delivery(of: stream)] = application.left + DeliveryCheck.grace }
            }
            for (stream, end) in silenced where application.isInside {
                ending[delivery(of: stream)] = end + DeliveryCheck.grace
            }
        }
        deliveries.want(wanted, ending: ending, now: now)
    }

    /// Returns when everyone has what it wants.
    private func settle() async throws {
        let last = simulation.loop.now
        while !pending.isEmpty { try await simulation.sleep(for: .milliseconds(20)) }
        for application in present {
            for stream in application.views.keys where !isPublished(stream) { application.views[stream] = nil }
        }
        updateDeliveries()
        // A frame that is shown from now on counts, and nothing that is not wanted is sent any longer.
        let returned = simulation.loop.now
        try await simulation.sleep(for: DeliveryCheck.grace + .milliseconds(200))
        while let problem = problem(since: returned) {
            guard simulation.loop.now < last + Self.settling else { return fail(problem) }
            try await simulation.sleep(for: .milliseconds(20))
        }
        longestSettling = max(longestSettling, simulation.loop.now - last)
        round = []
        ended = []
    }

    private func problem(since returned: MonotonicTime) -> String? {
        for application in present {
            if let problem = problem(of: application, since: returned) { return problem }
        }
        return simulation.leak
    }

    private func problem(of application: CallingApplication, since returned: MonotonicTime) -> String? {
        let client = application.client
        guard client.isConnected else { return "\(client.name) is in no room: \(client.endError ?? "no error")." }
        let others = present.filter { $0 !== application }
        let published = others.reduce(into: [:]) { $0.merge($1.published) { first, _ in first } }
        let known = Dictionary(client.streams.map { ($0.id, $0.attributes) }) { first, _ in first }
        guard known == published else {
            return "\(client.name) knows \(known) instead of \(published)."
        }
        guard client.watched.sorted() == application.views.keys.sorted() else {
            return "\(client.name) watches \(client.watched.sorted()) instead of \(application.views.keys.sorted())."
        }
        let audible = Set(others.flatMap { $0.audios.filter(\.value.isActive).keys })
        guard audible.isSuperset(of: client.heard), client.heard.count == min(DownDescription.audioSlots, audible.count)
        else { return "\(client.name) hears \(client.heard.sorted()) of \(audible.sorted())." }
        for viewer in client.viewers where !viewer.isEnded {
            guard let view = application.views[viewer.stream] else { continue }
            let isShown = viewer.lastShown.map { $0 > returned } ?? false
            if view.isPaused {
                let paused = application.changes[viewer.stream] ?? returned
                if let last = viewer.lastShown, last > paused + Self.lateFrames {
                    return "\(client.name) shows paused stream \(viewer.stream)."
                }
            } else if !isShown {
                return viewer.description + "."
            } else if let layer = viewer.layer, layer > CallingApplication.bestLayer(view) {
                return "\(client.name) gets layer \(layer) of stream \(viewer.stream), which is above its profile."
            }
        }
        for listener in client.listeners where !listener.isEnded && listener.lastHeard ?? .zero <= returned {
            return "\(client.name) hears no packet of stream \(listener.stream)."
        }
        return nil
    }
}
