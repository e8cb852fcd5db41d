import GStreamerKit
public import MediaGraph

/// A screen or window that the user has chosen in a dialog of the desktop: that of xdg-desktop-portal, which Wayland sessions need.
///
///     let screen = Screen(try await SharedScreen.choose())
public struct SharedScreen: Sendable {
    let portal: ScreenPortal

    /// In pixels. Nil if the desktop does not tell.
    public var size: (width: Int, height: Int)? { portal.size }

    /// Shows the dialog, and returns when the user has chosen.
    ///
    /// - Parameter showsPointer: whether frames include the mouse pointer.
    /// - Throws: `screen.unavailable` without a portal; `screen.refused` if the user closes the dialog or chooses nothing within five
    ///   minutes, or the task is cancelled.
    public static func choose(showsPointer: Bool = true) async throws(MediaError) -> SharedScreen {
        try await choose(on: .session, showsPointer: showsPointer)
    }

    static func choose(
        on bus: BusConnection.Bus, showsPointer: Bool = true
    ) async throws(MediaError) -> SharedScreen {
        try await offPool { () throws(MediaError) in
            do throws(ScreenPortal.Failure) {
                return SharedScreen(
                    portal: try ScreenPortal.choose(
                        on: bus, showsPointer: showsPointer, isCancelled: { Task.isCancelled }))
            } catch {
                throw Self.error(error)
            }
        }
    }

    private static func error(_ failure: ScreenPortal.Failure) -> MediaError {
        switch failure {
        case .absent:
            ScreenFailure.unavailable(
                "The desktop offers no choice of screens",
                "Install xdg-desktop-portal with the part for this desktop, or set DISPLAY to capture an X display")
        case .refused:
            MediaError(
                code: MediaError.Code.screenRefused,
                message: "No screen was chosen in the dialog of the desktop. Choose one and share it.")
        case .failed(let method):
            ScreenFailure.unavailable(
                "The desktop's portal failed in \(method)",
                "Read the log of xdg-desktop-portal, or capture an X display")
        }
    }
}
