/// Carries a value that is not Sendable across threads and traps if it is used outside of its event loop.
///
/// `loop.execute { room.value.join() }` with `room: LoopBound<Room>`: the box moves, the value stays on the loop.
package struct LoopBound<Value>: @unchecked Sendable {
    // Sendable by hand: accessors assert the loop. The last reference may be released on another thread, so a value
    // whose deinit needs the loop must be released there by its owner.
    package let loop: EventLoop
    private let box: Box

    private final class Box {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    /// On the loop only.
    package init(_ value: Value, loop: EventLoop) {
        loop.preconditionOnLoop()
        self.loop = loop
        box = Box(value)
    }

    package var value: Value {
        get {
            loop.preconditionOnLoop()
            return box.value
        }
        nonmutating set {
            loop.preconditionOnLoop()
            box.value = newValue
        }
    }
}
