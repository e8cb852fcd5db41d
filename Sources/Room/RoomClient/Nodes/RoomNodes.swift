package import MediaNodes

/// The nodes of a graph that use a room. They are not built-in nodes because Media does not know rooms.
package enum RoomNodes {
    package static let types: [any NodeType.Type] = [PublishNode.self, SubscribeNode.self]

    /// The built-in nodes and the room nodes.
    package static let registry = NodeRegistry.builtIn.adding(types)

    package static let publish = NodeImplementation(PublishNode.self)
    package static let subscribe = NodeImplementation(SubscribeNode.self)
}
