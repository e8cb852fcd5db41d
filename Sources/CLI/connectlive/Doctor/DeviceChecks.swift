internal import Foundation
import MediaGraph

extension Machine {
    /// Cameras, microphones, loudspeakers and the display.
    var deviceChecks: [Check] {
        [
            .blocking(
                "cameras", fixIfSilent: "A camera's driver hangs: unplug the camera and plug it in again.",
                run: camerasFindings),
            // A check of its own: if libcamera hangs, other cameras are reported all the same.
            .blocking("libcamera", fixIfSilent: "Restart the machine, or remove gstreamer1.0-libcamera.") {
                libraryCameras().map { .ok("\($0) is present") }
            },
            // The sound server has a limit of its own, whose message is more exact.
            .blocking("sound", limit: .seconds(5), fixIfSilent: Self.soundServerFix, run: soundFindings),
            .blocking(
                "display", fixIfSilent: "The display server hangs: unset DISPLAY and WAYLAND_DISPLAY, or log in again.",
                run: displayFindings),
        ]
    }

    static let soundServerFix = "systemctl --user restart pipewire pipewire-pulse wireplumber (or pulseaudio)"

    private func camerasFindings() -> [Finding] {
        let cameras = cameras()
        let findings = cameras.map { camera -> Finding in
            let title = "\(camera.name) (\(camera.model))"
            guard let error = camera.error else { return .ok("\(title) can be opened") }
            switch error.code {
            case MediaError.Code.cameraDenied:
                return .failure(
                    "\(title) belongs to a group that this user is not in",
                    fix: "sudo usermod --append --groups video \(user()), then log in again")
            case MediaError.Code.cameraBusy:
                return .warning("\(title) is in use by another program", fix: "Close that program.")
            default: return .failure(title + ": " + error.message, fix: "Plug the camera in again.")
            }
        }
        guard findings.isEmpty, libraryCameras().isEmpty else { return findings }
        return [.warning("No camera was found.", fix: "Plug one in, or publish with --file FILE or --test-pattern.")]
    }

    private func soundFindings() -> [Finding] {
        let (devices, problem) = sound()
        if let problem { return [.failure(problem, fix: Self.soundServerFix)] }
        guard let devices else {
            let cards = access("/dev/snd/timer")
            if cards.exists, !cards.isAllowed {
                return [
                    .failure(
                        "No sound server runs, and this user may not use the sound cards.",
                        fix: "sudo usermod --append --groups audio \(user()), then log in again")
                ]
            }
            return [
                .warning(
                    "No microphone and no loudspeaker was found.",
                    fix: "Plug one in, or start the sound server: \(Self.soundServerFix)")
            ]
        }
        let system =
            switch devices.system {
            case .pulse: "the sound server, PulseAudio or PipeWire"
            case .pipewire: "PipeWire"
            case .alsa: "ALSA, without a sound server"
            }
        func finding(_ title: String, _ devices: [AudioDevice]) -> Finding {
            guard !devices.isEmpty else {
                return .warning("No \(title) was found by \(system).", fix: "Plug one in, or enable it in the mixer.")
            }
            let names = devices.map { $0.lastingName + ($0.isDefault ? " (default)" : "") }
            return .ok("\(Figures.count(devices.count, title)) of \(system): \(names.joined(separator: ", "))")
        }
        return [finding("microphone", devices.microphones), finding("loudspeaker", devices.speakers)]
    }

    private func displayFindings() -> [Finding] {
        let names = ["WAYLAND_DISPLAY", "DISPLAY"].compactMap { name in
            variable(name).flatMap { $0.isEmpty ? nil : "\(name)=\($0)" }
        }.joined(separator: " ")
        guard !names.isEmpty else {
            return [
                .warning(
                    "There is no display: DISPLAY and WAYLAND_DISPLAY are not set.",
                    fix: "Log in to a desktop, or view with --no-window, or in a browser.")
            ]
        }
        guard let sink = elements.windowSink() else {
            return [
                .failure(
                    "No window opens on \(names).",
                    fix: "sudo apt install \(elements.package(ofElement: "ximagesink")), and check that this user may "
                        + "use the display, or unset the variable.")
            ]
        }
        return [.ok("\(sink) opens windows on \(names)")]
    }
}
