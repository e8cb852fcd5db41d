internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import Synchronization

/// The problems of a valid graph that `connectlive plan` would find without any device: formats that do not match,
/// settings that do not fit the frames, missing files and programs.
struct DevicelessCheck {
    /// The first problem of the graph itself; nil if there is none.
    let problem: MediaError?
    /// The obstacles on this machine, such as a missing file. The graph may run on another one.
    let obstacles: [MediaError]
    /// One sentence for each part that is probably wrong.
    let warnings: [String]

    /// Blocks up to 5 s for a media file that is slow to read. Opens no device.
    init(_ graph: MediaGraph) {
        let catalogue = Catalogue()
        var refusal: MediaError?
        var plan: GraphPlan?
        do throws(MediaError) {
            plan = try Planner(catalogue, Environment()).plan(graph)
        } catch {
            refusal = error
        }
        warnings = plan?.sharedCameras ?? []
        let assumed = catalogue.assumed.withLock { $0 }
        // The formats downstream of a device are unknown.
        let settled = graph.settled(with: catalogue)
        if let node = refusal?.node, !settled.upstream(of: node).isDisjoint(with: assumed.keys) { refusal = nil }
        let reasons = graph.nodes.compactMap { $0.isOptional ? nil : assumed[$0.name] } + [refusal].compactMap(\.self)
        problem = refusal.flatMap { Cause($0) == .graph ? $0 : nil }
        obstacles = reasons.filter { Cause($0) == .machine }
    }

    /// The cause of a refusal.
    private enum Cause {
        case graph
        /// A file, program or element that another machine may have.
        case machine
        case device

        init(_ error: MediaError) {
            self =
                switch error.code.split(separator: ".").first ?? "" {
                case "camera", "microphone", "speaker", "screen", "rtsp", "window": .device
                case "file" where error.code != MediaError.Code.fileConflict: .machine
                case "process", "element": .machine
                default: .graph
                }
        }
    }

    /// The kinds of nodes. A node that cannot run here gets a plan without elements.
    private final class Catalogue: PlanningCatalogue {
        /// The nodes with such a plan, and the reasons.
        let assumed = Mutex<[String: MediaError]>([:])
        private let registry = KnownNodes.registry

        var kinds: [NodeKind] { registry.kinds }
        func kind(named name: String) -> NodeKind? { registry.kind(named: name) }
        func reasonForLack(of name: String) -> String? { registry.reasonForLack(of: name) }
        func isLacking(_ name: String) -> Bool { registry.isLacking(name) }
        func otherFiles(writtenBy node: Node) -> [String] { registry.otherFiles(writtenBy: node) }
        func input(
            _ port: String, of node: Node, running: NodePlan?, on environment: any PlanEnvironment
        ) -> Port? {
            registry.input(port, of: node, running: running, on: environment)
        }
        func output(repeating input: String, of node: Node) -> String? {
            registry.output(repeating: input, of: node)
        }

        func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
            do throws(MediaError) {
                // Planning a plugin's node runs the plugin's code.
                guard RoomNodes.registry.kind(named: request.node.kind) != nil else { throw Environment.unknown }
                return try registry.plan(request)
            } catch {
                if Cause(error) == .graph { throw error }
                assumed.withLock { $0[request.name] = error.about(request.name) }
                var plan = NodePlan(request.node)
                for output in request.usedOutputs {
                    plan.formats[output] = request.kind.output(output)?.someFormat ?? .rawVideo()
                }
                return plan
            }
        }
    }

    /// This machine without its devices.
    private struct Environment: PlanEnvironment {
        private let system = SystemEnvironment()
        /// The answer for every device.
        static let unknown = MediaError(code: MediaError.Code.cameraAbsent, message: "No device is queried.")

        func hasElement(_ factory: String) -> Bool { system.hasElement(factory) }
        func canOpen(_ factory: String) -> Bool { system.hasElement(factory) }
        func package(ofElement factory: String) -> String { system.package(ofElement: factory) }
        func reasonForLack(ofElement factory: String) -> String { system.reasonForLack(ofElement: factory) }
        func file(_ path: String) throws(MediaError) -> MediaFileInfo { try system.file(path) }
        func obstacle(toReading path: String) -> String? { system.obstacle(toReading: path) }
        func obstacle(toShowing path: String) -> String? { system.obstacle(toShowing: path) }
        func obstacle(toWriting path: String) -> String? { system.obstacle(toWriting: path) }
        func fileIdentity(_ path: String) -> String? { system.fileIdentity(path) }
        func program(_ name: String) -> String? { system.program(name) }
        func camera(_ device: String) throws(MediaError) -> CameraChoice { throw Self.unknown }
        func windowSink() -> String? { nil }
        func soundSink() -> String? { nil }
        func soundSource() -> String? { nil }
        func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
    }
}

extension MediaGraph {
    /// The node and all nodes that feed it, directly or through others.
    fileprivate func upstream(of node: String) -> Set<String> {
        var found: Set<String> = []
        var frontier = [node]
        while let name = frontier.popLast() {
            if found.insert(name).inserted { frontier += links(into: name).map(\.from.node) }
        }
        return found
    }
}

extension Port {
    /// A format that the port may deliver, without a size.
    fileprivate var someFormat: MediaFormat {
        if kinds.contains(.rawVideo) { return .rawVideo() }
        if kinds.contains(.rawAudio) { return .rawAudio }
        return MediaFormat(kinds.first ?? .data, encodings.first ?? "")
    }
}
