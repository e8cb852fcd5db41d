internal import MediaNodes
internal import RoomClient
internal import RoomProtocol

/// An event of the camera or the microphone behind local media, or of the loudspeaker of a room. (Linux)
public enum LocalDeviceEvent: Sendable {
    /// The device is not there, or cannot be opened. It is opened as soon as it can be.
    case waiting(ConnectLiveError)
    /// The device was lost. It is opened again as soon as it can be.
    case lost(ConnectLiveError)
    /// The device delivers again, or plays again.
    case returned
    /// Another device has taken over. `device` is its name, as listed by `connectlive devices`.
    case failedOver(device: String)

    init(_ event: LoudspeakerEvent) {
        switch event {
        case .waiting(let error): self = .waiting(ConnectLiveError(error))
        case .lost(let error): self = .lost(ConnectLiveError(error))
        case .returned: self = .returned
        }
    }

    /// Nil for events that are not about a device.
    init?(_ event: MediaEvent) {
        switch event {
        case .deviceWaiting(_, let cause): self = .waiting(ConnectLiveError(RoomError(cause)))
        case .deviceLost(_, let cause): self = .lost(ConnectLiveError(RoomError(cause)))
        case .deviceReturned: self = .returned
        case .deviceFailedOver(_, let device): self = .failedOver(device: device)
        default: return nil
        }
    }
}
