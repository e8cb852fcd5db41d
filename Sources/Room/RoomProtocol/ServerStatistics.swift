/// The response to `GET /v1/statistics`. Counters begin at the server's start and only grow; subtract two samples for a
/// rate. Times are in seconds.
package struct ServerStatistics: Codable, Sendable, Equatable {
    /// Since the server's start.
    package var seconds: Double
    package var loops: [Loop]

    package init(seconds: Double, loops: [Loop]) {
        self.seconds = seconds
        self.loops = loops
    }

    /// One thread that forwards media.
    package struct Loop: Codable, Sendable, Equatable {
        package var rooms: Int
        package var participants: Int
        package var streams: Int
        /// Datagrams that the loop handled, those that other loops handed over included.
        package var received: Int
        package var sent: Int
        /// Received datagrams of other loops' rooms.
        package var handedOver: Int
        package var turns: Turns
        package var drops: Drops
        package var queues: Queues
        /// The layers of all streams with simulcast whose publishers are on this loop, lowest first. Nil from older servers.
        package var layers: [Layer]?

        package init(
            rooms: Int, participants: Int, streams: Int, received: Int, sent: Int, handedOver: Int, turns: Turns,
            drops: Drops, queues: Queues, layers: [Layer]? = nil
        ) {
            self.layers = layers
            self.rooms = rooms
            self.participants = participants
            self.streams = streams
            self.received = received
            self.sent = sent
            self.handedOver = handedOver
            self.turns = turns
            self.drops = drops
            self.queues = queues
        }
    }

    /// The layers of one rank, of all streams with simulcast together.
    package struct Layer: Codable, Sendable, Equatable {
        /// Streams that have such a layer.
        package var streams = 0
        /// Those of them of which it arrives.
        package var delivered = 0
        /// Those of them of which somebody gets it.
        package var watched = 0
        /// Subscribers on the loop that get it.
        package var subscribers = 0
        /// The rates of those that arrive, in bits per second of the path.
        package var bitsPerSecond = 0

        package init() {}
    }

    /// A turn lasts from a wakeup until the loop waits again, or begins the next turn.
    package struct Turns: Codable, Sendable, Equatable {
        package var count: Int
        /// The time of all turns together.
        package var busySeconds: Double
        package var longestSeconds: Double
        /// How many turns took less than `below`, and at least as long as the previous entry's. In rising order.
        package var times: [Time]

        package struct Time: Codable, Sendable, Equatable {
            package var below: Double
            package var turns: Int

            package init(below: Double, turns: Int) {
                self.below = below
                self.turns = turns
            }
        }

        package init(count: Int, busySeconds: Double, longestSeconds: Double, times: [Time]) {
            self.count = count
            self.busySeconds = busySeconds
            self.longestSeconds = longestSeconds
            self.times = times
        }
    }

    /// Datagrams that were lost here.
    package struct Drops: Codable, Sendable, Equatable {
        /// Received ones that the kernel dropped, because the loop did not read them in time.
        package var unread: Int
        /// Those to be sent that had no room in the kernel's queue and in the server's, or that the kernel refused.
        package var unsent: Int
        /// Those that other loops handed over faster than the loop took them.
        package var notTakenOver: Int
        /// Packets for participants on other loops that their loop took too slowly.
        package var notPiped: Int
        /// Packets for clients for whom too many waited in one turn.
        package var outgoingFull: Int
        /// Packets for clients that were too long, or that could not be encrypted.
        package var unprotectable: Int
        /// Those of strangers, checks without the right password, and too long ones.
        package var ignored: Int

        package init(
            unread: Int, unsent: Int, notTakenOver: Int, notPiped: Int, outgoingFull: Int, unprotectable: Int,
            ignored: Int
        ) {
            self.unread = unread
            self.unsent = unsent
            self.notTakenOver = notTakenOver
            self.notPiped = notPiped
            self.outgoingFull = outgoingFull
            self.unprotectable = unprotectable
            self.ignored = ignored
        }
    }

    /// Work that waits at the moment.
    package struct Queues: Codable, Sendable, Equatable {
        /// Messages of clients, and other work for the loop.
        package var work: Int
        /// Runs of datagrams that wait for room in the kernel's queue.
        package var unsent: Int

        package init(work: Int, unsent: Int) {
            self.work = work
            self.unsent = unsent
        }
    }
}
