internal import RoomProtocol
internal import Synchronization

extension RoomSession {
    func requestScreenShare(
        appGroup: String, extensionName: String,
        completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
    ) throws {
        do throws(RoomError) {
            try beginShare(appGroup, extensionName, completion)
        } catch {
            throw ConnectLiveError(error)
        }
    }

    private func beginShare(
        _ appGroup: String, _ extensionName: String, _ completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
    ) throws(RoomError) {
        guard status == .connected else { throw Self.nobodyToShareWith }
        try screenShareOptions.validate()
        let group = try ShareGroup(appGroup)
        let program = try extensionName.isEmpty ? nil : ShareExtension.find(extensionName)
        let share = ScreenSharing(of: self, in: group, program: program, completion)
        let former = try state.withLock { state throws(RoomError) -> ScreenSharing? in
            guard state.status == .connected else { throw Self.nobodyToShareWith }
            if let former = state.share, !former.isOver {
                throw RoomError(
                    .publishRefused, "This room shares a screen already. Call stopScreenShare(isLeftRoom:) first.")
            }
            defer { state.share = share }
            return state.share
        }
        share.begin(after: former, room: state.withLock { $0.name })
    }

    private static var nobodyToShareWith: RoomError {
        RoomError(
            .shareWithoutRoom, "The room is not connected, so there is nobody to share a screen with. Connect it first."
        )
    }

    func stopScreenShare(isLeftRoom: Bool) { state.withLock { $0.share }?.stop(isLeftRoom: isLeftRoom) }

    /// Frames arrive.
    func started(_ share: ScreenSharing) {
        let isWanted = state.withLock { state in
            guard state.status == .connected, !share.isOver else { return false }
            state.publications.append(Publication(media: share.media, phase: .publishing))
            return true
        }
        if isWanted { publishNow(share.media) }
    }

    func ended(_ share: ScreenSharing) { unpublish(share.media) }
}
