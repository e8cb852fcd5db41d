internal import Glibc
import MediaGraph
import Synchronization

/// The available sound system of this machine.
package enum AudioSystem {
    /// How long the answer of a sound server may take, in seconds.
    package static let timeout = 3.0

    /// The playback element of the first sound system that responds. Blocks for some milliseconds, or for `timeout` if a sound
    /// server hangs.
    package static var playing: String? { firstThatOpens(["pulsesink", "alsasink"]) }

    /// The capture element of the first sound system that responds. Blocks as `playing` does.
    package static var recording: String? { firstThatOpens(["pulsesrc", "pipewiresrc", "alsasrc"]) }

    /// Whether a sound system opens an element of its own. Blocks as `playing` does. Nil if it has not answered then.
    package static func opens(_ factory: String) -> Bool? {
        let factory = harmless(factory)
        let probe = probes.withLock { probes in
            let probe = probes[factory] ?? newProbe(factory)
            probes[factory] = probe
            return probe
        }
        return probe.answer()
    }

    private static let probes = Mutex<[String: SharedProbe<Bool>]>([:])

    /// The element that asks a sound system on behalf of another one.
    ///
    /// GStreamer 1.22's pulsesrc leaves a thread and two descriptors behind each time its server does not respond. Its
    /// pulsesink connects to the same server, and leaves nothing.
    private static func harmless(_ factory: String) -> String { factory == "pulsesrc" ? "pulsesink" : factory }

    private static func newProbe(_ factory: String) -> SharedProbe<Bool> {
        SharedProbe("media.sound.\(factory)", seconds: timeout) {
            guard GStreamer.has(factory), let element = try? Element(factory) else { return false }
            return element.canOpen()
        }
    }

    /// Whether an element belongs to a sound system.
    package static func has(_ factory: String) -> Bool {
        ["pulse", "pipewire", "alsa"].contains { factory == "\($0)sink" || factory == "\($0)src" }
    }

    private static func firstThatOpens(_ factories: [String]) -> String? {
        for factory in factories {
            // A server that hangs may hold the devices of the systems after it.
            guard let opens = opens(factory) else { return nil }
            if opens { return factory }
        }
        return nil
    }

    /// A text that changes when a sound server of this machine begins or ends, or a sound card is plugged in. Costs less than
    /// asking them.
    package static var signs: String {
        let places = ["/dev/snd"] + [pulseSocket, pipeWireSocket].compactMap(\.self)
        return places.reduce(into: variable("PULSE_SERVER") ?? "") { signs, place in
            var found = stat()
            guard stat(place, &found) == 0 else { return }
            signs += " \(place) \(found.st_ino) \(found.st_mtim.tv_sec).\(found.st_mtim.tv_nsec)"
        }
    }

    /// Whether nothing accepts connections at the socket of a sound server of this machine. False if its socket is not known.
    ///
    /// - Parameter seconds: how long to wait for the end of a server that may be ending.
    package static func serverHasEnded(isPipeWire: Bool, within seconds: Double = 0) -> Bool {
        guard let path = isPipeWire ? pipeWireSocket : pulseSocket else { return false }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isWhole = withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            guard path.utf8.count < bytes.count else { return false }
            bytes.copyBytes(from: path.utf8)
            return true
        }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard isWhole, descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let status = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { return errno == ECONNREFUSED || errno == ENOENT }
        // A server that ends closes its connections one after the other.
        var waiting = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&waiting, 1, Int32(seconds * 1000)) > 0
    }

    /// Nil for a server of another machine.
    private static var pulseSocket: String? {
        if let server = variable("PULSE_SERVER") {
            return server.firstRange(of: "unix:").map { String(server[$0.upperBound...]) }
        }
        return variable("XDG_RUNTIME_DIR").map { "\($0)/pulse/native" }
    }

    private static var pipeWireSocket: String? { variable("XDG_RUNTIME_DIR").map { "\($0)/pipewire-0" } }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}

package enum DisplaySystem {
    /// An X server that restarts after its last client left refuses connections for a moment.
    private static let attempts = 3
    private static let pauseMicroseconds: UInt32 = 150_000

    /// An open element that shows frames on the environment's display. Nil if there is none or it cannot be opened.
    /// Blocks for some milliseconds, or half a second on failure.
    package static func openWindowSink() -> Element? {
        guard isNamed else { return nil }
        for attempt in 1...attempts {
            if let sink = openOnce() { return sink }
            if attempt < attempts { usleep(pauseMicroseconds) }
        }
        return nil
    }

    private static func openOnce() -> Element? {
        if getenv("WAYLAND_DISPLAY") != nil, let sink = opened("waylandsink") { return sink }
        // Plain X first: its connection keeps alive a server that ends with its last client while XVideo, which scales
        // in hardware, is tried.
        guard getenv("DISPLAY") != nil, let plain = opened("ximagesink") else { return nil }
        guard let accelerated = opened("xvimagesink") else { return plain }
        plain.close()
        return accelerated
    }

    private static func opened(_ factory: String) -> Element? {
        guard GStreamer.has(factory),
            let element = try? Element(factory, ["sync": false, "async": false, "qos": false])
        else { return nil }
        if element.setState(.ready) { return element }
        element.close()
        return nil
    }

    /// The environment's X display.
    package static var x: String? { getenv("DISPLAY").map { String(cString: $0) } }

    /// Whether this element opens X windows.
    package static func isX(_ factory: String) -> Bool { factory != "waylandsink" }

    /// Whether the environment names a display.
    package static var isNamed: Bool { getenv("WAYLAND_DISPLAY") != nil || getenv("DISPLAY") != nil }
}
