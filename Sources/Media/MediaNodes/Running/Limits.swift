/// The timeouts of a running graph for drivers, file systems and devices that may never respond, in seconds. Tests
/// shorten them.
struct Limits: Sendable {
    /// For the first frame of every capturer.
    var start = 8.0
    /// For everything to be finished and closed. A recording alone may take 3 s.
    var stop = 10.0
    /// For the plan of an edit, which queries devices and network cameras.
    var plan = 8.0
    /// For removing the half-built nodes of a failed edit, after the edit's deadline.
    var undo = 1.0
    /// For the devices that a failed edit gives back. A camera may take long to open again.
    var restore = 5.0
    /// For a changed live setting.
    var setting = 3.0
    /// For an edit that is cancelled because the pipeline stops.
    var cancel = 2.0
}
