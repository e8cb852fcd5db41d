#pragma once
#include <stddef.h>
#include <stdint.h>

/// A file compiled into the program.
typedef struct {
    const char *_Nonnull name;
    const uint8_t *_Nonnull bytes;
    size_t count;
} EmbeddedFile;

/// The file at `index`, which must be below the count.
EmbeddedFile embedded_file(size_t index);
size_t embedded_file_count(void);
