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
}
