/// The place of each input of a mixer in the frame.
enum MixerLayout {
    struct Place: Equatable {
        var x = 0
        var y = 0
        var width = 0
        var height = 0
        /// Higher places cover lower ones.
        var depth = 0
    }

    struct Settings: Equatable {
        var isGrid = false
        var width: Int
        var height: Int
        var main = 1
        var corner = "bottom-right"
        var inset = 0.25
        var margin = 16
    }

    /// Places of the present inputs, by number. All sizes are even, as I420 requires. `shapes` are the known aspect
    /// ratios, as widths for a height of 1.
    static func places(of inputs: [Int], shapes: [Int: Double] = [:], _ settings: Settings) -> [Int: Place] {
        let inputs = inputs.sorted()
        return settings.isGrid ? grid(inputs, settings) : pictureInPicture(inputs, shapes, settings)
    }

    private static func grid(_ inputs: [Int], _ settings: Settings) -> [Int: Place] {
        let tiles = tiles(inputs.count, width: settings.width, height: settings.height)
        return Dictionary(uniqueKeysWithValues: zip(inputs, tiles))
    }

    /// Equal tiles, row by row, in a grid that is as square as possible.
    static func tiles(_ count: Int, width: Int, height: Int) -> [Place] {
        guard count > 0 else { return [] }
        let columns = Int(Double(count).squareRoot().rounded(.up))
        let (wide, high) = (even(width / columns), even(height / ((count + columns - 1) / columns)))
        return (0..<count).map { index in
            Place(x: index % columns * wide, y: index / columns * high, width: wide, height: high)
        }
    }

    /// One input fills the frame. The others stand in a row from one corner to the other side, each with its own aspect
    /// ratio.
    private static func pictureInPicture(
        _ inputs: [Int], _ shapes: [Int: Double], _ settings: Settings
    ) -> [Int: Place] {
        guard let first = inputs.first else { return [:] }
        let main = inputs.contains(settings.main) ? settings.main : first
        var places = [main: Place(width: settings.width, height: settings.height)]
        let small = inputs.filter { $0 != main }
        // Many small inputs share the width.
        let room = max(0, settings.width - (small.count + 1) * settings.margin)
        let widest = min(Double(settings.width) * settings.inset, Double(room) / Double(max(1, small.count)))
        let whole = Double(settings.width) / Double(max(1, settings.height))
        var left = settings.margin
        for (index, input) in small.enumerated() {
            let shape = shapes[input] ?? whole
            // No taller than an input with the frame's aspect ratio would be.
            let width = even(Int(min(widest, widest / whole * shape)))
            let height = even(Int(Double(width) / shape))
            places[input] = Place(
                x: even(settings.corner.hasSuffix("left") ? left : settings.width - left - width),
                y: even(
                    settings.corner.hasPrefix("top") ? settings.margin : settings.height - settings.margin - height),
                width: width, height: height, depth: index + 1)
            left += width + settings.margin
        }
        return places
    }

    private static func even(_ number: Int) -> Int { number / 2 * 2 }
}
