internal import Foundation
package import NIOSSL

/// A PEM file that cannot be used. The text completes the sentence "The file … ".
package struct PEMProblem: Error, Equatable {
    package let text: String
}

/// PEM files of certificates and keys.
package enum PEMFile {
    /// The longest file. The authorities of a system have 220 KB.
    private static let longest = 4 << 20
    private static let begin = Data("-----BEGIN ".utf8)
    private static let end = Data("-----END ".utf8)

    /// The certificates of a file, in its order; at least one. A file that ends within a certificate, because it is being
    /// written, has a problem.
    package static func certificates(_ path: String) throws(PEMProblem) -> [NIOSSLCertificate] {
        let data = try bytes(of: path)
        let all = try? NIOSSLCertificate.fromPEMBytes(Array(data))
        guard let all, !all.isEmpty else { throw PEMProblem(text: "has no certificate in PEM form") }
        return all
    }

    /// The first private key of a file.
    package static func key(_ path: String) throws(PEMProblem) -> NIOSSLPrivateKey {
        let data = try bytes(of: path)
        // A key with a passphrase fails too: a server that starts by itself has nobody to ask.
        let key = try? NIOSSLPrivateKey(bytes: Array(data), format: .pem) { (_: NIOSSLPassphraseSetter<[UInt8]>) in
            throw PEMProblem(text: "needs a passphrase")
        }
        guard let key else { throw PEMProblem(text: "has no private key in PEM form, or one with a passphrase") }
        return key
    }

    private static func bytes(of path: String) throws(PEMProblem) -> Data {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: path))
        } catch {
            throw PEMProblem(text: obstacle(toReading: path))
        }
        guard data.count <= longest else { throw PEMProblem(text: "is longer than \(longest >> 20) MiB") }
        guard count(begin, in: data) == count(end, in: data) else {
            throw PEMProblem(text: "ends in the middle of a block")
        }
        return data
    }

    private static func obstacle(toReading path: String) -> String {
        // The folder of an ACME client is often closed to other users.
        guard access(path, F_OK) == 0 else {
            return errno == EACCES ? "is in a folder that this user may not open" : "does not exist"
        }
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        return isFolder.boolValue ? "is a folder" : "cannot be read by this user; check its permissions"
    }

    private static func count(_ mark: Data, in data: Data) -> Int {
        var (count, from) = (0, data.startIndex)
        while let found = data.range(of: mark, in: from..<data.endIndex) {
            count += 1
            from = found.upperBound
        }
        return count
    }
}
