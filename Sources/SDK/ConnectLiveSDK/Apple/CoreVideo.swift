// Apple's names of this SDK's types, for code that was written for iOS. (Linux)

/// Apple's name of a raw frame.
public typealias CVPixelBuffer = PixelBuffer
/// Apple's name of the frame of a sample buffer.
public typealias CVImageBuffer = PixelBuffer

/// In pixels.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CVPixelBufferGetWidth(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.width }

/// In pixels.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CVPixelBufferGetHeight(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.height }
