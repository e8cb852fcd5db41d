// The grid of participants: one tile for each video, or for a participant who only speaks.

const gap = 12;
const smallest = 150;
// Between 4:3 and 16:9, so that filling the tile crops either only a little; a tall screen has room for taller tiles.
const shape = 1.6;
const tallShape = 4 / 3;
// The size of a tile is told once it has not changed for this long, in milliseconds.
const settled = 300;
// A picture that has not moved for this long is said to have stopped, in milliseconds.
const stoppedAfter = 4000;

// Ticks of video timestamps in a millisecond (RFC 3551).
const videoClock = 90;
const averagedFrames = 20;
// In milliseconds.
const otherStream = 1000;

/** Short enough to read out, long enough to tell people apart. */
export const shortName = (id) => id.slice(0, 6);

function hue(text) {
    let sum = 7;
    for (const character of text) sum = (sum * 31 + character.codePointAt(0)) % 360;
    return sum;
}

function element(name, className, text = "") {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text;
    return made;
}

class Tile {
    /** When a frame with the timestamp 0 would be shown, by performance.now(). */
    shown = NaN;
    frames = 0;
    moved = performance.now();

    constructor(entry) {
        this.root = element("figure", "tile");
        this.root.setAttribute("role", "listitem");
        this.root.style.setProperty("--hue", hue(entry.participant));
        this.video = element("video", "");
        this.video.muted = this.video.autoplay = this.video.playsInline = true;
        this.video.disablePictureInPicture = true;
        this.avatar = element("span", "avatar", entry.self ? "You" : entry.participant.replace(/^p-/, "").slice(0, 2));
        this.avatar.setAttribute("aria-hidden", "true");
        this.note = element("p", "note");
        this.waiting = element("p", "waiting");
        this.waiting.dir = "auto";
        const caption = element("figcaption", "");
        this.name = element("span", "name");
        this.badge = element("span", "badge");
        caption.append(this.name, this.badge);
        this.root.append(this.avatar, this.video, this.waiting, this.note, caption);
        Object.assign(this.root.dataset, { participant: entry.participant, frames: 0 });
        if (entry.stream) this.root.dataset.stream = entry.stream;
        if (entry.self) this.root.dataset.self = "";
        this.video.addEventListener("resize", () => this.resized());
        this.#countFrames();
    }

    update(entry) {
        this.entry = entry;
        const label = entry.self ? "You" : shortName(entry.participant);
        this.name.textContent = entry.label ? `${label} · ${entry.label}` : label;
        this.name.title = entry.participant;
        this.badge.textContent = entry.badge ?? "";
        this.badge.title = entry.badgeTitle ?? "";
        this.root.dataset.heard = entry.heard;
        if (this.video.srcObject?.getVideoTracks()[0] !== (entry.track ?? undefined)) {
            this.video.srcObject = entry.track ? new MediaStream([entry.track]) : null;
            this.moved = performance.now();
            if (entry.track) this.video.play().catch(() => {});
        }
        this.#describe();
    }

    loudness(level) {
        this.root.classList.toggle("speaking", level > 0.02);
    }

    /** Twice a second: says in words when a picture does not come. */
    check(now) {
        if (Number(this.root.dataset.frames) !== this.frames) {
            this.root.dataset.frames = this.frames;
            this.moved = now;
        }
        this.#describe(now);
    }

    #describe(now = performance.now()) {
        const { entry } = this;
        const stopped = entry.track && !entry.self && now - this.moved > stoppedAfter;
        const seen = this.frames > 0 && entry.track && !entry.hidden;
        this.root.classList.toggle("seen", Boolean(seen));
        this.waiting.textContent = entry.waiting ?? "";
        this.note.textContent = entry.note ?? (stopped ? "No picture is arriving" : "");
    }

    resized() {
        const { videoWidth: width, videoHeight: height } = this.video;
        if (!width || !height) return;
        this.root.dataset.size = `${width}x${height}`;
        this.ratio = width / height;
        this.root.classList.toggle("whole", this.ratio < 1.2 || this.ratio > 2);
        this.onresize?.();
    }

    #countFrames() {
        const video = this.video;
        if (!video.requestVideoFrameCallback) {
            video.addEventListener("timeupdate", () => this.#frame());
            return;
        }
        const next = (_, { expectedDisplayTime, rtpTimestamp }) => {
            this.#frame();
            if (rtpTimestamp !== undefined) this.#average(expectedDisplayTime - rtpTimestamp / videoClock);
            video.requestVideoFrameCallback(next);
        };
        video.requestVideoFrameCallback(next);
    }

    /** Displays show a frame at their own next one, so the times vary by as much. Another stream has other timestamps. */
    #average(shown) {
        const isOther = !(Math.abs(shown - this.shown) < otherStream);
        this.shown = isOther ? shown : this.shown + (shown - this.shown) / averagedFrames;
    }

    #frame() {
        this.frames += 1;
        if (this.frames > 1) return;
        this.root.dataset.frames = 1;
        this.#describe();
        this.onfirst?.();
    }

    remove() {
        this.video.srcObject = null;
        this.root.remove();
    }
}

export class Grid {
    /** Called when the first picture of someone else is on the screen. */
    onfirst = () => {};
    /** Called with an entry when its tile is shown in another size: (entry, width, height), in pixels of the screen. */
    onview = () => {};
    #tiles = new Map();
    #views = new ResizeObserver(() => {
        clearTimeout(this.#settling);
        this.#settling = setTimeout(() => this.#tellViews(), settled);
    });
    #settling;

    constructor(root) {
        this.root = root;
        this.observer = new ResizeObserver(() => this.#layout());
        this.observer.observe(root);
    }

    /** Shows exactly these entries: {key, participant, stream, track, self, label, heard, badge, note, waiting}. */
    show(entries) {
        const keys = new Set(entries.map(({ key }) => key));
        for (const [key, tile] of this.#tiles) {
            if (keys.has(key)) continue;
            this.#views.unobserve(tile.root);
            tile.remove();
            this.#tiles.delete(key);
        }
        for (const entry of entries) {
            let tile = this.#tiles.get(entry.key);
            if (!tile) {
                tile = new Tile(entry);
                tile.onresize = () => this.#layout();
                if (!entry.self) tile.onfirst = () => this.onfirst();
                this.#tiles.set(entry.key, tile);
                this.root.append(tile.root);
                this.#views.observe(tile.root);
            }
            tile.update(entry);
        }
        this.#layout();
    }

    #tellViews() {
        for (const { root, entry } of this.#tiles.values()) {
            if (entry.self || entry.stream === undefined) continue;
            const { width, height } = root.getBoundingClientRect();
            const pixels = (side) => Math.min(Math.round(side * devicePixelRatio), 32768);
            this.onview(entry, pixels(width), pixels(height));
        }
    }

    /** When a frame of the stream with the timestamp 0 would be shown, by performance.now(). NaN if nobody knows. */
    shown(stream) {
        for (const { entry, shown } of this.#tiles.values()) if (entry.stream === stream) return shown;
        return NaN;
    }

    /** `level(entry)` is 0...1. */
    loudness(level) {
        for (const tile of this.#tiles.values()) tile.loudness(level(tile.entry));
    }

    check() {
        const now = performance.now();
        for (const tile of this.#tiles.values()) tile.check(now);
    }

    /** Nothing was drawn while the page was hidden: start counting anew. */
    wake() {
        for (const tile of this.#tiles.values()) tile.moved = performance.now();
    }

    /** The number of columns that makes the tiles largest. */
    #layout() {
        const count = this.#tiles.size;
        const { clientWidth: width, clientHeight: height } = this.root;
        if (count === 0 || width === 0) return;
        const [only] = this.#tiles.values();
        const common = height > width ? tallShape : shape;
        const ratio = count === 1 ? Math.min(Math.max(only.ratio ?? common, 0.56), 2) : common;
        let best = 0;
        for (let columns = 1; columns <= count; columns += 1) {
            const rows = Math.ceil(count / columns);
            const fits = Math.min((width - gap * (columns - 1)) / columns, (height - gap * (rows - 1)) / rows * ratio);
            best = Math.max(best, fits);
        }
        if (best < smallest) {
            const columns = Math.max(1, Math.floor((width + gap) / (smallest + gap)));
            best = (width - gap * (columns - 1)) / columns;
        }
        this.root.style.setProperty("--tile", `${Math.floor(best)}px`);
        this.root.style.setProperty("--shape", ratio);
    }
}
