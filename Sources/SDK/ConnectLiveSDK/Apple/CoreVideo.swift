// Apple's names of this SDK's types, for code that was written for iOS. (Linux)

public typealias CVPixelBuffer = PixelBuffer
public typealias CVImageBuffer = PixelBuffer

/// In pixels.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CVPixelBufferGetWidth(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.width }

/// In pixels.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CVPixelBufferGetHeight(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.height }
