package import MediaGraph
package import RoomProtocol

extension StreamState {
    /// The state of a stream whose source is away.
    ///
    /// Only the kind of the device and of the problem are told, because everyone in the room reads the text: no name of a
    /// device, path or address.
    package init(absence: MediaError) {
        let parts = absence.code.split(separator: ".", maxSplits: 1).map(String.init)
        let (device, isDevice) =
            switch (parts.first, parts.last) {
            case ("camera", _), ("microphone", _): (parts[0], true)
            case ("process", _): ("program", false)
            // A program of the graph is silent with the same code.
            case ("feed", "absent"), ("feed", "lost"): ("feeder", false)
            default: ("source", true)
            }
        let reason =
            switch parts.last {
            case "absent": "waiting for the \(device)"
            case "lost": isDevice ? "\(device) unplugged" : "\(device) gone"
            case "busy": "\(device) in use elsewhere"
            case "denied": "\(device) not permitted"
            case "undecodable": "\(device) sends frames that cannot be decoded"
            case "ended": "\(device) ended"
            default: "\(device) not working"
            }
        self = .waiting(shortening: reason)
    }
}
