import Foundation

/// The file of a recorded camera of 64x48 at 30 frames/s, for `fixture:FILE`.
public enum CameraFile {
    /// A fault between two times, in seconds since the camera was made. Without an end, it lasts.
    public struct Fault: Sendable {
        let json: String

        /// - Parameter seconds: how much, of a fault that has an amount.
        public init(_ name: String, at: Double, until: Double? = nil, by seconds: Double? = nil) {
            let (end, amount) = (until.map { #","until":\#($0)"# } ?? "", seconds.map { #","by":\#($0)"# } ?? "")
            json = #"{"fault":"\#(name)","at":\#(at)\#(end)\#(amount)}"#
        }
    }

    /// A camera that is unplugged and plugged in again until the test ends, however slow its machine is.
    public static let comesAndGoes = (1...20).map { round in
        Fault("unplugged", at: Double(round) * 4 - 1, until: Double(round) * 4 + 1)
    }

    /// Writes the file into a folder. Returns the name of the camera.
    public static func write(
        _ faults: [Fault], to folder: TemporaryFolder, _ name: String = "camera.json"
    ) throws -> String {
        let path = folder.file(name)
        let text = """
            {"version":1,"driver":"uvcvideo","card":"Webcam","bus":"usb-0000:00:14.0-1",
             "formats":[{"format":"YUYV","sizes":[{"size":"64x48","rates":["30"]}]}],
             "faults":[\(faults.map(\.json).joined(separator: ","))]}
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return "fixture:" + path
    }

    /// Writes the file of a camera with the controls `brightness` from 0 to 255 and `contrast` from 0 to 9.
    /// Returns the name of the camera.
    public static func writeAdjustable(to folder: TemporaryFolder, _ name: String = "adjustable.json") throws -> String
    {
        let path = folder.file(name)
        let text = """
            {"version":1,"driver":"uvcvideo","card":"Webcam","bus":"usb-0000:00:14.0-4",
             "formats":[{"format":"YUYV","sizes":[{"size":"64x48","rates":["30"]}]}],
             "controls":[{"identifier":9963776,"title":"Brightness","kind":"integer",
                          "minimum":0,"maximum":255,"standard":128},
                         {"identifier":9963777,"title":"Contrast","kind":"integer",
                          "minimum":0,"maximum":9,"standard":3}]}
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return "fixture:" + path
    }

    /// Writes the file of a camera that encodes, with 64x48 at 30 frames/s in H.264 and in raw frames. It makes a keyframe
    /// when it is asked for one. Returns the name of the camera.
    ///
    /// - Parameters:
    ///   - frames: access units; they repeat.
    ///   - raw: the size of the raw frames.
    public static func write(
        h264 frames: [[UInt8]], _ faults: [Fault] = [], to folder: TemporaryFolder, _ name: String = "encoding.json",
        raw: String = "64x48"
    ) throws -> String {
        let path = folder.file(name)
        let data = frames.map { #"{"format":"H264","size":"64x48","data":"\#(Data($0).base64EncodedString())"}"# }
        let text = """
            {"version":1,"driver":"uvcvideo","card":"Webcam","bus":"usb-0000:00:14.0-2",
             "formats":[{"format":"H264","sizes":[{"size":"64x48","rates":["30"]}]},
                        {"format":"YUYV","sizes":[{"size":"\(raw)","rates":["30"]}]}],
             "controls":[{"identifier":10029541,"title":"Force Key Frame","kind":"button",
                          "minimum":0,"maximum":0,"standard":0}],
             "frames":[\(data.joined(separator: ","))],
             "faults":[\(faults.map(\.json).joined(separator: ","))]}
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return "fixture:" + path
    }
}
