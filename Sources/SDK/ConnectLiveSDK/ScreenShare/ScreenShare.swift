internal import RoomProtocol

/// The extension's end of a screen share: passes frames to the application that has requested them, which publishes them.
/// `ConnectLive.createScreenShare` creates it.
///
/// Callable on any thread. Callbacks come one after the other, on a queue of the share and not on the callback queue, so that
/// an extension may block a thread until `stop` is done.
public protocol ScreenShare: AnyObject, Sendable {
    /// Why the share has ended, and one sentence about it.
    typealias ErrorCallback = (ScreenShareData.ExtensionErrorCode, String) -> Void

    /// Connects to the application, which requests frames at once. A share starts once.
    ///
    /// - Parameter completion: called once, if the share cannot begin, or ends otherwise than by `stop`.
    func start(completion: @escaping ErrorCallback)
    /// Drops frames until `resume`. The other participants keep seeing the last one.
    func pause()
    /// Sends frames again after `pause`.
    func resume()
    /// Ends the share.
    ///
    /// - Parameter completion: called once it has ended.
    func stop(completion: @escaping () -> Void)
    /// Copies a frame into memory that the application reads. A frame is dropped before the application is connected, while the
    /// share is paused, and while the application is slower. A screen that does not change needs no frames.
    func sendVideoFrame(sampleBuffer: SampleBuffer)
}

extension ConnectLive {
    /// The extension's end of a screen share, for a program that `Room.requestScreenShare` starts, or that the user starts
    /// meanwhile.
    ///
    /// - Parameter appGroup: the name that the application passes too.
    /// - Throws: a `ConnectLiveError` with 1906 if the folder of the group is unusable.
    public static func createScreenShare(appGroup: String) throws -> any ScreenShare {
        do throws(RoomError) {
            return FrameSocketShare(try ShareGroup(appGroup))
        } catch {
            throw ConnectLiveError(error)
        }
    }
}
