public import CMediaStamp
import Synchronization

/// The entry of a shared library that brings nodes:
///
///     @c(connectlive_plugin_ClockFace)
///     public func plugin() -> Int32 { Plugin.provides(.capturer(ClockFace.self)) }
///
/// The function's name is `connectlive_plugin_` and the name of the module.
public enum Plugin {
    /// Hands the nodes over to whoever is loading the library.
    ///
    /// The body becomes part of the plugin, so that the stamp in it is the plugin's: which MediaGraph it was built
    /// against, and with which compiler. Nothing of the plugin's types is looked at before both are found to be the
    /// program's own.
    @export(implementation)
    public static func provides(_ nodes: CustomNode...) -> Int32 {
        guard isAdmitted(generation: generation(), compiler: String(cString: connectlive_media_compiler())) else {
            return 1
        }
        hand(nodes)
        return 0
    }

    /// Rises when a change would let a plugin that was built before misread what it is given: another case or field of
    /// what is `@frozen`, another requirement of a protocol without a default. Everything else either stays compatible,
    /// or is found missing by the loader.
    @export(implementation)
    public static func generation() -> Int { 2 }

    private static let admission = Mutex(Admission())

    private struct Admission {
        var isOpen = false
        var refusal: String?
        var nodes: [CustomNode] = []
    }

    /// Whether a plugin of this stamp may hand nodes over. Of use to `provides` only.
    public static func isAdmitted(generation: Int, compiler: String) -> Bool {
        let ours = String(cString: connectlive_media_compiler())
        return admission.withLock { admission in
            guard admission.isOpen else { return false }
            if generation != Self.generation() {
                admission.refusal =
                    "it was built for generation \(generation) of MediaGraph, and this program has generation "
                    + "\(Self.generation()); build it again with the plugin kit of this program"
            } else if compiler != ours {
                admission.refusal =
                    "it was built with the compiler \(compiler), and this program with \(ours); build it again with "
                    + "the same compiler"
            }
            return admission.refusal == nil
        }
    }

    /// Of use to `provides` only, once it is admitted.
    public static func hand(_ nodes: [CustomNode]) {
        admission.withLock { $0.nodes += nodes }
    }

    /// Calls a plugin's entry and gives what it provides, or the reason for which it was refused. One at a time.
    public static func admit(_ entry: () -> Int32) -> (nodes: [CustomNode], refusal: String?) {
        admission.withLock { $0 = Admission(isOpen: true) }
        let code = entry()
        return admission.withLock { admission in
            defer { admission = Admission() }
            let refusal = admission.refusal ?? (code == 0 ? nil : "its entry returned \(code) instead of 0")
            return (refusal == nil ? admission.nodes : [], refusal)
        }
    }
}

/// Where this library lies in memory: a plugin that brings a MediaGraph of its own finds another place under this name.
@c(connectlive_media_place)
public func mediaPlace() {}
