internal import CGStreamer

/// The discrete Fourier transform of real numbers. Not for several threads at a time.
// @unchecked: the pointer never changes, and the owner's lock guards the work memory behind it.
package final class FourierTransform: @unchecked Sendable {
    private let size: Int
    private let pointer: OpaquePointer

    package init(size: Int) {
        guard let made = gst_fft_f32_new(Int32(size), 0) else { preconditionFailure("no transform of \(size)") }
        self.size = size
        pointer = made
    }

    deinit {
        gst_fft_f32_free(pointer)
    }

    /// Magnitudes from 0 Hz to half the sample rate.
    package func magnitudes(of samples: [Float]) -> [Float] {
        precondition(samples.count == size)
        var bins = [GstFFTF32Complex](repeating: GstFFTF32Complex(), count: size / 2 + 1)
        gst_fft_f32_fft(pointer, samples, &bins)
        return bins.map { ($0.r * $0.r + $0.i * $0.i).squareRoot() }
    }
}
