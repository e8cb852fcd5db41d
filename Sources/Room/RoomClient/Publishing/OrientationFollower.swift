internal import MediaNodes
internal import Synchronization

/// The machine's sensor, while somebody follows it.
final class OrientationFollower: Sendable {
    private let sensor = Mutex<OrientationWatch?>(nil)

    /// Begins or ends to follow.
    ///
    /// - Parameter changed: gets the turn of the machine in degrees, clockwise, at first and after each change. Called on a
    ///   thread of the sensor.
    func follow(_ isWanted: Bool, changed: @escaping @Sendable (Int) -> Void) {
        let former = sensor.withLock { sensor -> OrientationWatch? in
            if isWanted, sensor == nil { sensor = OrientationWatch(changed) }
            if isWanted { return nil }
            defer { sensor = nil }
            return sensor
        }
        // Released without the lock.
        withExtendedLifetime(former) {}
    }
}
