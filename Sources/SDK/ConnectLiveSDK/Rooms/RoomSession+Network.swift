internal import RoomClient

extension RoomSession {
    func restartIce() {
        if isConnected { link.restartICE() }
    }
}
