internal import CGLib
internal import CGStreamer
internal import Glibc
package import MediaGraph

/// The result of a discovery.
package enum DiscoveredFile: Sendable, Equatable {
    case found(MediaFileInfo)
    case notFound
    case unreadable(String)
    /// A missing decoder, as GStreamer describes it.
    case missingPlugin(String)
}

/// Discovers the contents of media files. The corresponding C type is `GstDiscoverer`.
package enum FileDiscovery {
    /// In seconds.
    private static let limit = 5.0
    /// Timeout of a glance, in seconds. A parsebin or decodebin loses errors that occur while it is still linking, and
    /// then waits without end.
    private static let glanceLimit = 2.0

    /// Blocks for some tens of milliseconds, 5 s at most. `trustingHeads` is enough to run the file: it decodes nothing
    /// if the headers are complete, so faults inside the file appear later.
    package static func discover(_ path: String, trustingHeads: Bool = false) -> DiscoveredFile {
        GStreamer.load()
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT || errno == ENOTDIR ? .notFound : .unreadable(String(cString: strerror(errno)))
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return .unreadable("it is not a file") }
        guard access(path, R_OK) == 0 else { return .unreadable(String(cString: strerror(errno))) }
        var seconds = limit
        if trustingHeads {
            let start = GStreamer.now
            if let file = FileGlance.look(into: path, seconds: glanceLimit) { return file }
            seconds = limit - min(GStreamer.now.seconds(since: start), glanceLimit)
        }
        let result = decode(path, seconds: seconds)
        // Only the heads name the encodings.
        guard !trustingHeads, case .found(let file) = result,
            case .found(let heads)? = FileGlance.look(into: path, seconds: glanceLimit)
        else { return result }
        return .found(
            MediaFileInfo(
                path: path, width: file.width, height: file.height, framesPerSecond: file.framesPerSecond,
                hasAudio: file.hasAudio, duration: file.duration, videoEncoding: heads.videoEncoding,
                audioEncoding: heads.audioEncoding))
    }

    private static func decode(_ path: String, seconds: Double) -> DiscoveredFile {
        var error: UnsafeMutablePointer<GError>?
        guard let address = takeString(gst_filename_to_uri(path, nil)),
            let discoverer = gst_discoverer_new(UInt(seconds * 1e9), nil)
        else { return .unreadable("GStreamer's discoverer is unavailable") }
        defer { gst_object_unref(discoverer) }
        guard let info = gst_discoverer_discover_uri(discoverer, address, &error) else {
            defer { g_clear_error(&error) }
            return .unreadable(error.map { String(cString: $0.pointee.message) } ?? "unknown reason")
        }
        defer {
            g_clear_error(&error)
            gst_object_unref(UnsafeMutableRawPointer(info))
        }
        switch gst_discoverer_info_get_result(info) {
        case GST_DISCOVERER_OK:
            return .found(contents(of: info, path))
        case GST_DISCOVERER_MISSING_PLUGINS:
            let contents = contents(of: info, path)
            let missing = missing(in: info)
            if contents.hasVideo, !missing.contains(where: { $0.contains("decoder-video/") }) {
                return .found(contents)
            }
            // The fourth part is a description.
            let parts = missing.first?.split(separator: "|") ?? []
            return .missingPlugin(parts.count > 3 ? String(parts[3]) : "a decoder")
        case GST_DISCOVERER_TIMEOUT:
            return .unreadable("reading it took longer than 5 s")
        default:
            return .unreadable(error.map { String(cString: $0.pointee.message) } ?? "unknown reason")
        }
    }

    private static func contents(of info: OpaquePointer, _ path: String) -> MediaFileInfo {
        var video = (width: 0, height: 0, framesPerSecond: 0.0)
        let videos = gst_discoverer_info_get_video_streams(info)
        if let first = videos?.pointee.data {
            let stream = OpaquePointer(first)
            let below = gst_discoverer_video_info_get_framerate_denom(stream)
            let above = gst_discoverer_video_info_get_framerate_num(stream)
            video = (
                Int(gst_discoverer_video_info_get_width(stream)), Int(gst_discoverer_video_info_get_height(stream)),
                below == 0 ? 0 : Double(above) / Double(below)
            )
        }
        gst_discoverer_stream_info_list_free(videos)
        let sounds = gst_discoverer_info_get_audio_streams(info)
        defer { gst_discoverer_stream_info_list_free(sounds) }
        let duration = gst_discoverer_info_get_duration(info)
        return MediaFileInfo(
            path: path, width: video.width, height: video.height, framesPerSecond: video.framesPerSecond,
            hasAudio: sounds != nil, duration: duration == UInt.max ? 0 : Double(duration) / 1e9)
    }

    /// The missing elements, such as `gstreamer|1.0|program|H.265 decoder|decoder-video/x-h265`.
    private static func missing(in info: OpaquePointer) -> [String] {
        let details = gst_discoverer_info_get_missing_elements_installer_details(info)
        var entries: [String] = []
        while let entry = details?[entries.count] { entries.append(String(cString: entry)) }
        return entries
    }
}
