import Glibc
public import MediaAuthoring

/// Counts on two threads at once, without synchronization.
public struct Racing: Capturer {
    public static let summary = "Has a thread that writes what it reads"

    private final class Counter: @unchecked Sendable {
        var ticks = 0
        var isEnding = false
    }

    public init() {}

    public func format() -> PictureFormat { PictureFormat(.gray8, width: 64, height: 48, framesPerSecond: 30) }

    public func capture(into output: CaptureOutput<PictureFormat>) async throws {
        let counter = Counter()
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let counter = Unmanaged<Counter>.fromOpaque(context).takeRetainedValue()
                while !counter.isEnding {
                    counter.ticks += 1
                    usleep(1000)
                }
                return nil
            }, Unmanaged.passRetained(counter).toOpaque())
        defer {
            counter.isEnding = true
            pthread_join(thread, nil)
        }
        while true {
            try await output.draw { picture in
                counter.ticks += 1
                let shade = UInt8(truncatingIfNeeded: counter.ticks)
                picture.withPlane(.luma) { luma, _ in
                    for offset in 0..<luma.byteCount {
                        luma.storeBytes(of: shade, toByteOffset: offset, as: UInt8.self)
                    }
                }
            }
        }
    }
}
