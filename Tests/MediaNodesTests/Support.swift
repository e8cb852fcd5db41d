import Glibc
import MediaGraph
import MediaNodes
import Testing

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

extension Array where Element: Comparable {
    var median: Element? { isEmpty ? nil : sorted()[count / 2] }
}

/// All tests that run pipelines. Serialized, because they share the machine's cores and judge times.
@Suite(.serialized) struct MediaNodesTests {}

/// The code of the error that a body throws; `cancelled` for a `CancellationError`. Nil without an error.
func errorCode(_ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch is CancellationError {
        return "cancelled"
    } catch {
        return (error as? MediaError)?.code
    }
}
