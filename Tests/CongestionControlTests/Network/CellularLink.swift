import TestSupport

/// Links of phones, made from a seed with stated statistics. It was written, with its parameters, before the congestion
/// control was tuned, and is not changed to suit it.
///
/// The rate is a log-normal process around a mean: each 100 ms, its logarithm moves back towards the mean and by a random
/// step. Handovers and dead spots are outages that begin at random (exponential intervals) and last for an exponential
/// time, at least 100 ms. After an outage, the rate starts at a new random level. The queue is deep, as it is on such
/// links: 600 ms.
struct CellularLink {
    var name: String
    /// kbit/s
    var mean: Double
    /// The standard deviation of the rate's natural logarithm.
    var spread: Double
    /// Seconds in which the rate forgets where it was.
    var memory: Double
    /// Seconds between outages, and how long they last, on average.
    var outageInterval: Double
    var outage: Double
    /// Milliseconds.
    var delay: Double

    static let all = [
        CellularLink(
            name: "LTE, standing", mean: 4000, spread: 0.25, memory: 4, outageInterval: 60, outage: 0.3, delay: 30),
        CellularLink(
            name: "LTE, driving", mean: 2500, spread: 0.6, memory: 2, outageInterval: 20, outage: 0.7, delay: 35),
        CellularLink(
            name: "3G, walking", mean: 900, spread: 0.5, memory: 3, outageInterval: 30, outage: 0.8, delay: 60),
        CellularLink(
            name: "5G, at its edge", mean: 8000, spread: 0.9, memory: 1.5, outageInterval: 15, outage: 0.4, delay: 20),
    ]

    func settings(seconds: Double, seed: UInt64) -> SimulatedLink.Settings {
        var random = Seeded(seed)
        var level = normal(&random)
        var rates: [(from: Double, kilobits: Double)] = []
        var outageAt = exponential(outageInterval, &random)
        var time = 0.0
        let keep = 1 - 0.1 / memory
        while time < seconds {
            if time >= outageAt {
                let length = max(0.1, exponential(outage, &random))
                rates.append((time, 0))
                time += length
                outageAt = time + exponential(outageInterval, &random)
                level = normal(&random)
                continue
            }
            level = keep * level + (1 - keep * keep).squareRoot() * normal(&random)
            // The mean of a log-normal variable exceeds its median.
            rates.append((time, mean * exponentialFunction(spread * level - spread * spread / 2)))
            time += 0.1
        }
        rates.append((time, mean))
        var settings = SimulatedLink.Settings(rates: rates, delay: delay)
        settings.queue = 600
        settings.jitter = 2
        return settings
    }

    private func normal(_ random: inout Seeded) -> Double {
        (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &random) }
    }

    private func exponential(_ mean: Double, _ random: inout Seeded) -> Double {
        -mean * naturalLogarithm(Double.random(in: 1e-9..<1, using: &random))
    }
}
