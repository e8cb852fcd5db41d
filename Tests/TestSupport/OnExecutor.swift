/// Runs parts of a test on an executor of the code, such as the thread of a loop. They stay parts of the test's task, so that
/// their failures count for the test.
public actor OnExecutor {
    public nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor

    public init(_ executor: any SerialExecutor) {
        self.executor = executor
        unownedExecutor = executor.asUnownedSerialExecutor()
    }

    public func run<Value: Sendable>(_ body: @Sendable () throws -> Value) rethrows -> Value { try body() }
}
