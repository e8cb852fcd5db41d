public import CMediaStamp
import Synchronization

/// The entry point of a shared library with nodes:
///
///     @c(connectlive_plugin_ClockFace)
///     public func plugin() -> Int32 { Plugin.provides(.capturer(ClockFace.init)) }
///
/// The function's name is `connectlive_plugin_` followed by the name of the module.
public enum Plugin {
    /// Registers the nodes with the program that loads the library. Returns 0, or 1 if the program rejects the plugin.
    ///
    /// The body is compiled into the plugin. Its stamp therefore names the MediaAuthoring and the compiler that built the
    /// plugin. The program uses none of the plugin's types before it has compared both with its own.
    @export(implementation)
    public static func provides(_ nodes: CustomNode...) -> Int32 {
        guard isAdmitted(generation: generation(), compiler: String(cString: connectlive_media_compiler())) else {
            return 1
        }
        hand(nodes)
        return 0
    }

    /// The generation of the binary interface. It rises with each change that would make an older plugin misread data:
    /// a new case or field of a `@frozen` type, a new protocol requirement without a default. All other changes are
    /// compatible, or the loader detects the missing symbol.
    @export(implementation)
    public static func generation() -> Int { 3 }

    private static let admission = Mutex(Admission())

    private struct Admission {
        var isOpen = false
        var refusal: String?
        var nodes: [CustomNode] = []
    }

    /// Whether a plugin with this stamp may register nodes. Only `provides` calls this.
    public static func isAdmitted(generation: Int, compiler: String) -> Bool {
        let ours = String(cString: connectlive_media_compiler())
        return admission.withLock { admission in
            guard admission.isOpen else { return false }
            if generation != Self.generation() {
                admission.refusal =
                    "it was built for generation \(generation) of MediaAuthoring, and this program has generation "
                    + "\(Self.generation()); build it again with the plugin kit of this program"
            } else if compiler != ours {
                admission.refusal =
                    "it was built with the compiler \(compiler), and this program with \(ours); build it again with "
                    + "the same compiler"
            }
            return admission.refusal == nil
        }
    }

    /// Registers nodes of an admitted plugin. Only `provides` calls this.
    public static func hand(_ nodes: [CustomNode]) {
        admission.withLock { $0.nodes += nodes }
    }

    /// Calls a plugin's entry point. Returns its nodes, or the reason for its refusal. Only one call may run at a time.
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

/// A symbol whose address identifies this library. A plugin with its own copy of MediaAuthoring finds another address.
@c(connectlive_media_place)
public func mediaPlace() {}
