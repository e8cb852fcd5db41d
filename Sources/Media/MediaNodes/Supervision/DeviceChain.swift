import GStreamerKit
import MediaGraph
import Synchronization

/// The elements between a device and its node, in a pipeline of their own: no state of the graph depends on a driver.
final class DeviceChain: Sendable {
    /// The state of a chain, as far as it decides about errors.
    private final class Fault: Sendable {
        private struct State {
            var error: MediaError?
            var isOpen = false
            var isFed = false
        }

        private let state = Mutex(State())
        private let output: SourceOutput
        private let explain: @Sendable (PipelineFailure, Bool) -> MediaError

        init(_ output: SourceOutput, _ explain: @escaping @Sendable (PipelineFailure, Bool) -> MediaError) {
            (self.output, self.explain) = (output, explain)
        }

        func feed() { state.withLock { $0.isFed = true } }

        func report(_ failure: PipelineFailure) {
            let error = explain(failure, state.withLock { $0.isFed })
            let isOpen = state.withLock { state in
                state.error = state.error ?? error
                return state.isOpen
            }
            if isOpen { output.fail(error) }
        }

        /// Errors are failures of an open device from now on. Returns one that came before.
        func open() -> MediaError? {
            state.withLock { state in
                state.isOpen = true
                return state.error
            }
        }
    }

    let pipeline: Pipeline
    private let elements: [String: Element]
    private let fault: Fault

    /// Makes the elements. Those of the plan's outputs feed `output`, in the order of the outputs; without outputs, the
    /// last element does. A last element without an output, which renders, tells `output` of the media that it takes.
    ///
    /// - Parameters:
    ///   - requested: called if an element asks that the chain plays (true) or not, on any thread.
    ///   - explain: the error for a failure of an element, on any thread. The flag is true once media has come.
    init(
        _ plan: DevicePlan, named prefix: String, on clock: PipelineClock, for output: SourceOutput,
        requested: @escaping @Sendable (Bool) -> Void = { _ in },
        explain: @escaping @Sendable (PipelineFailure, Bool) -> MediaError
    ) throws(MediaError) {
        let fault = Fault(output, explain)
        self.fault = fault
        pipeline = Pipeline(clock: clock) { message in
            switch message {
            case .error(let failure): fault.report(failure)
            case .stateRequested(let isPlaying): requested(isPlaying)
            case .endOfStream, .warning, .missingPlugin, .latencyChanged: break
            }
        }
        var elements: [String: Element] = [:]
        for element in plan.elements {
            elements[element.name] = try Element(
                element.factory, name: "\(prefix).\(element.name)", element.properties)
        }
        self.elements = elements
        for element in elements.values { pipeline.add(element) }
        for link in plan.links {
            guard let from = elements[link.from.element], let to = elements[link.to.element] else { continue }
            try from.link(to)
        }
        let ends = plan.outputs.isEmpty ? [plan.elements.last?.name ?? ""] : plan.outputs
        for (track, name) in ends.enumerated() {
            guard let last = elements[name] else { preconditionFailure("a device without elements") }
            guard last.pad("src") != nil else {
                Self.watch(last, fault, output)
                continue
            }
            let end = try Element("fakesink", name: "\(prefix).end-\(name)", NodePlan.sinkProperties)
            pipeline.add(end)
            try last.link(end)
            end.sink.takeBuffers { buffer, time in
                fault.feed()
                _ = output.deliver(buffer, time, track)
            }
        }
    }

    /// Reports each buffer that a sink has taken: the next one comes then.
    private static func watch(_ sink: Element, _ fault: Fault, _ output: SourceOutput) {
        let isFed = AtomicBool()
        sink.sink.watchBuffers { _ in
            guard isFed.exchange(true) else { return }
            fault.feed()
            output.takes()
        }
    }

    /// Starts the elements. Blocks if a driver does. Throws the first error of an element.
    ///
    /// - Parameter elapsed: how much running time has passed already, in nanoseconds.
    func play(elapsed: UInt64 = 0) throws(MediaError) {
        let isPlaying = pipeline.play(elapsed: elapsed)
        // An error on a streaming thread may have come before.
        if let error = fault.open() { throw error }
        if !isPlaying {
            throw MediaError(code: MediaError.Code.elementFailed, message: "The device did not start.")
        }
    }

    /// The encoder behind a device that does not encode. Nil without one.
    var encoder: Element? { elements["encoder"] }

    /// An element of the plan. Traps if the plan has none of this name.
    func element(_ name: String) -> Element {
        guard let element = elements[name] else { preconditionFailure("the device has no element \(name)") }
        return element
    }
}

/// The chain of a device while the device is open.
final class OpenChain: Sendable {
    private let state = Mutex<DeviceChain?>(nil)

    func hold(_ chain: DeviceChain) { state.withLock { $0 = chain } }

    /// Stops the chain, if there is one, and forgets it. Blocks if a driver does.
    func close() {
        let chain = state.withLock { chain in
            defer { chain = nil }
            return chain
        }
        chain?.pipeline.stop()
    }
}
