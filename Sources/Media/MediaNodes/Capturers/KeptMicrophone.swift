import GStreamerKit
import MediaGraph
import Synchronization

/// A microphone node. It goes on, with silence, while its microphone or sound server is away, unless its settings end it then.
struct KeptMicrophone: HeadedNode {
    let head: SourceHead?

    init(_ instance: NodeInstance) {
        var limits = SourceSupervisor.Limits()
        // Each attempt asks `SoundRetries`. Audio that was kept during a stall arrives late, and is not lost.
        limits.quiet = 0.5
        // Not a low rate: silence has no gaps.
        limits.fill = 0.02
        head = SourceHead(
            instance, MicrophoneDevice(instance), [.init(port: "audio", standIn: .silence(.raw))],
            withoutDevice: instance.text("away") == "end" ? .ends : .goesOn, limits: limits)
    }
}

/// The microphone of a node, bound when it is opened.
private final class MicrophoneDevice: SourceDevice {
    private let former: Mutex<FormerSound>
    private let opened = OpenChain()
    private let node: Node
    private let name: String
    private let prefix: String
    private let clock: PipelineClock

    init(_ instance: NodeInstance) {
        node = instance.node
        name = SoundName.of(instance)
        prefix = instance.prefix
        clock = instance.pipeline.clock
        former = Mutex(FormerSound(instance.plan.device))
    }

    func name(of candidate: Int) -> String { name }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        var machine = SystemEnvironment()
        machine.retriesSound = true
        let request = NodeRequest(node, MicrophoneNode.kind, usedOutputs: ["audio"], environment: machine)
        let choice = try MicrophoneNode.Choice(request, after: former.withLock { $0 })
        var plan = DevicePlan(name: name, wish: "")
        plan.take(choice.plan)
        let chain = try DeviceChain(plan, named: prefix, on: clock, for: output) { [name] failure, isFed in
            MicrophoneNode.explain(failure, of: name, choice.former.system, isFed: isFed)
        }
        // The default may become a Bluetooth microphone.
        let accepts: (@Sendable (String) -> Bool)? =
            request.flag("bluetooth") ? nil : { @Sendable in !AudioDevice.isBluetooth($0) }
        let stream = SoundStream(chain.element("source"), device: choice.device, accepts: accepts) { [name] in
            output.fail(MicrophoneNode.lost(name, nil))
        }
        MicrophoneNode.stamp(chain.element("source"), of: chain.pipeline) { stream.count() }
        opened.hold(chain)
        try chain.play()
        former.withLock { $0 = choice.former }
    }

    func close() { opened.close() }

    /// A sound server that still responds says nothing about a microphone that is silent.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.microphoneAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        MicrophoneNode.lost(name, former.withLock { $0.system })
    }
}
