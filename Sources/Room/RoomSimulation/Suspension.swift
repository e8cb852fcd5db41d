/// A suspended task of an application.
final class Suspension {
    let number: Int
    private var continuation: CheckedContinuation<Void, any Error>?
    private unowned let world: World

    init(_ number: Int, _ continuation: CheckedContinuation<Void, any Error>, in world: World) {
        self.number = number
        self.continuation = continuation
        self.world = world
    }

    var isPending: Bool { continuation != nil }

    func resume() { take()?.resume() }

    func fail(_ error: any Error) { take()?.resume(throwing: error) }

    private func take() -> CheckedContinuation<Void, any Error>? {
        defer { continuation = nil }
        world.remove(self)
        return continuation
    }
}
