internal import MediaGraph
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// A value of a statistics object.
package enum StatisticsValue: Sendable, Equatable {
    case integer(Int)
    case number(Double)
    case text(String)
    case flag(Bool)
}

/// One statistics object of W3C webrtc-stats (Identifiers for WebRTC's Statistics API): `type` and the names and units of
/// `values` are those of the standard. A value that is not measured is left out.
package struct StatisticsEntry: Sendable, Equatable {
    package var id: String
    package var type: String
    /// Seconds since 1970.
    package var time: Double
    package var values: [String: StatisticsValue]
}

extension SessionStatistics {
    /// The session as objects of W3C webrtc-stats. `streamId` and `participantId` are added to those of streams, and their
    /// ids stay the same while the session lasts.
    package var report: [StatisticsEntry] {
        var codecs: [String: StatisticsEntry] = [:]
        for parameters in sent.map(\.codec) + received.compactMap(\.codec) {
            let entry = codec(parameters)
            codecs[entry.id] = entry
        }
        var sources: [String: StatisticsEntry] = [:]
        // The lowest layer that is encoded is always sent, so its encoder gets every frame. A small source lacks the lower ones.
        for stream in sent where sources[sourceID(stream)] == nil { sources[sourceID(stream)] = source(of: stream) }
        let streams = sent.flatMap { outbound($0) } + received.flatMap { inbound($0) }
        return [transportEntry] + pairEntries + codecs.values.sorted { $0.id < $1.id }
            + sources.values.sorted { $0.id < $1.id } + streams
    }

    // MARK: - Identifiers

    private var prefix: String { "\(direction.rawValue)\(index)" }
    private var transportID: String { "\(prefix)-transport" }

    private func codecID(_ codec: CodecParameters) -> String {
        "\(prefix)-codec-\(codec.payloadType)" + (codec.parameters.isEmpty ? "" : "-\(codec.parameters)")
    }

    private func sourceID(_ stream: Sent) -> String { "\(prefix)-source-\(stream.source.rawValue)" }

    private func entry(
        _ id: String, _ type: String, at time: Double? = nil, _ values: [String: StatisticsValue?]
    ) -> StatisticsEntry {
        StatisticsEntry(id: id, type: type, time: time ?? self.time, values: values.compactMapValues { $0 })
    }

    // MARK: - The transport

    /// RTCTransportStats.
    private var transportEntry: StatisticsEntry {
        entry(
            transportID, "transport",
            [
                "packetsSent": integer(transport.packetsSent), "packetsReceived": integer(transport.packetsReceived),
                "bytesSent": integer(transport.bytesSent), "bytesReceived": integer(transport.bytesReceived),
                "iceState": text(transport.iceState), "iceLocalUsernameFragment": text(transport.usernameFragment),
                "dtlsState": text(transport.dtlsState), "dtlsRole": text(transport.dtlsRole),
                "srtpCipher": text(transport.profile?.registeredName),
                "selectedCandidatePairId": text(transport.pair.map { pairID($0) }),
                "selectedCandidatePairChanges": integer(transport.routes),
            ])
    }

    private func candidateID(_ side: String, _ address: String, _ pair: Pair) -> String {
        "\(prefix)-\(side)-\(side == "local" ? pair.path.local.rawValue : pair.path.remote.rawValue)-"
            + "\(pair.networkProtocol)-\(address)"
    }

    private func pairID(_ pair: Pair) -> String {
        "\(prefix)-pair-" + candidateID("local", pair.localAddress, pair) + "-"
            + candidateID("remote", pair.remoteAddress, pair)
    }

    /// RTCIceCandidatePairStats of the selected pair, and RTCIceCandidateStats of its ends.
    private var pairEntries: [StatisticsEntry] {
        guard let pair = transport.pair else { return [] }
        let (local, remote) = (
            candidateID("local", pair.localAddress, pair), candidateID("remote", pair.remoteAddress, pair)
        )
        let isConnected = ["connected", "completed"].contains(transport.iceState)
        return [
            entry(
                pairID(pair), "candidate-pair",
                [
                    "transportId": text(transportID), "localCandidateId": text(local),
                    "remoteCandidateId": text(remote), "state": isConnected ? text("succeeded") : nil,
                    "nominated": isConnected ? flag(true) : nil,
                    "availableOutgoingBitrate": number(transport.outgoingBitsPerSecond),
                    "availableIncomingBitrate": number(transport.incomingBitsPerSecond),
                ]),
            candidate(local, "local-candidate", pair.localAddress, pair.path.local, pair.networkProtocol)
                .adding(
                    pair.path.relay.map { relay in
                        [
                            "relayProtocol": .text(pair.path.transport.lowercased()),
                            "url": .text(pair.path.url(of: relay)),
                        ]
                    }),
            candidate(
                remote, "remote-candidate", pair.remoteAddress, pair.path.remote, pair.networkProtocol),
        ]
    }

    private func candidate(
        _ id: String, _ type: String, _ address: String, _ kind: RoomStatistics.Path.Candidate, _ transport: String
    ) -> StatisticsEntry {
        let colon = address.lastIndex(of: ":")
        let host = colon.map { address[..<$0].filter { $0 != "[" && $0 != "]" } }
        return entry(
            id, type,
            [
                "transportId": text(transportID), "candidateType": text(kind.rawValue),
                "address": text(host.map { String($0) }),
                "port": integer(colon.flatMap { Int(address[address.index(after: $0)...]) }),
                "protocol": text(transport),
            ])
    }

    /// RTCCodecStats.
    private func codec(_ parameters: CodecParameters) -> StatisticsEntry {
        entry(
            codecID(parameters), "codec",
            [
                "payloadType": integer(Int(parameters.payloadType)), "transportId": text(transportID),
                "mimeType": text("\(parameters.codec.media.rawValue)/\(parameters.codec.rawValue)"),
                "clockRate": integer(Int(parameters.codec.clockRate)),
                "channels": integer(parameters.codec.media == .audio ? parameters.codec.format.channels : nil),
                "sdpFmtpLine": parameters.parameters.isEmpty ? nil : text(parameters.parameters),
            ])
    }

    // MARK: - Sent streams

    /// RTCVideoSourceStats or RTCAudioSourceStats. Nil if this machine does not encode the source.
    private func source(of stream: Sent) -> StatisticsEntry? {
        var values: [String: StatisticsValue?] = [
            "kind": text(stream.kind), "streamId": integer(stream.stream),
            "participantId": text(stream.participant),
        ]
        if let encoder = stream.encoder {
            values["frames"] = integer(encoder.framesCaptured)
            values["framesPerSecond"] = number(encoder.capturedPerSecond)
        } else if let sound = stream.sound {
            values["audioLevel"] = number(sound.level)
            values["totalAudioEnergy"] = number(sound.energy)
            values["totalSamplesDuration"] = number(sound.seconds)
        } else {
            return nil
        }
        return entry(sourceID(stream), "media-source", values)
    }

    /// RTCOutboundRtpStreamStats, and RTCRemoteInboundRtpStreamStats once the server has reported.
    private func outbound(_ stream: Sent) -> [StatisticsEntry] {
        let counters = stream.counters
        let (id, remoteID) = (
            "\(prefix)-outbound-\(stream.ssrc.rawValue)", "\(prefix)-remote-inbound-\(stream.ssrc.rawValue)"
        )
        var values: [String: StatisticsValue?] = [
            "ssrc": integer(Int(stream.ssrc.rawValue)), "kind": text(stream.kind), "transportId": text(transportID),
            "codecId": text(codecID(stream.codec)), "mid": text(stream.mid), "rid": text(stream.rid),
            "rtxSsrc": integer(stream.repairSSRC.map { Int($0.rawValue) }),
            "mediaSourceId": stream.encoder == nil && stream.sound == nil ? nil : text(sourceID(stream)),
            "remoteId": stream.reportTime.flatMap { _ in text(remoteID) }, "active": flag(stream.isActive),
            "packetsSent": integer(stream.packetsSent), "bytesSent": integer(stream.bytesSent),
            "headerBytesSent": integer(stream.headerBytesSent), "nackCount": integer(counters.nacks),
            "streamId": integer(stream.stream), "participantId": text(stream.participant),
        ]
        if stream.repairSSRC != nil {
            values["retransmittedPacketsSent"] = integer(counters.retransmittedPackets)
            values["retransmittedBytesSent"] = integer(
                counters.retransmittedBytes - counters.retransmittedHeaderBytes)
        }
        if stream.isVideo { values.merge(videoValues(of: stream)) { $1 } }
        let outbound = entry(id, "outbound-rtp", values)
        guard let time = stream.reportTime else { return [outbound] }
        let remote = entry(
            remoteID, "remote-inbound-rtp", at: time,
            [
                "ssrc": integer(Int(stream.ssrc.rawValue)), "kind": text(stream.kind),
                "transportId": text(transportID), "codecId": text(codecID(stream.codec)), "localId": text(id),
                "packetsLost": integer(counters.remoteLost), "fractionLost": number(counters.remoteFractionLost),
                "jitter": number(counters.remoteJitter.seconds),
                "roundTripTime": number(counters.roundTrip?.seconds),
                "totalRoundTripTime": number(counters.totalRoundTrip.seconds),
                "roundTripTimeMeasurements": integer(counters.roundTrips),
                "streamId": integer(stream.stream), "participantId": text(stream.participant),
            ])
        return [outbound, remote]
    }

    private func videoValues(of stream: Sent) -> [String: StatisticsValue?] {
        [
            "framesSent": integer(stream.framesSent), "frameWidth": integer(stream.width),
            "frameHeight": integer(stream.height),
            "framesEncoded": integer(stream.encoder?.framesEncoded),
            "keyFramesEncoded": integer(stream.encoder?.keyframesEncoded),
            "framesPerSecond": number(stream.encoder?.encodedPerSecond),
            "targetBitrate": number((stream.encoder?.targetBitsPerSecond).map { Double($0) }),
            "qualityLimitationReason": text(stream.encoder?.limitation.reason),
            "pliCount": integer(stream.pictureLosses), "firCount": integer(stream.counters.fullIntraRequests),
        ]
    }

    // MARK: - Received streams

    /// RTCInboundRtpStreamStats, and RTCRemoteOutboundRtpStreamStats once the server has reported.
    private func inbound(_ stream: Received) -> [StatisticsEntry] {
        let (counters, totals) = (stream.counters, stream.totals)
        let (id, remoteID) = ("\(prefix)-inbound-\(stream.mid)", "\(prefix)-remote-outbound-\(stream.mid)")
        var values: [String: StatisticsValue?] = [
            "ssrc": integer(Int(stream.ssrc.rawValue)), "kind": text(stream.media.rawValue),
            "transportId": text(transportID), "codecId": text(stream.codec.map { codecID($0) }),
            "mid": text(stream.mid), "rtxSsrc": integer(stream.repairSSRC.map { Int($0.rawValue) }),
            "remoteId": stream.reportTime.flatMap { _ in text(remoteID) },
            "packetsReceived": integer(counters.arrivals.packets),
            "bytesReceived": integer(counters.arrivals.payloadBytes),
            "headerBytesReceived": integer(counters.arrivals.headerBytes), "packetsLost": integer(counters.lost),
            "jitter": number(counters.jitter.seconds), "packetsDiscarded": integer(totals.packetsLate),
            "lastPacketReceivedTimestamp": number(stream.lastPacketTime.map { $0 * 1000 }),
            "nackCount": integer(counters.nacks), "streamId": integer(stream.stream),
            "participantId": text(stream.participant),
        ]
        if stream.repairSSRC != nil {
            values["retransmittedPacketsReceived"] = integer(counters.arrivals.retransmittedPackets)
            values["retransmittedBytesReceived"] = integer(counters.arrivals.retransmittedBytes)
        }
        if stream.media == .video {
            values["framesReceived"] = integer(totals.framesReceived)
            values["framesDecoded"] = integer(totals.framesDecoded)
            values["framesRendered"] = integer(totals.framesRendered)
            values["framesPerSecond"] = number(stream.framesPerSecond)
            values["frameWidth"] = integer(stream.width)
            values["frameHeight"] = integer(stream.height)
            values["pliCount"] = integer(counters.keyframeRequests)
        } else {
            values["audioLevel"] = number(stream.audioLevel)
            values["totalAudioEnergy"] = number(totals.audioEnergy)
            values["totalSamplesDuration"] = number(totals.audioSeconds)
            values["totalSamplesReceived"] = integer(stream.samplesReceived)
        }
        let inbound = entry(id, "inbound-rtp", values)
        guard let sent = counters.sent, let time = stream.reportTime else { return [inbound] }
        let remote = entry(
            remoteID, "remote-outbound-rtp", at: time,
            [
                "ssrc": integer(Int(stream.ssrc.rawValue)), "kind": text(stream.media.rawValue),
                "transportId": text(transportID), "codecId": text(stream.codec.map { codecID($0) }),
                "localId": text(id), "packetsSent": integer(sent.packets), "bytesSent": integer(sent.bytes),
                "reportsSent": integer(sent.reports),
                "remoteTimestamp": number(stream.remoteTime.map { $0 * 1000 }),
                "streamId": integer(stream.stream), "participantId": text(stream.participant),
            ])
        return [inbound, remote]
    }
}

extension SessionStatistics.Sent {
    fileprivate var kind: String { codec.codec.media.rawValue }

    /// With repeats and padding, as all counts of `bytesSent` too.
    package var packetsSent: Int {
        counters.packets + counters.retransmittedPackets + counters.paddingPackets
    }

    /// Of payload.
    package var bytesSent: Int {
        counters.bytes + counters.retransmittedBytes + counters.paddingBytes - headerBytesSent
    }

    /// Of headers and padding.
    package var headerBytesSent: Int {
        counters.headerBytes + counters.retransmittedHeaderBytes + counters.paddingBytes - counters.paddingPayloadBytes
    }

    /// PLI received.
    package var pictureLosses: Int { counters.keyframeRequests - counters.fullIntraRequests }
}

extension SessionStatistics.Received {
    package var packetsReceived: Int { counters.arrivals.packets }
    /// Of payload.
    package var bytesReceived: Int { counters.arrivals.payloadBytes }
    package var packetsLost: Int { counters.lost }
    /// PLI sent.
    package var pictureLosses: Int { counters.keyframeRequests }

    /// Of each channel, by the clock of the codec. Concealed ones included.
    package var samplesReceived: Int? {
        codec.map { Int((totals.audioSeconds * Double($0.codec.clockRate)).rounded()) }
    }
}

extension SessionStatistics.Pair {
    /// Between the candidates of both sides.
    fileprivate var networkProtocol: String {
        // A relay sends over UDP, however it is reached.
        path.relay != nil || path.transport == "UDP" ? "udp" : "tcp"
    }
}

extension RoomStatistics.Path {
    /// RFC 7065.
    fileprivate func url(of relay: String) -> String {
        transport == "TLS" ? "turns:\(relay)?transport=tcp" : "turn:\(relay)?transport=\(transport.lowercased())"
    }
}

extension QualityLimitation {
    /// RTCQualityLimitationReason.
    fileprivate var reason: String {
        switch self {
        case .none: "none"
        case .network: "bandwidth"
        case .processor: "cpu"
        case .subscribers: "other"
        }
    }
}

extension SRTPProfile {
    /// As registered for DTLS-SRTP (RFC 5764 and RFC 7714).
    fileprivate var registeredName: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aes128CMSHA1_80: "SRTP_AES128_CM_HMAC_SHA1_80"
        }
    }
}

extension StatisticsEntry {
    fileprivate func adding(_ more: [String: StatisticsValue]?) -> StatisticsEntry {
        var entry = self
        entry.values.merge(more ?? [:]) { $1 }
        return entry
    }
}

// Nil for a value that is not known.
private func integer(_ value: Int?) -> StatisticsValue? { value.map { .integer($0) } }
private func number(_ value: Double?) -> StatisticsValue? { value.map { .number($0) } }
private func text(_ value: String?) -> StatisticsValue? { value.map { .text($0) } }
private func flag(_ value: Bool) -> StatisticsValue? { .flag(value) }
