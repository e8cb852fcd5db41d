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
        let problem =
            switch parts.last {
            case "absent": "unplugged"
            case "lost": "lost"
            case "busy": "in use elsewhere"
            case "denied": "not permitted"
            default: "not working"
            }
        self = .waiting(shortening: "\(isDevice ? parts[0] : "source") \(problem)")
    }
}
