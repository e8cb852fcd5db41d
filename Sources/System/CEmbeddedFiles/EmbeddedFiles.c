// The web page and the demo's clip, compiled in with C23's #embed, so that the binary works wherever it is copied. A
// resource bundle of the package manager is found only at the path of the build.
#include "CEmbeddedFiles.h"
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t devices_js[] = {
#embed "../../Room/RoomServer/Web/devices.js"
};
static const uint8_t icon_svg[] = {
#embed "../../Room/RoomServer/Web/icon.svg"
};
static const uint8_t index_html[] = {
#embed "../../Room/RoomServer/Web/index.html"
};
static const uint8_t main_js[] = {
#embed "../../Room/RoomServer/Web/main.js"
};
static const uint8_t room_js[] = {
#embed "../../Room/RoomServer/Web/room.js"
};
static const uint8_t sessions_js[] = {
#embed "../../Room/RoomServer/Web/sessions.js"
};
static const uint8_t signalling_js[] = {
#embed "../../Room/RoomServer/Web/signalling.js"
};
static const uint8_t style_css[] = {
#embed "../../Room/RoomServer/Web/style.css"
};
static const uint8_t sync_js[] = {
#embed "../../Room/RoomServer/Web/sync.js"
};
static const uint8_t tiles_js[] = {
#embed "../../Room/RoomServer/Web/tiles.js"
};
static const uint8_t words_js[] = {
#embed "../../Room/RoomServer/Web/words.js"
};
static const uint8_t bigbuckbunny_mp4[] = {
#embed "../../../media/bigbuckbunny.mp4"
};

#define FILE(name, bytes) {name, bytes, sizeof bytes}
static const EmbeddedFile files[] = {
    FILE("devices.js", devices_js),
    FILE("icon.svg", icon_svg),
    FILE("index.html", index_html),
    FILE("main.js", main_js),
    FILE("room.js", room_js),
    FILE("sessions.js", sessions_js),
    FILE("signalling.js", signalling_js),
    FILE("style.css", style_css),
    FILE("sync.js", sync_js),
    FILE("tiles.js", tiles_js),
    FILE("words.js", words_js),
    FILE("bigbuckbunny.mp4", bigbuckbunny_mp4),
};

EmbeddedFile embedded_file(size_t index) { return files[index]; }
size_t embedded_file_count(void) { return sizeof files / sizeof files[0]; }
