/// The metadata of a shared library, read from its file without mapping it. The system's loader trusts a mapped file,
/// and ends the process over a truncated one.
///
/// System V ABI, chapters 4 and 5; 64 bits, little-endian.
struct ELFImage {
    /// Why a file cannot be loaded, as the end of a sentence about it.
    enum Fault: String, Error {
        case notAnImage = "is not a shared library; name one, or the folder of a package that is built"
        case otherMachine = "was built for another kind of processor; build it on this one"
        case notALibrary = "is a program or an object file; name a shared library"
        case cutShort = "is truncated; copy or build it again"
    }

    /// Of `e_machine`.
    #if arch(x86_64)
        private static let machine = 62
    #elseif arch(arm64)
        private static let machine = 183
    #endif

    /// The names of the libraries that it needs.
    private(set) var needed: [String] = []
    /// The functions and variables that it defines.
    private(set) var defined: [String] = []

    init(_ bytes: [UInt8]) throws(Fault) {
        let file = File(bytes: bytes)
        guard bytes.starts(with: [0x7f, 0x45, 0x4c, 0x46]), try file.number(4, 1) == 2, try file.number(5, 1) == 1
        else {
            throw .notAnImage
        }
        guard try file.number(18, 2) == Self.machine else { throw .otherMachine }
        guard try file.number(16, 2) == 3 else { throw .notALibrary }
        let segments = try Self.table(
            file, at: file.number(32, 8), size: file.number(54, 2), count: file.number(56, 2), least: 56)
        let sections = try Self.table(
            file, at: file.number(40, 8), size: file.number(58, 2), count: file.number(60, 2), least: 64)
        for segment in segments {
            try file.check(file.number(segment + 8, 8), file.number(segment + 32, 8))
        }
        for section in sections {
            let kind = try file.number(section + 4, 4)
            let start = try file.number(section + 24, 8)
            let size = try file.number(section + 32, 8)
            // SHT_NOBITS occupies no space in the file.
            if kind != 8 { try file.check(start, size) }
            guard kind == 6 || kind == 11 else { continue }
            let names = try Self.names(sections, ofSection: section, file)
            if kind == 6 {
                try readDynamic(file, start, size, names)
            } else {
                try readSymbols(file, start, size, names)
            }
        }
    }

    private static func table(
        _ file: File, at start: Int, size: Int, count: Int, least: Int
    ) throws(Fault) -> [Int] {
        guard count == 0 || size >= least else { throw .notAnImage }
        try file.check(start, count * size)
        return (0..<count).map { start + $0 * size }
    }

    /// The beginning of a section's names, by its link to another section.
    private static func names(_ sections: [Int], ofSection section: Int, _ file: File) throws(Fault) -> Int {
        let index = try file.number(section + 40, 4)
        guard sections.indices.contains(index) else { throw .notAnImage }
        return try file.number(sections[index] + 24, 8)
    }

    private mutating func readDynamic(_ file: File, _ start: Int, _ size: Int, _ names: Int) throws(Fault) {
        for entry in stride(from: start, to: start + size - 15, by: 16) {
            // DT_NULL ends the list, DT_NEEDED names a library.
            let tag = try file.number(entry, 8)
            if tag == 0 { return }
            if tag == 1 { needed.append(try file.text(names + file.number(entry + 8, 8))) }
        }
    }

    private mutating func readSymbols(_ file: File, _ start: Int, _ size: Int, _ names: Int) throws(Fault) {
        for symbol in stride(from: start, to: start + size - 23, by: 24) {
            // SHN_UNDEF: defined by another library.
            guard try file.number(symbol + 6, 2) != 0 else { continue }
            defined.append(try file.text(names + file.number(symbol, 4)))
        }
    }
}

/// Bytes with checked bounds.
private struct File {
    let bytes: [UInt8]

    func check(_ start: Int, _ size: Int) throws(ELFImage.Fault) {
        guard start >= 0, size >= 0, start <= bytes.count, size <= bytes.count - start else { throw .cutShort }
    }

    /// An unsigned number. A number beyond any file's length results in a position after the end.
    func number(_ offset: Int, _ size: Int) throws(ELFImage.Fault) -> Int {
        try check(offset, size)
        var value: UInt64 = 0
        for index in (0..<size).reversed() { value = value << 8 | UInt64(bytes[offset + index]) }
        return Int(min(value, UInt64(Int32.max)))
    }

    func text(_ offset: Int) throws(ELFImage.Fault) -> String {
        try check(offset, 1)
        guard let end = bytes[offset...].firstIndex(of: 0) else { throw .cutShort }
        return String(decoding: bytes[offset..<end], as: UTF8.self)
    }
}
