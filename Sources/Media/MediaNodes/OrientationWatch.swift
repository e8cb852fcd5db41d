internal import GStreamerKit

/// How far the machine is turned, as its sensor reports it. Nothing is reported on a machine without one.
package final class OrientationWatch: Sendable {
    private let sensor: OrientationSensor

    /// - Parameters:
    ///   - bus: the address of the D-Bus with the sensor's service; nil for the system's.
    ///   - changed: gets the degrees, clockwise as the user sees the screen: 0, 90, 180 or 270. Called on a queue of the sensor,
    ///     at first and after each change.
    package init(bus: String? = nil, _ changed: @escaping @Sendable (Int) -> Void) {
        sensor = OrientationSensor(address: bus) { side in if let degrees = Self.turn(side) { changed(degrees) } }
    }

    /// Nil while the machine lies flat, or moves.
    static func turn(_ side: String) -> Int? {
        switch side {
        case "normal": 0
        case "left-up": 90
        case "bottom-up": 180
        case "right-up": 270
        default: nil
        }
    }
}
