internal import CEmbeddedFiles

/// Files inside the binary: the web page and the demo's clip.
package enum EmbeddedFiles {
    /// Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0: an MP4 file.
    package static var demoClip: [UInt8] { file(named: "bigbuckbunny.mp4") ?? [] }

    /// The contents of a file, such as `index.html`. Nil if there is no file of that name.
    package static func file(named name: String) -> [UInt8]? {
        for index in 0..<embedded_file_count() {
            let file = embedded_file(index)
            if String(cString: file.name) == name {
                return Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
            }
        }
        return nil
    }
}
