package import Cameras
import MediaGraph

/// A camera that is there while its node is planned, with the output that needs the least work for all readers together.
struct FoundCamera {
    let output: CameraOutput
    /// The wish for this output.
    let wish: CameraWish
    private let device: CameraDevice
    private let choice: FormatChoice
    private let passedOver: [String]

    /// - Throws: `camera.absent` and others of the search, `camera.no-mode`, `camera.control`.
    init(_ request: NodeRequest, _ wish: CameraWish) throws(MediaError) {
        let environment = request.environment
        var outputs: [CameraOutput] = []
        var offers: [FormatOffer] = []
        let found = try Self.camera(of: request) { camera, there throws(MediaError) in
            outputs = try wish.outputs(of: there, camera: "\(camera.path) (\(camera.name))")
            offers = there
        }
        device = found.camera
        let controls = try ControlValues(of: request)
        if !controls.values.isEmpty, let there = environment.controls(of: device) {
            try controls.check(there, of: device.path)
        }
        var passedOver = found.passedOver + wish.passedOver(of: offers, beside: outputs)
        func choose() -> FormatChoice {
            request.choice("video", among: outputs.map { $0.alternative(for: wish) })
        }
        var choice = choose()
        // Only a stream that would pass is looked at: the camera captures for that.
        if (environment as? any CameraEnvironment)?.mayCapture ?? true, wish.format == .auto, outputs.count > 1,
            choice.format.encoding == "h264",
            let obstacle = environment.obstacle(
                toPassing: outputs[choice.index].mode, of: device.path, request.demands["video"])
        {
            passedOver.append("\(choice.alternative.name): \(obstacle)")
            outputs.remove(at: choice.index)
            choice = choose()
        }
        output = outputs[choice.index]
        (self.wish, self.choice, self.passedOver) = (wish.delivering(output.format.encoding), choice, passedOver)
    }

    private static func camera(
        of request: NodeRequest, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice {
        do throws(MediaError) {
            return try request.environment.find(camera: CameraNode.device(of: request), suits: suits)
        } catch {
            guard error.code == MediaError.Code.cameraAbsent else { throw error }
            throw MediaError(
                code: error.code, message: "\(error.message) Without a camera, use a test pattern or a file.",
                cause: error.cause)
        }
    }

    /// Notes the camera, its mode, and the choice.
    func note(in plan: inout NodePlan) {
        let mode = output.mode
        plan.resource = device.path
        plan.notes.append("\(device.path) (\(device.name)) in the mode \(mode.caps): \(mode.reason(for: wish))")
        plan.passedOver += passedOver
        plan.note(choice)
    }
}

extension FoundCamera {
    /// One sentence about the camera that takes over, and whether it is there. Nil without one.
    ///
    /// - Parameter path: that of the camera it takes over from, if that is there.
    /// - Throws: `camera.fixture` and others for a camera that cannot come; `graph.invalid` for the same camera.
    static func failover(of request: NodeRequest, beside path: String?) throws(MediaError) -> (
        note: String, isThere: Bool
    )? {
        let name = request.isGiven("failover") ? request.text("failover") : ""
        guard !name.isEmpty else { return nil }
        let device = CameraNode.device(of: request)
        func invalid(_ reason: String) -> MediaError {
            MediaError(
                code: MediaError.Code.graphInvalid,
                message: "failover \(reason). Name another camera, or leave it out.")
        }
        if LibCamera(name) != nil { throw invalid("is not available for \(name), only for cameras of V4L2") }
        if name == device, name != CameraSystem.any { throw invalid("is \(name), the same camera as device") }
        do throws(MediaError) {
            let found = try request.environment.camera(name).camera
            if found.path == path, device != CameraSystem.any {
                throw invalid("is \(name), the same camera as device: \(found.path)")
            }
            return ("while it is away, \(name) takes over, which is there: \(found.path) (\(found.name))", true)
        } catch {
            guard Devices.isAway(error) else { throw error }
            return ("while it is away, \(name) takes over, which is not available now: \(error.message)", false)
        }
    }
}

extension PlanEnvironment {
    /// Why a camera's H.264 is not passed on unless the settings request it. Nil if it can be.
    fileprivate func obstacle(toPassing mode: CaptureMode, of path: String, _ demand: Demand?) -> String? {
        let set = (self as? any CameraEnvironment)?.sequenceParameters(of: path, in: mode)
        return SequenceParameters.obstacle(set, forPeers: demand?.reachesPeers == true).map {
            $0.reason + "; format: h264 passes it " + $0.condition
        }
    }
}

extension Devices {
    /// Why a room does not get a camera's own H.264, such as "its profile High may have B-frames". Nil if it does. Captures
    /// up to the first keyframe, for at most 2 s.
    package static func obstacle(toPassing mode: CaptureMode, of camera: CameraPlace) -> String? {
        let set = SystemEnvironment().sequenceParameters(of: camera.path, in: mode)
        return SequenceParameters.obstacle(set, forPeers: true)?.reason
    }
}

extension SequenceParameters {
    /// Why a stream with these parameters is not passed on unless the settings request it, and the condition under which
    /// they may. Nil if it can be.
    fileprivate static func obstacle(
        _ set: SequenceParameters?, forPeers: Bool
    ) -> (reason: String, condition: String)? {
        guard let set else { return ("the camera gave no keyframe that tells its profile", "all the same") }
        if !set.isInDisplayOrder { return ("its profile \(set.profileName) may have B-frames", "if it has none") }
        return forPeers ? set.obstacleForPeers.map { ($0, "all the same") } : nil
    }
}
