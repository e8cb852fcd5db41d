internal import Cameras
package import MediaGraph

extension GraphPlan {
    /// One sentence for each node that names the same camera as another one, which can then not open it.
    package var sharedCameras: [String] {
        var readers: [String: String] = [:]
        return nodes.compactMap { node in
            // Each `auto` takes another camera.
            guard node.node.kind == CameraNode.kind.name, let camera = node.resource, let device = node.device,
                device.name != CameraSystem.any
            else { return nil }
            guard let other = readers[camera] else {
                readers[camera] = node.name
                return nil
            }
            return "\"\(node.name)\" names the same camera as \"\(other)\", which only one node can open: \(camera). "
                + "Connect both branches to \"\(other)\", or choose another camera."
        }
    }

    /// One sentence for each `failover` that is not the name of a camera, such as a misspelt one. Blocks for milliseconds,
    /// or longer if a camera responds slowly.
    package var unknownFailovers: [String] {
        nodes.compactMap { node in
            guard node.node.kind == CameraNode.kind.name, let name = node.node.settings["failover"]?.text,
                CameraBindings.isName(name), LibCamera(name) == nil
            else { return nil }
            do throws(MediaError) {
                // A bound camera may be plugged in later.
                guard try CameraSystem.machine.bound(name) == name else { return nil }
                _ = try CameraSystem.machine.find(name)
                return nil
            } catch {
                return "\(node.name): failover \(name): \(error.message)"
            }
        }
    }
}
