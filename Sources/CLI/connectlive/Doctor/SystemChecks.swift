internal import Foundation
internal import RoomServer

extension Machine {
    /// Ports, addresses, limits of the kernel, and the clock.
    var systemChecks: [Check] {
        [
            Check("ports", fixIfSilent: "Try again, and restart the machine if it happens again.", run: portFindings),
            Check("loopback", fixIfSilent: Self.loopbackFix, run: loopbackFindings),
            .blocking("addresses", fixIfSilent: "Check the network: ip address", run: addressFindings),
            .blocking("socket buffers", fixIfSilent: "Restart the machine.", run: bufferFindings),
            .blocking("open files", fixIfSilent: "Restart the machine.", run: fileFindings),
            .blocking("clock", fixIfSilent: "Restart the machine.", run: clockFindings),
        ]
    }

    private func portFindings() async -> [Finding] {
        switch await ports.open(.udp, "0.0.0.0", 0) {
        case nil: break
        case .inUse:
            return [
                .failure(
                    "No UDP port is free.",
                    fix:
                        "End programs with many sockets, or: sudo sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\""
                )
            ]
        case .other(let reason):
            return [
                .failure(
                    "No UDP socket can be opened: \(reason).",
                    fix: "Allow sockets in the sandbox or container that runs this program.")
            ]
        }
        let port = ListenAddress.defaultPort
        var findings: [Finding] = []
        for transport in [Ports.Transport.tcp, .udp] {
            guard let refusal = await ports.open(transport, "127.0.0.1", port) else { continue }
            let title = "\(transport.rawValue.uppercased()) port \(port), the server's default,"
            let fix = "connectlive serve --listen 127.0.0.1:\(port + 1)"
            if case .other(let reason) = refusal {
                findings.append(.warning("\(title) cannot be opened: \(reason).", fix: fix))
                continue
            }
            let user = ports.user(transport, port) ?? "another program"
            findings.append(
                user.hasPrefix("connectlive ")
                    ? .ok("\(title) is in use by \(user)") : .warning("\(title) is in use by \(user).", fix: fix))
        }
        return findings.isEmpty ? [.ok("UDP sockets open, and port \(port), the server's default, is free")] : findings
    }

    private static let loopbackFix = "sudo ip link set lo up, and allow UDP on lo in the firewall"

    private func loopbackFindings() async -> [Finding] {
        do {
            try await ports.loopback()
            return [.ok("A datagram to 127.0.0.1 arrived")]
        } catch {
            return [.failure("A datagram to 127.0.0.1 did not arrive: \(error).", fix: Self.loopbackFix)]
        }
    }

    private func addressFindings() -> [Finding] {
        let addresses = addresses()
        guard !addresses.isEmpty else {
            return [
                .warning(
                    "This machine has no address that another machine could reach.",
                    fix: "Connect it to a network. Calls on this machine work without one.")
            ]
        }
        let hasSix = addresses.contains { $0.contains(":") }
        return [.ok(addresses.joined(separator: ", ") + (hasSix ? "" : "; no IPv6, so calls use IPv4"))]
    }

    private func bufferFindings() -> [Finding] {
        let limits = ["rmem_max", "wmem_max"].map { name in
            (
                name,
                file("/proc/sys/net/core/\(name)").flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
            )
        }
        guard let smallest = limits.compactMap(\.1).min() else {
            return [.ok("This network namespace hides the kernel's limits; 'connectlive serve' prints them")]
        }
        let text = limits.map { "net.core.\($0) \($1.map { "\($0 / 1024) KiB" } ?? "unknown")" }.joined(separator: ", ")
        guard smallest < wantedBuffer else { return [.ok(text)] }
        return [
            .warning(
                "\(text): a server of a busy room may lose packets.", fix: "sudo " + Serving.bufferCommand(wantedBuffer)
            )
        ]
    }

    private func fileFindings() -> [Finding] {
        let (limit, usual) = (openFiles(), RoomServer.usualDescriptorLimit)
        guard limit < usual else { return [.ok("A process may open \(limit) files")] }
        return [
            .warning(
                "A process may open \(limit) files, which limits the participants of a server.",
                fix: "ulimit -n \(usual)")
        ]
    }

    /// A larger error counts as a clock that is not synchronised.
    private static let largestClockError = Duration.milliseconds(500)

    private func clockFindings() -> [Finding] {
        let fix = "sudo timedatectl set-ntp true"
        guard let error = clockError() else {
            return [
                .warning(
                    "Nothing synchronises the clock, so capture times differ from those of other machines.", fix: fix)
            ]
        }
        let milliseconds = Int(error / .milliseconds(1))
        guard error > Self.largestClockError else {
            return [.ok("Synchronised, with an error of at most \(milliseconds) ms")]
        }
        return [.warning("The clock may be wrong by \(milliseconds) ms.", fix: fix)]
    }
}
