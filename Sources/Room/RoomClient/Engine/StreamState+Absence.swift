package import MediaGraph
package import RoomProtocol

extension StreamState {
    /// The state of a stream whose source is away.
    ///
    /// Only the kind of the device and of the problem are told, because everyone in the room reads the text: no name of a
    /// device, path or address.
    package init(absence: MediaError) {
        let parts = absence.code.split(separator: ".", maxSplits: 1).map(String.init)
        let isDevice = ["camera", "microphone"].contains(parts.first)
        let device = isDevice ? parts[0] : "source"
        let reason =
            switch parts.last {
            case "absent": "waiting for the \(device)"
            case "lost": "\(device) unplugged"
            case "busy": "\(device) in use elsewhere"
            case "denied": "\(device) not permitted"
            default: "\(device) not working"
            }
        self = .waiting(shortening: reason)
    }
}
