internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph
internal import Synchronization

/// Joins a room again after each end of the connection, until its task is cancelled. The service manager learns the state.
final class LastingStay: Sendable {
    private static let statusInterval = Duration.seconds(5)
    /// Between the lines of a program that writes to a file, after the first one.
    private static let plainInterval = Duration.seconds(60)
    private static let newsInterval = Duration.milliseconds(500)

    private let manager: ServiceManager?
    /// The room of the present stay.
    let present = Mutex<(any Room)?>(nil)
    /// When the present stay began. Nil before the room has accepted this participant.
    private let entered = Mutex<ContinuousClock.Instant?>(nil)
    private let hasEverEntered = Mutex(false)

    init(_ manager: ServiceManager?) {
        self.manager = manager
        Console.neverBlock()
    }

    /// - Parameters:
    ///   - attempt: joins the room, and returns at its end or at that of the task. Throws the cause if it was an error.
    ///   - finish: called at the end, when the manager knows about it.
    /// - Returns: why it does not join again, although its task goes on
    @discardableResult
    func run(_ attempt: () async throws -> Void, finish: () async -> Void) async -> Failure? {
        await manager?.ready()
        let signsOfLife = Task { await giveSignsOfLife() }
        defer { signsOfLife.cancel() }
        var delay = RejoinDelay()
        var random = SystemRandomNumberGenerator()
        var verdict: Failure?
        while !Task.isCancelled {
            entered.withLock { $0 = nil }
            var problem = "The room ended."
            do {
                try await attempt()
            } catch let failure as Failure where failure.isFinal {
                verdict = failure
                break
            } catch {
                problem = "\(error)"
            }
            guard !Task.isCancelled else { break }
            let stay = entered.withLock { $0 }.map { .now - $0 } ?? .zero
            let pause = delay.after(stay: stay, using: &random)
            await say("\(problem) The next attempt is in \(Int((pause / .seconds(1)).rounded())) s.")
            try? await Task.sleep(for: pause)
        }
        await manager?.stopping()
        await finish()
        return verdict
    }

    /// The room has accepted this participant.
    func hasEntered() {
        entered.withLock { $0 = .now }
        hasEverEntered.withLock { $0 = true }
    }

    /// Runs `body` while the command is in a room, and shows the room's state in one line meanwhile.
    ///
    /// - Parameter news: gets lines of their own
    func present<Value>(
        in room: any Room, news: RoomNews, status: @escaping @Sendable () async -> String,
        _ body: () async throws -> Value
    ) async throws -> Value {
        present.withLock { $0 = room }
        let tasks = [Task { await report(status) }, Task { await Self.tell(news) }]
        defer {
            for task in tasks { task.cancel() }
            present.withLock { $0 = nil }
        }
        return try await body()
    }

    private static func tell(_ news: RoomNews) async {
        while (try? await Task.sleep(for: newsInterval)) != nil { await news.tell() }
    }

    private func report(_ status: @escaping @Sendable () async -> String) async {
        if Console.isTerminal { return await StatusLine.run { await status() } }
        var pause = Self.statusInterval
        while (try? await Task.sleep(for: pause)) != nil {
            guard let manager else {
                Console.line(await status())
                pause = Self.plainInterval
                continue
            }
            await manager.status(await status())
        }
    }

    /// Runs a stay until a signal, the time, or its own end. Throws the reason of its own end, and if the time ends before a room
    /// was entered.
    func until(
        _ interruption: Interruption, seconds: Double?, _ stay: @escaping @Sendable () async -> Failure?
    ) async throws {
        let verdict = await withTaskGroup(of: (any Error)?.self) { group in
            group.addTask { await stay() }
            group.addTask { [self] in
                let isTimeUp = await interruption.wait(seconds: seconds)
                guard isTimeUp, let seconds, !hasEverEntered.withLock({ $0 }) else { return nil }
                return Attendance.notEntered(within: seconds)
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            // The stay finishes its work.
            for await _ in group {}
            return first
        }
        if let verdict { throw verdict }
    }

    /// Notifies the service manager until the task is cancelled, and not while the thread of all transport hangs.
    func giveSignsOfLife() async {
        guard let manager, let watchdog = manager.watchdog else { return }
        repeat {
            // The response comes from the thread of all transport.
            _ = await present.withLock { $0 }?.statistics()
            await manager.isAlive()
        } while (try? await Task.sleep(for: watchdog / 2)) != nil
    }

    /// Tells the user and the service manager about the connection.
    func note(_ text: String) {
        Console.error(text)
        if let manager { Task { await manager.status(text) } }
    }

    private func say(_ text: String) async {
        Console.error(text)
        await manager?.status(text)
    }
}
