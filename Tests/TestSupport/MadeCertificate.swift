import Foundation

/// A server's certificate of an authority of its own, and their files in PEM.
public struct MadeCertificate: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// The server's certificate, and the authority's behind it.
    public let certificate: String
    public let key: String
    /// The authority's certificate.
    public let authority: String

    public init(certificate: String, key: String, authority: String) {
        (self.certificate, self.key, self.authority) = (certificate, key, authority)
    }

    /// The names of `chain`.
    public static let names = "DNS:rooms.example,DNS:*.rooms.example,IP:127.0.0.1,IP:::1"

    /// Makes files in a folder.
    ///
    /// - Parameters:
    ///   - name: distinguishes the files of several certificates
    ///   - names: the subject's alternative names, as OpenSSL writes them
    ///   - days: how long it is valid, in UTC, as OpenSSL writes it
    public static func chain(
        in folder: String, name: String = "server", names: String = Self.names,
        days: (from: String, to: String) = ("20200101000000Z", "21200101000000Z")
    ) throws -> MadeCertificate {
        let file = { (ending: String) in "\(folder)/\(name)\(ending)" }
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try openssl(
            ["req", "-x509"] + curve + ["-days", "3650", "-subj", "/CN=\(name) authority"]
                + ["-keyout", file("-ca.key"), "-out", file("-ca.pem")], in: folder)
        try openssl(
            ["req", "-new"] + curve + ["-subj", "/CN=\(name)", "-addext", "subjectAltName=\(names)"]
                + ["-keyout", file(".key"), "-out", file(".csr")], in: folder)
        try Data().write(to: URL(fileURLWithPath: file("-index.txt")))
        let settings = """
            [ca]
            default_ca = this
            [this]
            database = \(file("-index.txt"))
            new_certs_dir = \(folder)
            default_md = sha256
            policy = any
            rand_serial = yes
            copy_extensions = copy
            [any]
            commonName = optional
            """
        try settings.write(toFile: file(".cnf"), atomically: true, encoding: .utf8)
        try openssl(
            ["ca", "-batch", "-notext", "-config", file(".cnf"), "-keyfile", file("-ca.key"), "-cert", file("-ca.pem")]
                + ["-startdate", days.from, "-enddate", days.to, "-in", file(".csr"), "-out", file("-leaf.pem")],
            in: folder)
        let parts = try [file("-leaf.pem"), file("-ca.pem")].map { try String(contentsOfFile: $0, encoding: .utf8) }
        try parts.joined().write(toFile: file(".pem"), atomically: true, encoding: .utf8)
        return MadeCertificate(certificate: file(".pem"), key: file(".key"), authority: file("-ca.pem"))
    }

    /// Runs OpenSSL, and throws what it prints if it fails.
    public static func openssl(_ arguments: [String], in folder: String) throws {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "openssl \(arguments.joined(separator: " ")): \(text)")
        }
    }
}
