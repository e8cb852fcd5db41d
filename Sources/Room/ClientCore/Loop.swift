package import PeerIO

package typealias Loop = EventLoop
