// Publishes frames that this program draws into a room: own-capturer [ROOM] [SECONDS]
// Start `connectlive serve` on the same machine first.
import ConnectLiveSDK
import Foundation
import Synchronization

/// An object of this program, which the capturer uses.
final class Canvas: Sendable {
    let framesDrawn = Atomic(0)
}

struct Breathing: Capturer {
    static let summary = "Draws a grey that brightens and darkens, with the frame number"
    @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
    @Setting("Speed of the change", in: 1...20, isChangeable: true) var speed = 2
    let canvas: Canvas

    func format() -> PictureFormat {
        PictureFormat(width: 640, height: 360, framesPerSecond: Double(fps))
    }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        while true {
            try await output.draw { picture in
                let step = Int(number) * speed % 200
                picture.fill(luma: UInt8(20 + (step < 100 ? step : 200 - step)))
                picture.draw(barCode: number)
            }
            number += 1
            canvas.framesDrawn.add(1, ordering: .relaxed)
        }
    }
}

let arguments = CommandLine.arguments
let room = arguments.count > 1 ? arguments[1] : "demo"
let canvas = Canvas()
let breathing = Breathing(fps: 15, canvas: canvas).node
do {
    let pipeline = try await MediaPipeline {
        breathing >>> VideoEncoder(.vp8) >>> Publish(room: room)
    }
    try await pipeline.start()
    print("Publishing; the page that the server has printed shows it.")
    try await breathing.set(\.$speed, to: 5)
    try await Task.sleep(for: .seconds(arguments.count > 2 ? Double(arguments[2]) ?? 60 : 60))
    await pipeline.stop()
    print("Drew", canvas.framesDrawn.load(ordering: .relaxed), "frames.")
} catch {
    // An uncaught error would crash the program.
    print(error)
    exit(1)
}
