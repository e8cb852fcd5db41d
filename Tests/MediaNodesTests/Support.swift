import Glibc
import MediaGraph
import MediaNodes
import Synchronization
import Testing

/// The bundled clip: in `media/` of the package, wherever the tests were built.
let clip: String = {
    let source = realpath(#filePath, nil)
    defer { free(source) }
    let path = source.map { String(cString: $0) } ?? #filePath
    return "/" + path.split(separator: "/").dropLast(3).joined(separator: "/") + "/media/bigbuckbunny.mp4"
}()

/// Values that arrive on other threads.
final class Collected<Element: Sendable>: Sendable {
    private let state = Mutex<[Element]>([])

    func append(_ element: Element) {
        state.withLock { $0.append(element) }
    }

    var all: [Element] { state.withLock { $0 } }
    var count: Int { state.withLock { $0.count } }
}

/// Waits until a condition holds. Records an issue if it does not in time.
func eventually(
    within seconds: Double = 10, _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !condition() {
        if ContinuousClock.now > deadline {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        try? await Task.sleep(for: .milliseconds(5))
    }
}

/// A folder that is removed with the value.
final class TemporaryFolder {
    let path: String

    init() {
        var template = Array("/tmp/media-tests-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
    }

    deinit {
        guard path.hasPrefix("/tmp/media-tests-") else { return }
        for name in fileNames(in: path) { unlink(path + "/" + name) }
        rmdir(path)
    }
}

/// The names of the files in a folder.
func fileNames(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

func fileSize(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : -1
}

func writeFile(_ bytes: [UInt8], to path: String) {
    guard let file = fopen(path, "wb") else { return }
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
}

/// Reproducible randomness for tests (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension Array where Element: Comparable {
    var median: Element? { isEmpty ? nil : sorted()[count / 2] }
}

/// All tests that run pipelines. Serialized, because they share the machine's cores and judge times.
@Suite(.serialized) struct MediaNodesTests {}
