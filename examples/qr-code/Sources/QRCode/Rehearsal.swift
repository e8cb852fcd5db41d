import MediaTesting

extension QRCodeCapturer: Rehearsed {
    public static var rehearsal: Rehearsal {
        Rehearsal(failing: [["text": .text(String(repeating: "long ", count: 600))]])
    }
}
