import CGLib
import PeerIO
import Testing

/// In a suite of its own: `make test` runs it in a process that has used no such type before.
@Suite struct SocketTypesTests {
    @Test func `GIO's socket types are registered before two threads can race for them`() {
        EventLoop().shutdown()
        for name in ["GSocketAddress", "GInetSocketAddress", "GSocket", "GSocketClient", "GTlsConnection"] {
            #expect(g_type_from_name(name) != 0, "\(name)")
        }
    }
}
