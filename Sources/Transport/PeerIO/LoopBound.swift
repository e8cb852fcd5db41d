/// Carries a value that is not Sendable to its event loop and back to it, and traps when it is touched elsewhere.
///
/// `loop.execute { room.value.join() }` with `room: LoopBound<Room>`: the box may travel, the value stays.
package struct LoopBound<Value>: @unchecked Sendable {
    // Sendable by hand: the value is only reached through accessors that assert the loop. The last reference to it
    // may be dropped on another thread, so a value with a deinit that minds must be released by its owner on the loop.
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
