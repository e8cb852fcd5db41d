import ConnectLiveSDK
import Foundation

/// The samples of the page about media controls, by their numbers in docs/samples.md.
@MainActor
final class Controls: SampleApp {
    func s1Start(_ localMedia: LocalMedia) -> Task<Void, Never> {
        Task {
            try? await localMedia.start()
        }
    }

    /// Without `await`, as version 2.0.6 has it. The attribute silences the warning that names the present forms.
    @available(*, deprecated)
    func s2Stop(_ localMedia: LocalMedia) {
        localMedia.stop()
    }

    func s3SwitchCamera(_ localMedia: LocalMedia) -> Task<Void, Never> {
        Task {
            try? await localMedia.switchCamera(position: .back, isMirror: true)
        }
    }

    func s4LocalLevel(_ localMedia: LocalMedia) -> Int {
        let level = localMedia.audioLevel
        return level
    }

    func s5RemoteLevels(_ room: Room) {
        room.getAudioLevels { levels in
            let levels: [String: Int] = levels
            self.lines.append("\(levels.count) levels")
        }
    }

    func s6LocalVideo(_ video: LocalVideo) -> String {
        let id = video.id
        let owner = video.owner
        let extraValue = video.extraValue
        video.active = true
        return "\(id)\(owner)\(extraValue)"
    }

    func s7LocalAudio(_ audio: LocalAudio) -> String {
        let id = audio.id
        let owner = audio.owner
        let extraValue = audio.extraValue
        audio.active = true
        audio.alwaysOn = true
        return "\(id)\(owner)\(extraValue)"
    }

    func s8RemoteVideo(_ video: RemoteVideo) throws -> [String] {
        let id = video.id
        let owner = video.owner
        let active = video.active
        let extraValue = video.extraValue
        let profile = video.profile
        try video.setPaused(true)
        try video.setProfile(.high)
        return ["\(id)", owner, "\(active)", extraValue, profile.rawValue]
    }

    func s9RemoteAudio(_ audio: RemoteAudio) -> [String] {
        let id = audio.id
        let owner = audio.owner
        let active = audio.active
        let extraValue = audio.extraValue
        let alwaysOn = audio.alwaysOn
        return ["\(id)", owner, "\(active)", extraValue, "\(alwaysOn)"]
    }
}
