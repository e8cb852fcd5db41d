// The header is all there is; a target needs a source file.
#include "CMediaStamp.h"
