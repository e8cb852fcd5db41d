import Foundation
import RoomProtocol
import ServerCore
import Testing

@testable import RoomRecording

struct RecordingNameTests {
    private func name(participant: String, at seconds: Double = 0) throws -> String {
        RecordingName.of(
            RecordedStream(room: try RoomName("kitchen"), participant: participant, stream: 7, codec: .vp8),
            at: Date(timeIntervalSince1970: seconds))
    }

    @Test func `a name tells start, room, participant, stream and medium`() throws {
        let name = try name(participant: "p-4f1cPq0aZw", at: 1_764_396_374.123)
        #expect(name == "20251129T060614.123Z_kitchen_p-4f1cPq0aZw_7-video")
    }

    @Test func `names sort by their start`() throws {
        let times: [Double] = [0, 999.999, 1_000, 86_400 * 31, 1_764_396_374.123, 1_764_396_374.124, 4_000_000_000]
        let names = try times.map { try name(participant: "p", at: $0) }
        #expect(names == names.sorted())
        #expect(Set(names).count == names.count)
    }

    @Test(arguments: [
        "../../etc/passwd", "/etc/passwd", "..", ".", "-rf", "a/b\\c", "a\0b", "a\nb", "%2e%2e%2f", "ä\u{202e}gnp.",
        "$(id)",
        "", String(repeating: "/", count: 10_000), String(repeating: "e\u{301}", count: 10_000),
    ]) func `a hostile id changes no folder, begins no option and is bounded`(id: String) throws {
        let name = try name(participant: id)
        #expect(name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }, "\(name)")
        #expect(!name.contains("..") && name.first?.isNumber == true)
        #expect((name + ".mkv").utf8.count <= 200)
    }
}
