#if canImport(CSDL)
    import ConnectLiveSDK
    import CSDL
    import Foundation

    /// A window of SDL, with the cells of a terminal.
    @MainActor final class Window: Surface {
        struct Failure: Error, CustomStringConvertible {
            let description: String

            init(_ action: String) { description = "SDL cannot \(action): \(String(cString: SDL_GetError()))" }
        }

        private struct Size: Hashable {
            var width: Int32, height: Int32
        }

        private static let cell = (width: 12, height: 24)

        private let window: OpaquePointer
        private let renderer: OpaquePointer
        private let font: OpaquePointer
        /// One for each size of frames.
        private var textures: [Size: OpaquePointer] = [:]
        /// The sizes of the frames since `clear`.
        private var used: Set<Size> = []
        private(set) var columns = 80
        private(set) var rows = 24

        init(title: String) throws {
            guard SDL_Init(SDL_INIT_VIDEO) == 0, TTF_Init() == 0 else { throw Failure("start") }
            let flags = SDL_WINDOW_RESIZABLE.rawValue
            let (width, height) = (Int32(80 * Self.cell.width), Int32(24 * Self.cell.height))
            guard
                let window = SDL_CreateWindow(title, 0x1fff_0000, 0x1fff_0000, width, height, flags),
                let renderer = SDL_CreateRenderer(window, -1, 0)
            else { throw Failure("open a window") }
            guard let font = TTF_OpenFont(Self.fontPath, 16) else { throw Failure("open the font \(Self.fontPath)") }
            (self.window, self.renderer, self.font) = (window, renderer, font)
        }

        /// The desktop's font, as fontconfig knows it.
        private static var fontPath: String {
            let (process, output) = (Process(), Pipe())
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["fc-match", "--format=%{file}", "sans"]
            process.standardOutput = output
            // Otherwise, the output would never end.
            guard (try? process.run()) != nil else { return "" }
            return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }

        func close() {
            TTF_CloseFont(font)
            SDL_DestroyRenderer(renderer)
            SDL_DestroyWindow(window)
            SDL_Quit()
        }

        // MARK: - Drawing

        func clear() {
            var (width, height): (Int32, Int32) = (0, 0)
            SDL_GetRendererOutputSize(renderer, &width, &height)
            (columns, rows) = (Int(width) / Self.cell.width, Int(height) / Self.cell.height)
            used = []
            set(.paper)
            SDL_RenderClear(renderer)
        }

        func write(_ text: String, in area: Area, _ colour: Colour, on background: Colour) {
            var place = rectangle(area)
            set(background)
            SDL_RenderFillRect(renderer, &place)
            let ink = SDL_Color(r: colour.red, g: colour.green, b: colour.blue, a: 255)
            // Others may send long texts. Few characters are narrower than half a cell.
            let start = String(text.unicodeScalars.prefix(max(0, area.columns) * 2))
            guard let surface = TTF_RenderUTF8_Blended(font, start, ink) else { return }
            defer { SDL_FreeSurface(surface) }
            guard let texture = SDL_CreateTextureFromSurface(renderer, surface) else { return }
            defer { SDL_DestroyTexture(texture) }
            // The part that fits.
            var part = SDL_Rect(x: 0, y: 0, w: min(place.w, surface.pointee.w), h: min(place.h, surface.pointee.h))
            place.y += (place.h - part.h) / 2
            (place.w, place.h) = (part.w, part.h)
            SDL_RenderCopy(renderer, texture, &part, &place)
        }

        func show(_ frame: VideoFrame, in area: Area) {
            let size = Size(width: Int32(frame.width), height: Int32(frame.height))
            guard let texture = textures[size] ?? newTexture(size) else { return }
            textures[size] = texture
            used.insert(size)
            frame.withPlane(.luma) { luma, lumaStride in
                frame.withPlane(.chromaBlue) { blue, blueStride in
                    frame.withPlane(.chromaRed) { red, redStride in
                        let (y, u, v) = (luma.firstByte, blue.firstByte, red.firstByte)
                        SDL_UpdateYUVTexture(
                            texture, nil, y, Int32(lumaStride), u, Int32(blueStride), v, Int32(redStride))
                    }
                }
            }
            var place = rectangle(area)
            SDL_RenderCopy(renderer, texture, nil, &place)
        }

        func present() {
            SDL_RenderPresent(renderer)
            for (size, texture) in textures where !used.contains(size) {
                SDL_DestroyTexture(texture)
                textures[size] = nil
            }
        }

        private func newTexture(_ size: Size) -> OpaquePointer? {
            SDL_CreateTexture(
                renderer, SDL_PIXELFORMAT_IYUV.rawValue, Int32(SDL_TEXTUREACCESS_STREAMING.rawValue), size.width,
                size.height)
        }

        private func set(_ colour: Colour) {
            SDL_SetRenderDrawColor(renderer, colour.red, colour.green, colour.blue, 255)
        }

        private func rectangle(_ area: Area) -> SDL_Rect {
            SDL_Rect(
                x: Int32(area.column * Self.cell.width), y: Int32(area.row * Self.cell.height),
                w: Int32(area.columns * Self.cell.width), h: Int32(area.rows * Self.cell.height))
        }

        // MARK: - Keys

        func keys() -> [Key] {
            var keys: [Key] = []
            var event = SDL_Event()
            while SDL_PollEvent(&event) == 1 {
                switch SDL_EventType(event.type) {
                case SDL_QUIT: keys.append(.quit)
                case SDL_KEYDOWN: if let key = key(event.key.keysym) { keys.append(key) }
                case SDL_TEXTINPUT:
                    let text = withUnsafeBytes(of: event.text.text) {
                        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                    }
                    keys += text.map { .character($0) }
                default: break
                }
            }
            return keys
        }

        /// The keys that are no text.
        private func key(_ symbol: SDL_Keysym) -> Key? {
            switch SDL_KeyCode(UInt32(symbol.sym)) {
            case SDLK_RETURN, SDLK_KP_ENTER: .enter
            case SDLK_ESCAPE: .escape
            case SDLK_BACKSPACE: .backspace
            case SDLK_TAB: .character("\t")
            case SDLK_UP: .up
            case SDLK_DOWN: .down
            case SDLK_LEFT: .left
            case SDLK_RIGHT: .right
            default: nil
            }
        }
    }

    extension RawSpan {
        /// For calls of C while the frame's planes are open.
        fileprivate var firstByte: UnsafePointer<UInt8>? {
            withUnsafeBytes { $0.baseAddress?.assumingMemoryBound(to: UInt8.self) }
        }
    }
#endif
