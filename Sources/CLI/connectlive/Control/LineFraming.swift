internal import NIOCore

/// Splits input into lines up to a maximum length.
struct LineDecoder: ByteToMessageDecoder {
    enum InboundOut: Sendable {
        case line([UInt8])
        /// A line exceeded the limit. All further input is discarded.
        case tooLong
    }

    let limit: Int
    /// How many bytes of the buffer are known to contain no line end.
    private var searched = 0
    private var hasGivenUp = false

    init(limit: Int) { self.limit = limit }

    mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) -> DecodingState {
        guard !hasGivenUp else {
            buffer.clear()
            return .needMoreData
        }
        let view = buffer.readableBytesView
        guard let end = view.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) else {
            searched = view.count
            if searched > limit { giveUp(context, &buffer) }
            return .needMoreData
        }
        let length = end - view.startIndex
        searched = 0
        guard length <= limit, let line = buffer.readBytes(length: length) else {
            giveUp(context, &buffer)
            return .needMoreData
        }
        buffer.moveReaderIndex(forwardBy: 1)
        context.fireChannelRead(wrapInboundOut(.line(line)))
        return .continue
    }

    mutating func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) -> DecodingState {
        // A last line without a line end is incomplete.
        let state = decode(context: context, buffer: &buffer)
        if state == .needMoreData { buffer.clear() }
        return state
    }

    private mutating func giveUp(_ context: ChannelHandlerContext, _ buffer: inout ByteBuffer) {
        hasGivenUp = true
        buffer.clear()
        context.fireChannelRead(wrapInboundOut(.tooLong))
    }
}
