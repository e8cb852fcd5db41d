public import MediaNodes
internal import RoomClient

extension NodeRegistry {
    /// The built-in nodes and those that publish into rooms and watch them: `publish` and `subscribe`.
    ///
    /// ```swift
    /// let pipeline = try await MediaPipeline(graph, registry: .withRooms)
    /// ```
    public static var withRooms: NodeRegistry { RoomNodes.registry }
}
