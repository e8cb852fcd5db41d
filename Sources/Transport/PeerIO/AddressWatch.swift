internal import CLinux
internal import Glibc
internal import PeerLoop
internal import RTP

/// Tells when the addresses of this machine change, such as from Wi-Fi to cellular. On the loop only.
///
/// Without it, a connection whose address is gone is noticed by its silence alone, seconds later.
package final class AddressWatch {
    /// Several changes at once, as when a network manager configures an interface, are told together.
    static let pause = TimeInterval.milliseconds(200)

    private let loop: EventLoop
    private let descriptor: Int32
    private var source: ReadableSource?
    private var timer: LoopTimer?
    private var known = AddressWatch.addresses()
    private let onChange: (Set<String>) -> Void

    /// Nil if the kernel has no rtnetlink, or the process no descriptor.
    ///
    /// - Parameter onChange: gets the literal addresses of the machine, those of loopback included, on the loop.
    package init?(on loop: EventLoop, _ onChange: @escaping (Set<String>) -> Void) {
        loop.preconditionOnLoop()
        descriptor = clinux_address_changes()
        guard descriptor >= 0 else { return nil }
        self.loop = loop
        self.onChange = onChange
        source = ReadableSource(descriptor: descriptor, context: loop.context) { [weak self] in self?.drain() }
    }

    deinit { assert(source == nil, "a watch must be closed before it is released") }

    /// Ends the watch. Nothing is told any longer.
    package func close() {
        guard let source else { return }
        timer?.disarm()
        source.remove()
        self.source = nil
        Glibc.close(descriptor)
    }

    private func drain() {
        var message: UInt8 = 0
        // Datagrams are cut. Too many of them are an error of one read, and a change as well.
        while recv(descriptor, &message, 1, 0) >= 0 || errno == ENOBUFS || errno == EINTR {}
        timer?.disarm()
        timer = loop.schedule(after: Self.pause) { [weak self] in self?.compare() }
    }

    private func compare() {
        // Without descriptors or memory, the addresses are not known. They are not gone.
        guard source != nil, let now = Self.addresses(), now != known else { return }
        known = now
        onChange(now)
    }

    /// The literal addresses of all interfaces. IPv6 link-local ones without their interface. Nil if the kernel does not tell.
    package static func addresses() -> Set<String>? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var found: Set<String> = []
        for entry in sequence(first: list, next: { $0?.pointee.ifa_next }).compactMap({ $0 }) {
            guard let address = entry.pointee.ifa_addr, [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
            else { continue }
            let isFour = Int32(address.pointee.sa_family) == AF_INET
            let length = isFour ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard getnameinfo(address, socklen_t(length), &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            let text = String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            found.insert(String(text.prefix { $0 != "%" }))
        }
        return found
    }
}
