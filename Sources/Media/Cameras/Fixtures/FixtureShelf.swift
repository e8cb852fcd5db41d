internal import Foundation
package import MediaGraph
import Synchronization

/// The recorded cameras in use, by their files. A camera is there as long as something refers to it, so that its faults
/// count on while it is closed and opened again.
package final class FixtureShelf: Sendable {
    private struct Entry {
        weak var camera: FixtureCamera?
    }

    private let clock: CaptureClock
    private let entries = Mutex<[String: Entry]>([:])

    package init(on clock: CaptureClock) {
        self.clock = clock
    }

    /// The camera of a file, which is read if nothing refers to the camera yet.
    ///
    /// - Throws: `camera.fixture`.
    package func camera(_ file: String) throws(MediaError) -> FixtureCamera {
        let file = URL(fileURLWithPath: file).standardizedFileURL.path
        if let camera = entries.withLock({ $0[file]?.camera }) { return camera }
        let fixture = try CameraFixture(file: file)
        return entries.withLock { entries in
            // Another thread may have been faster.
            if let camera = entries[file]?.camera { return camera }
            let camera = FixtureCamera(fixture, on: clock)
            entries = entries.filter { $0.value.camera != nil }
            entries[file] = Entry(camera: camera)
            return camera
        }
    }
}

extension CameraFixture {
    /// Reads a file.
    ///
    /// - Throws: `camera.fixture`.
    package init(file: String) throws(MediaError) {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw MediaError(
                code: MediaError.Code.cameraFixture,
                message:
                    "The recorded camera \(file) cannot be read. Check the path: 'connectlive camera record' writes such a file."
            )
        }
        // Other bytes than UTF-8 are no JSON either.
        try self.init(json: String(decoding: data, as: UTF8.self), of: file)
    }
}
