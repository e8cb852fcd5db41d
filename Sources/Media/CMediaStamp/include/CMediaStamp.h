// Which compiler a module was built with: read where the header is, not where a library was built.
#ifndef CONNECTLIVE_MEDIA_STAMP_H
#define CONNECTLIVE_MEDIA_STAMP_H

static inline const char *connectlive_media_compiler(void) { return __VERSION__; }

#endif
