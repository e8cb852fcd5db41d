internal import Foundation
internal import Glibc
package import MediaGraph
import Synchronization

/// The cameras that names lead to: those of this machine, and recorded ones by `fixture:FILE`.
///
/// All functions block for milliseconds, or longer if a camera responds slowly.
package struct CameraSystem: Sendable {
    /// A camera that was found, and is open.
    package struct Opened {
        package let place: CameraPlace
        package let device: any CaptureDevice
        /// One sentence for each camera that `auto` passed over.
        package let passedOver: [String]
    }

    package static let machine = CameraSystem(V4L2Backend(), bindings: .ofUser, automatic: automatic)
    package static let fixturePrefix = "fixture:"
    /// The name of any camera, the first one that can be used.
    package static let any = "auto"
    /// The camera that `auto` means in this process: the value of CONNECTLIVE_CAMERA. Nil without one.
    package static let automatic = ProcessInfo.processInfo.environment["CONNECTLIVE_CAMERA"].flatMap {
        $0.isEmpty ? nil : $0
    }

    /// The clock of recorded cameras; timestamps of all cameras are on it.
    package let clock: CaptureClock
    private let backend: any CaptureBackend
    private let tree: DeviceTree
    private let bindings: CameraBindings?
    private let automatic: String?
    private let shelf: FixtureShelf
    let buses = BusUse()
    let owners = CameraOwners()

    /// - Parameter automatic: the camera that `auto` means. Nil for the first one that can be used.
    package init(
        _ backend: any CaptureBackend, tree: DeviceTree = .system, bindings: CameraBindings? = nil,
        automatic: String? = nil, on clock: CaptureClock = .monotonic
    ) {
        self.backend = backend
        self.tree = tree
        self.bindings = bindings
        self.automatic = automatic
        self.clock = clock
        shelf = FixtureShelf(on: clock)
    }

    // MARK: Finding

    /// The cameras that are plugged in, in the order of their device numbers.
    package func places() -> [CameraPlace] {
        CameraPlace.all(in: tree) { path in
            do throws(MediaError) {
                try backend.open(path).close()
                return true
            } catch {
                // A camera of another user is a camera.
                return error.code == MediaError.Code.cameraDenied || error.code == MediaError.Code.cameraBusy
            }
        }
    }

    /// The camera with a name: a bound one, a path, a name of `/dev/v4l/by-id`, `fixture:FILE`, or one of `CameraPlace`.
    ///
    /// - Parameter identity: `CameraPlace.identity` of the camera that the name led to before, which is preferred. A path
    ///   leads to that camera only, wherever it is plugged in now.
    /// - Throws: `camera.absent`, `camera.unusable`, `camera.fixture`, `camera.binding`.
    package func find(_ name: String, identity: CameraPlace.Identity? = nil) throws(MediaError) -> CameraPlace {
        try naming(name) { name throws(MediaError) in try findNamed(name, identity) }
    }

    private func findNamed(_ name: String, _ identity: CameraPlace.Identity?) throws(MediaError) -> CameraPlace {
        let name = try bound(name)
        if name.isEmpty {
            throw MediaError(
                code: MediaError.Code.cameraAbsent,
                message:
                    "The camera's name is empty. Choose one of 'connectlive devices'.")
        }
        if name.hasPrefix(Self.fixturePrefix) {
            let camera = try shelf.camera(String(name.dropFirst(Self.fixturePrefix.count)))
            return CameraPlace(name: name, path: name, model: camera.fixture.card.cleaned, usb: nil)
        }
        // A path is the identity of a camera without a place in sysfs, as in a container.
        if let identity, !identity.name.hasPrefix("/") {
            let places = places()
            if let same = places.first(where: { $0.identity.atPort == identity.atPort }) { return same }
            if name.hasPrefix("/") { return try CameraPlace.find(identity.name, among: places) }
        }
        if let path = Self.path(of: name) {
            // Only this one is opened; the others do not matter to its place.
            return CameraPlace.all(in: tree) { $0 == path }.first
                ?? CameraPlace(name: name, path: path, model: path, usb: nil)
        }
        return try CameraPlace.find(name, among: places(), names: try bindings?.all().keys.sorted() ?? [])
    }

    /// The name that a bound name stands for, or else the name itself.
    package func bound(_ name: String) throws(MediaError) -> String {
        guard let bindings, CameraBindings.isName(name) else { return name }
        return try bindings.binding(of: name)?.camera ?? name
    }

    /// The camera of a place, `front` or `back`: the one that the user has bound to that name. Without one, `front` is the first
    /// camera and `back` the second one, as far as the other name does not have it. Nil for the first one that can be used, also
    /// if the process has a camera of its own for `auto`.
    ///
    /// - Throws: `camera.binding`.
    package func camera(at place: String) throws(MediaError) -> String? {
        guard automatic == nil else { return nil }
        guard try bound(place) == place else { return place }
        let other = place == "back" ? "front" : "back"
        if try bound(other) != other {
            let taken = try? find(other)
            return places().first { $0.path != taken?.path }?.name
        }
        return place == "back" ? places().dropFirst().first?.name : nil
    }

    /// Calls `body` with the camera that `auto` means in this process. Its errors then name the variable, which the user may
    /// have set long ago.
    private func naming<Result>(
        _ name: String, _ body: (String) throws(MediaError) -> Result
    ) throws(MediaError) -> Result {
        guard name == Self.any, let automatic, automatic != Self.any else { return try body(name) }
        do throws(MediaError) {
            return try body(automatic)
        } catch {
            throw MediaError(
                code: error.code, message: "CONNECTLIVE_CAMERA names the camera \(automatic). \(error.message)",
                cause: error.cause, node: error.node)
        }
    }

    private func named(_ name: String) -> String { name == Self.any ? automatic ?? name : name }

    /// The name of the camera that a name means: of `auto` the one of this process, and of a bound name its camera.
    private func resolved(_ name: String) throws(MediaError) -> String { try bound(named(name)) }

    /// Whether a name leaves the choice of the camera to this program.
    func isChoice(_ name: String) throws(MediaError) -> Bool { try resolved(name) == Self.any }

    /// The controls that come with a bound name.
    ///
    /// - Throws: `camera.binding`, `camera.control` for an unreadable file.
    func presets(of name: String) throws(MediaError) -> ControlValues {
        let name = named(name)
        guard let bindings, CameraBindings.isName(name) else { return ControlValues() }
        return try ControlValues(try bindings.binding(of: name)?.controls ?? "")
    }

    /// The target of a path, or of a link's name. Nil for another name.
    private static func path(of name: String) -> String? {
        func target(_ link: String) -> String {
            URL(fileURLWithPath: link).resolvingSymlinksInPath().path
        }
        if name.hasPrefix("/") { return target(name) }
        return ["/dev/v4l/by-id/", "/dev/v4l/by-path/"].map { $0 + name }
            .first { FileManager.default.fileExists(atPath: $0) }.map(target)
    }

    /// The recorded camera that a name leads to. It is there as long as something refers to it.
    package func recorded(_ name: String) -> FixtureCamera? {
        guard let name = try? resolved(name), name.hasPrefix(Self.fixturePrefix) else { return nil }
        return try? shelf.camera(String(name.dropFirst(Self.fixturePrefix.count)))
    }

    // MARK: Opening

    /// Opens a camera, or with `auto` the first one that can be used.
    ///
    /// - Parameters:
    ///   - identity: as for `find`. With `auto`, that camera is tried first.
    ///   - mayReserve: whether to check that nobody captures, which keeps others from it for a moment.
    ///   - mayBeOwn: whether this process may capture all the same: the node that does may be about to end.
    ///   - prepare: makes the camera ready. If it throws, the camera is closed, and `auto` passes over it.
    /// - Throws: `camera.absent`, `camera.unusable`, `camera.denied`, `camera.busy` and others of `find`, `open` and
    ///   `prepare`.
    package func open(
        _ name: String, identity: CameraPlace.Identity? = nil, mayReserve: Bool = true, mayBeOwn: Bool = false,
        prepare: (CameraPlace, any CaptureDevice) throws(MediaError) -> Void = { _, _ in }
    ) throws(MediaError) -> Opened {
        try naming(name) { name throws(MediaError) in
            try openNamed(name, identity, mayReserve: mayReserve, mayBeOwn: mayBeOwn, prepare)
        }
    }

    private func openNamed(
        _ name: String, _ identity: CameraPlace.Identity?, mayReserve: Bool, mayBeOwn: Bool,
        _ prepare: (CameraPlace, any CaptureDevice) throws(MediaError) -> Void
    ) throws(MediaError) -> Opened {
        func opened(_ place: CameraPlace, _ passedOver: [String]) throws(MediaError) -> Opened {
            let device = try open(place, mayReserve: mayReserve, mayBeOwn: mayBeOwn)
            do throws(MediaError) {
                try prepare(place, device)
            } catch {
                device.close()
                throw error
            }
            return Opened(place: place, device: device, passedOver: passedOver)
        }
        guard try isChoice(name) else { return try opened(try find(name, identity: identity), []) }
        var refused: MediaError?
        var passedOver: [String] = []
        let places = places()
        let former = identity.flatMap { identity in
            places.first { $0.identity.atPort == identity.atPort }
                ?? (try? CameraPlace.find(identity.name, among: places))
        }
        for place in places.filter({ $0 == former }) + places.filter({ $0 != former }) {
            do throws(MediaError) {
                return try opened(place, passedOver)
            } catch {
                passedOver.append("\(place.name) (\(place.model)): \(error.message)")
                refused = refused ?? error
            }
        }
        throw refused
            ?? MediaError(
                code: MediaError.Code.cameraAbsent,
                message: "No camera was found. Plug one in, or publish a file or the test pattern.")
    }

    /// Opens a camera.
    package func open(
        _ place: CameraPlace, mayReserve: Bool = false, mayBeOwn: Bool = false
    ) throws(MediaError) -> any CaptureDevice {
        let device: any CaptureDevice
        if place.path.hasPrefix(Self.fixturePrefix) {
            device = try shelf.camera(String(place.path.dropFirst(Self.fixturePrefix.count))).open(place.path)
        } else {
            device = try backend.open(place.path)
        }
        if mayReserve, !(mayBeOwn && device.isStreamedHere), device.isTaken {
            device.close()
            throw MediaError("VIDIOC_REQBUFS", EBUSY, on: place.path)
        }
        return device
    }

    /// Whether a camera is there and responds.
    package func isThere(_ name: String, identity: CameraPlace.Identity? = nil) -> Bool {
        guard isListed(name, identity: identity), let opened = try? open(name, identity: identity, mayReserve: false)
        else { return false }
        opened.device.close()
        return true
    }
}

extension CameraSystem {
    /// False if the kernel lists no video device that `find` could return. Opens none, so it can be asked often.
    package func isListed(_ name: String, identity: CameraPlace.Identity? = nil) -> Bool {
        // `find` reports an unreadable file with names.
        guard let name = try? resolved(name), !name.hasPrefix(Self.fixturePrefix) else { return true }
        let lasting = identity.flatMap { $0.name.hasPrefix("/") ? nil : $0 }
        if Self.path(of: name) != nil, lasting == nil { return true }
        let listed = CameraPlace.all(in: tree) { _ in true }
        if name == Self.any { return !listed.isEmpty }
        return listed.contains { $0.mayBe(name) || lasting.map($0.mayBe) ?? false }
    }
}

/// The nodes of this process that capture, by their cameras.
final class CameraOwners: Sendable {
    private let owners = Mutex<[ObjectIdentifier: (path: String, name: String)]>([:])

    func add(_ name: String, at path: String, _ key: ObjectIdentifier) {
        owners.withLock { $0[key] = (Self.file(path), name) }
    }

    /// The path of a recorded camera may be written in several ways.
    private static func file(_ path: String) -> String {
        let prefix = CameraSystem.fixturePrefix
        return path.hasPrefix(prefix)
            ? URL(fileURLWithPath: String(path.dropFirst(prefix.count))).standardizedFileURL.path : path
    }

    func remove(_ key: ObjectIdentifier) { _ = owners.withLock { $0.removeValue(forKey: key) } }

    /// The error with the node that captures, if it is one of this process.
    func explain(_ error: MediaError, at place: CameraPlace) -> MediaError {
        let path = Self.file(place.path)
        guard error.code == MediaError.Code.cameraBusy,
            let name = owners.withLock({ $0.values.first { $0.path == path }?.name })
        else { return error }
        return MediaError(
            code: error.code,
            message:
                "The camera \(place.name) is in use by the node \"\(name)\" of this program. Connect both branches to that "
                + "node, or choose another camera.")
    }
}

/// The modes of the cameras that this process has open, on their buses.
final class BusUse: Sendable {
    private let users = Mutex<[ObjectIdentifier: BusUser]>([:])

    /// Adds a camera that starts. Returns a sentence for each problem of their bandwidth.
    func add(_ user: BusUser, _ key: ObjectIdentifier) -> [String] {
        let others = users.withLock { users in
            defer { users[key] = user }
            return Array(users.values)
        }
        return BusFit.warnings(others.sorted { $0.name < $1.name }, user)
    }

    func remove(_ key: ObjectIdentifier) { _ = users.withLock { $0.removeValue(forKey: key) } }
}
