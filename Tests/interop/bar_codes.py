"""Reads the bar codes of the videos on the room page, as BarCode.swift draws them."""

# The blocks of the code in each tile of others whose stream has frames.
BLOCKS = """
return [...document.querySelectorAll('.tile:not([data-self])')].map((tile) => {
    const video = tile.querySelector('video');
    const [width, height] = [video.videoWidth, video.videoHeight];
    if (!tile.dataset.stream || !width) return null;
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width, height });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(video, 0, 0);
    const block = width >= 640 ? 16 : 8, columns = Math.min(Math.floor(width / block), 40);
    if (Math.ceil(40 / columns) * block > height) return null;
    const bits = [];
    for (let index = 0; index < 40; index += 1) {
        const [left, top] = [index % columns * block, Math.floor(index / columns) * block];
        const pixels = context.getImageData(left + block / 4, top + block / 4, block / 2, block / 2).data;
        let sum = 0;
        for (let place = 1; place < pixels.length; place += 4) sum += pixels[place];
        bits.push(sum > 126 * pixels.length / 4 ? 1 : 0);
    }
    return { stream: Number(tile.dataset.stream), bits };
}).filter(Boolean);
"""


def number_in(bits):
    """The number of 32 bits before their CRC-8. None if that is of other bits."""
    register = 0x5a
    for start in range(0, 32, 8):
        register ^= int("".join(map(str, bits[start:start + 8])), 2)
        for _ in range(8):
            register = (register << 1 ^ 0x07 if register & 0x80 else register << 1) & 0xff
    return int("".join(map(str, bits[:32])), 2) if register == int("".join(map(str, bits[32:])), 2) else None


def read(browser):
    """The stream and the number of each code that can be read."""
    numbers = [(tile["stream"], number_in(tile["bits"])) for tile in browser.execute_script(BLOCKS)]
    return [(stream, number) for stream, number in numbers if number is not None]
