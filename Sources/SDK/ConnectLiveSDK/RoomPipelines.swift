public import MediaNodes
internal import RoomClient

extension NodeRegistry {
    /// The built-in nodes and the room nodes `publish` and `subscribe`.
    ///
    /// ```swift
    /// let pipeline = try await MediaPipeline(graph, registry: .withRooms)
    /// ```
    public static var withRooms: NodeRegistry { RoomNodes.registry }
}
