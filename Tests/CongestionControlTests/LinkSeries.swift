import CongestionControl
import Glibc
import Testing

private let path = getenv("CONNECTLIVE_LINK_SERIES").map { String(cString: $0) }

/// Writes the calls of the scenarios against time, as lines of JSON for `Benchmarks/run links`.
@Suite(
    .serialized, .enabled(if: path != nil, "Benchmarks/run links sets CONNECTLIVE_LINK_SERIES to a path"))
struct LinkSeries {
    private static let unit = Scenario.googleUnit.filter { $0.name.hasPrefix("unit: 500") }

    @Test(arguments: unit + Scenario.single + Scenario.several(isLong: true) + Scenario.outages)
    func `writes a call against time`(_ scenario: Scenario) {
        let call = scenario.call()
        let directions = call.records.indices.contains { call.isBackward($0) } ? [false, true] : [false]
        for backward in directions { write(series(scenario, call, backward: backward)) }
    }

    @Test(arguments: CellularLink.all, Scenario.unseenSeeds)
    func `writes a call on a phone's link, and the same of plain GoogCC`(_ link: CellularLink, seed: UInt64) {
        let scenario = Scenario.cellular(link, seed: seed)
        for isPlain in [false, true] {
            write(series(scenario, scenario.call(isPlain: isPlain), backward: false, isPlain: isPlain))
        }
    }
}

private func write(_ line: String) {
    guard let file = path.flatMap({ fopen($0, "a") }) else { return }
    fputs(line + "\n", file)
    fclose(file)
}

/// Two hundred points of each value, so that a plot is small.
private let points = 200

private func series(
    _ scenario: Scenario, _ call: CallSimulation, backward: Bool, isPlain: Bool = false
) -> String {
    let step = scenario.seconds / Double(points)
    func bins(_ value: (Double, Double) -> Double) -> String {
        list((0..<points).map { value(Double($0) * step, Double($0 + 1) * step) })
    }
    let link = backward ? call.back : call.forward
    let flows = call.records.indices.filter { call.isBackward($0) == backward }
    let lost = Bins(flows.flatMap { call.records[$0].lossTimes.map { (at: $0, value: 1) } }, step)
    let sent = Bins(flows.flatMap { call.records[$0].sendTimes.map { (at: $0.at, value: 1) } }, step)
    let waits = Bins(link.waits.map { (at: $0.at, value: $0.milliseconds) }, step)
    let tcp = Bins(call.connections.flatMap(\.delivered).map { (at: $0.at, value: $0.bytes / 125 / step) }, step)
    let lines = flows.map { flow in
        let record = call.records[flow]
        let sent = Bins(record.sendTimes.map { (at: $0.at, value: $0.bytes / 125 / step) }, step)
        let received = Bins(record.delivered.map { (at: $0.at, value: $0.bytes / 125 / step) }, step)
        return "{\"estimate\": \(bins { from, to in call.estimate(at: (from + to) / 2, flow: flow) }), "
            + "\"sent\": \(list(sent.sums)), \"received\": \(list(received.sums))}"
    }
    let values = scenario.bands.map { band in
        "{\"name\": \"\(band.name)\", \"value\": \(band.value(call)), "
            + "\"goal\": \(band.goal.map { "[\($0.lowerBound), \($0.upperBound)]" } ?? "null")}"
    }
    let loss = zip(lost.sums, sent.sums).map { $1 > 0 ? 100 * $0 / $1 : 0 }
    return "{\"name\": \"\(scenario)\", \"direction\": \"\(backward ? "back" : "forward")\", \"plain\": \(isPlain), "
        + "\"step\": \(step), "
        + "\"link\": \(bins { from, to in link.capacity(from: from, to: to, most: .infinity) / 125 / step }), "
        + "\"flows\": [\(lines.joined(separator: ", "))], \"tcp\": \(list(tcp.sums)), "
        + "\"queue\": \(list(waits.largest)), \"loss\": \(list(loss)), \"values\": [\(values.joined(separator: ", "))]}"
}

private func list(_ values: [Double]) -> String {
    "[\(values.map { String(Double(Int($0 * 10)) / 10) }.joined(separator: ", "))]"
}

/// Values by the bin of their times.
private struct Bins {
    private(set) var sums = [Double](repeating: 0, count: points)
    private(set) var largest = [Double](repeating: 0, count: points)

    init(_ values: [(at: Double, value: Double)], _ step: Double) {
        for (at, value) in values where at < step * Double(points) {
            let bin = Int(at / step)
            sums[bin] += value
            largest[bin] = max(largest[bin], value)
        }
    }
}
