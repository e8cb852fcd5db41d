import ConnectLiveSDK
import Dispatch
import Foundation
import Glibc
import RoomClient
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import ConnectLiveSDK

extension SDKTests {
    /// The audio session in calls, with a real PulseAudio.
    @Suite(.timeLimit(.minutes(2)))
    struct AudioSessions {
        /// Notes the events in short words.
        private final class Delegate: AudioSessionDelegate, Sendable {
            private let noted = Collected<String>()
            var events: [String] { noted.all }

            func didBeginInterruption() { noted.append("interruption") }
            func didEndInterruption(shouldResumeSession: Bool) { noted.append("end, resume \(shouldResumeSession)") }
            func didChangeRoute(
                reason: AVAudioSession.RouteChangeReason, currentRoute: AVAudioSessionRouteDescription,
                previousRoute: AVAudioSessionRouteDescription
            ) {
                func name(_ ports: [AVAudioSessionPortDescription]) -> String { ports.first?.uid ?? "none" }
                noted.append("\(reason): \(name(previousRoute.outputs)) > \(name(currentRoute.outputs))")
            }
            func mediaServerTerminated() { noted.append("terminated") }
            func mediaServerReset() { noted.append("reset") }
            func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) { noted.append("can \(canPlayOrRecord)") }
            func didStartPlayOrRecord() { noted.append("started") }
            func didStopPlayOrRecord() { noted.append("stopped") }
            func willSetActive(active: Bool) { noted.append("will \(active)") }
            func didSetActive(active: Bool) { noted.append("did \(active)") }
            func failedToSetActive(active: Bool, error: any Error) { noted.append("failed \(active)") }
        }

        /// Has only the older form.
        private final class FormerDelegate: AudioSessionDelegate, Sendable {
            let reasons = Collected<AudioRouteChangeReason>()
            func didChangeRoute(reason: AudioRouteChangeReason, previousRoute: AudioRoute) { reasons.append(reason) }
        }

        /// A near end that plays and records, and a far end that speaks and hears.
        private struct Call {
            let near = Client(config: Config())
            let far = Client()
            let microphone: any LocalMedia
            let speech: any LocalMedia

            init() async throws {
                _ = try await near.join("session")
                _ = try await far.join("session")
                var speech = MediaRequest.testPattern(frames: 0)
                speech.hasVideo = false
                self.speech = ConnectLive.createLocalMedia(speech)
                var config = Config()
                config.mediaOptions.hasVideo = false
                microphone = try #require(ConnectLive.createLocalMedia(config: config))
                try far.room.publish(self.speech)
                try near.room.publish(microphone)
            }

            /// Whether the far end sees the near end's audio as active. Nil if it is not published.
            var isSeenOn: Bool? {
                far.room.remoteParticipants.values.first?.audios.values.first?.active
            }

            func end() async throws {
                for client in [near, far] { try await client.leave() }
                for media in [microphone, speech] { await media.stop() }
            }
        }

        /// The roles of the streams that play (`sink-inputs`) or record (`source-outputs`).
        private func roles(_ kind: String, _ machine: PulseAudioRoom) throws -> [String] {
            roles(in: try machine.tell("list", kind))
        }

        private func roles(in list: String) -> [String] {
            let streams = list.components(separatedBy: " #").dropFirst()
            // The made-up microphone has a stream, too.
            return streams.filter { !$0.contains("Driver: module-") }.map { stream in
                let line = stream.split(separator: "\n").first { $0.contains("media.role = ") }
                return line?.split(separator: "\"").dropFirst().first.map(String.init) ?? "none"
            }
        }

        /// A machine whose microphone hears its loudspeaker.
        private func machine() throws -> PulseAudioRoom {
            let machine = try PulseAudioRoom()
            _ = try machine.plug(microphone: "desk-microphone")
            try machine.tell("set-default-source", "desk-microphone")
            return machine
        }

        @Test func `categories open and close microphones and the loudspeaker of a call, with their roles`()
            async throws
        {
            let machine = try machine()
            let delegate = Delegate()
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let session = AudioSession()
            func configure(_ category: AudioSessionCategory, _ options: AudioSessionOptions = []) {
                session.configure(
                    AudioSessionConfiguration(category: category, mode: .videoChat, options: options), delegate)
            }
            func streams() throws -> [[String]] {
                [try roles("sink-inputs", machine), try roles("source-outputs", machine)]
            }
            try await onStage { _ in
                configure(.playAndRecord)
                let call = try await Call()
                try await requireEventually("a call") { try streams() == [["phone"], ["phone"]] }
                try await requireEventually("the far end") { call.isSeenOn == true }
                try await requireEventually("its events") { delegate.events == ["will true", "did true", "started"] }
                configure(.playAndRecord, .mixWithOthers)
                try await requireEventually("no role") { try streams() == [["none"], ["none"]] }
                configure(.playback)
                try await requireEventually("a loudspeaker alone") { try streams() == [["music"], []] }
                try await requireEventually("the microphone is off") { call.isSeenOn == false }
                configure(.record)
                try await requireEventually("a microphone alone") { try streams() == [[], ["production"]] }
                try await requireEventually("the microphone is on") { call.isSeenOn == true }
                configure(.playAndRecord)
                try await requireEventually("a call again") { try streams() == [["phone"], ["phone"]] }
                try await call.end()
                try await requireEventually("the end") {
                    delegate.events.suffix(3) == ["stopped", "will false", "did false"]
                }
            }
            // The present route had an output all the time, except while it recorded only.
            #expect(
                delegate.events.filter { $0.contains(">") } == [
                    "categoryChange: speaker > speaker", "categoryChange: speaker > none",
                    "categoryChange: none > speaker",
                ])
            #expect(!delegate.events.contains { $0.hasPrefix("can") || $0.hasPrefix("failed") })
        }

        @Test func `categories open and close the microphone and the loudspeaker of a PipeWire too`() async throws {
            let server = try Fixture.pipeWireServer("--pulse")
            let variables = server.answer.environment
            let environment = EnvironmentOverride(variables.mapValues { $0 })
            let delegate = Delegate()
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let session = AudioSession()
            func streams() throws -> [[String]] {
                try ["sink-inputs", "source-outputs"].map {
                    roles(in: try PulseAudioRoom.tell(["list", $0], variables))
                }
            }
            try await onStage { _ in
                session.configure(AudioSessionConfiguration(category: .playAndRecord, mode: .videoChat), delegate)
                let call = try await Call()
                try await requireEventually("a call") { try streams() == [["phone"], ["phone"]] }
                try await requireEventually("the far end") { call.isSeenOn == true }
                session.configure(AudioSessionConfiguration(category: .playback), delegate)
                try await requireEventually("a loudspeaker alone") { try streams() == [["music"], []] }
                try await requireEventually("the microphone is off") { call.isSeenOn == false }
                try await call.end()
            }
            #expect(delegate.events.contains("categoryChange: speaker > speaker"))
            withExtendedLifetime((environment, session)) {}
        }

        @Test func `a phone call of another program interrupts a playing session`() async throws {
            let machine = try machine()
            try machine.tell("load-module", "module-role-cork")
            let delegate = Delegate()
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let session = AudioSession()
            session.configure(AudioSessionConfiguration(category: .playback), delegate)
            try await onStage { _ in
                let call = try await Call()
                try await requireEventually("music") { try roles("sink-inputs", machine) == ["music"] }
                try await requireEventually("its event") { delegate.events.contains("started") }
                let phone = machine.program(
                    "/usr/bin/pacat", ["--property=media.role=phone", "--device=speaker", "/dev/zero"])
                try phone.run()
                // It inherits a mask that blocks SIGTERM.
                defer { kill(phone.processIdentifier, SIGKILL) }
                try await requireEventually("the interruption") {
                    delegate.events.suffix(2) == ["interruption", "can false"]
                }
                kill(phone.processIdentifier, SIGKILL)
                try await requireEventually("its end") {
                    delegate.events.suffix(2) == ["end, resume true", "can true"]
                }
                try await call.end()
            }
            withExtendedLifetime(session) {}
        }

        @Test func `the sleep of the machine closes microphones until it is awake`() async throws {
            let machine = try machine()
            let login = try Fixture.orientationSensor()
            let bus = EnvironmentOverride(["DBUS_SYSTEM_BUS_ADDRESS": login.answer.bus])
            let delegate = Delegate()
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let session = AudioSession()
            session.configure(AudioSessionConfiguration(), delegate)
            try await onStage { _ in
                let call = try await Call()
                try await requireEventually("the microphone") { call.isSeenOn == true }
                // Until the session has connected to the bus, it does not hear.
                try await requireEventually("the interruption") {
                    login.tell("sleep")
                    return delegate.events.contains("interruption")
                }
                try await requireEventually("no microphone") { try roles("source-outputs", machine) == [] }
                try await requireEventually("the far end") { call.isSeenOn == false }
                login.tell("wake")
                try await requireEventually("awake") { delegate.events.contains("end, resume true") }
                try await requireEventually("the microphone again") {
                    try roles("source-outputs", machine) == ["phone"]
                }
                try await call.end()
            }
            withExtendedLifetime((session, bus)) {}
        }

        @Test func `a delegate of the SDK hears of the loudspeakers and the sound server`() async throws {
            let machine = try machine()
            let delegate = Delegate()
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            ConnectLive.setAudioSessionConfiguration(
                category: .playAndRecord, mode: .videoChat,
                options: [.mixWithOthers, .defaultToSpeaker, .allowBluetooth], delegate: delegate)
            await eventually("the session") { delegate.events == ["will true", "did true"] }
            let module = try machine.plug(speaker: "desk")
            try machine.tell("set-default-sink", "desk")
            await eventually("the desk") { delegate.events.last?.hasSuffix(": speaker > desk") == true }
            try machine.tell("unload-module", module)
            await eventually("a lost one") { delegate.events.last?.hasPrefix("oldDeviceUnavailable: desk >") == true }
            machine.end()
            await eventually("the end") { delegate.events.suffix(2) == ["terminated", "can false"] }
            try machine.begin()
            await eventually("the return") { delegate.events.suffix(2).contains("can true") }
            #expect(delegate.events.contains("reset"))
            ConnectLive.setAudioSessionWithCurrentCategory()
            await eventually("the session again") { delegate.events.suffix(2) == ["will true", "did true"] }
            #expect(SoundUse.choice.value.playing.role == .none && SoundUse.choice.value.capturing.mayBeBluetooth)
            let former = FormerDelegate()
            ConnectLive.setAudioSessionConfiguration(
                category: .playback, mode: .default, options: [], delegate: former)
            await eventually("the older form") { former.reasons.all == [.categoryChange] }
        }

        @Test func `of configurations from two threads, the last one decides the use and begins the session`() {
            let folder = TemporaryFolder()
            let environment = EnvironmentOverride([
                "PULSE_SERVER": "unix:\(folder.path)/socket", "ALSA_CONFIG_PATH": "\(folder.path)/none",
            ])
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let session = AudioSession()
            for _ in 0..<50 {
                DispatchQueue.concurrentPerform(iterations: 2) { index in
                    session.configure(AudioSessionConfiguration(category: index == 0 ? .playback : .record), nil)
                }
                session.queue.sync {}
                let (wished, begun) = session.state.withLock { ($0.wished, $0.session.configuration) }
                #expect(begun.category == wished?.category)
                #expect(SoundUse.choice.value == begun.use(isInterrupted: false))
            }
            withExtendedLifetime(environment) {}
        }

        @Test func `without a sound system, the session cannot begin`() async throws {
            let folder = TemporaryFolder()
            let environment = EnvironmentOverride([
                "PULSE_SERVER": "unix:\(folder.path)/socket", "ALSA_CONFIG_PATH": "\(folder.path)/none",
            ])
            defer { SoundUse.choice.change { $0 = SoundUse() } }
            let (session, delegate) = (AudioSession(), Delegate())
            session.configure(AudioSessionConfiguration(), delegate)
            await eventually("the failure") { delegate.events == ["will true", "failed true", "can false"] }
            withExtendedLifetime(environment) {}
        }
    }
}
