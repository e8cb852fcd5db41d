/// Where each input of a mixer stands in the picture.
enum MixerLayout {
    struct Place: Equatable {
        var x = 0
        var y = 0
        var width = 0
        var height = 0
        /// What is higher covers what is lower.
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

    /// Places of the inputs that are there, by their numbers. All numbers are even, as I420 wants them.
    static func places(of inputs: [Int], _ settings: Settings) -> [Int: Place] {
        let inputs = inputs.sorted()
        return settings.isGrid ? grid(inputs, settings) : pictureInPicture(inputs, settings)
    }

    private static func grid(_ inputs: [Int], _ settings: Settings) -> [Int: Place] {
        let tiles = TileLayout.places(inputs.count, width: settings.width, height: settings.height)
        var places: [Int: Place] = [:]
        for (input, tile) in zip(inputs, tiles) {
            places[input] = Place(x: tile.x, y: tile.y, width: tile.width, height: tile.height)
        }
        return places
    }

    /// One fills the picture; the others stand in a row that begins in a corner and goes on to the other side.
    private static func pictureInPicture(_ inputs: [Int], _ settings: Settings) -> [Int: Place] {
        guard let first = inputs.first else { return [:] }
        let main = inputs.contains(settings.main) ? settings.main : first
        var places = [main: Place(width: settings.width, height: settings.height)]
        let small = inputs.filter { $0 != main }
        let room = max(0, settings.width - (small.count + 1) * settings.margin)
        // Many small ones share the width.
        let share = small.isEmpty ? 0 : room / small.count
        let width = even(min(Int(Double(settings.width) * settings.inset), share))
        let height = even(width * settings.height / max(1, settings.width))
        for (index, input) in small.enumerated() {
            let step = settings.margin + index * (width + settings.margin)
            places[input] = Place(
                x: even(settings.corner.hasSuffix("left") ? step : settings.width - step - width),
                y: even(
                    settings.corner.hasPrefix("top") ? settings.margin : settings.height - settings.margin - height),
                width: width, height: height, depth: index + 1)
        }
        return places
    }

    private static func even(_ number: Int) -> Int { number / 2 * 2 }
}
