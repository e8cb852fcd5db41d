#ifndef CV4L2_H
#define CV4L2_H

// V4L2's capture calls as functions on flat structs: Swift cannot read the kernel's packed structs and unions.
// Functions return a negative error number on failure. A call that a signal interrupts is repeated.

#include <stddef.h>
#include <stdint.h>

// Opens a device for reading and writing, without blocking reads. Returns its descriptor.
int cv4l2_open(const char *path);

struct cv4l2_information {
    char driver[16];
    char card[32];
    char bus[32];
    // The device type of captured frames: V4L2_BUF_TYPE_VIDEO_CAPTURE, _MPLANE, or 0 if the device captures no video.
    uint32_t type;
};

// VIDIOC_QUERYCAP
int cv4l2_information(int device, struct cv4l2_information *information);

struct cv4l2_format {
    uint32_t code;
    char name[32];
    int is_compressed;
    int is_emulated;
};

// VIDIOC_ENUM_FMT. -EINVAL ends the list.
int cv4l2_format(int device, uint32_t type, uint32_t index, struct cv4l2_format *format);

// One size if both ends are equal.
struct cv4l2_sizes {
    uint32_t min_width, max_width, step_width;
    uint32_t min_height, max_height, step_height;
};

// VIDIOC_ENUM_FRAMESIZES. -EINVAL ends the list, -ENOTTY means that the driver lists none.
int cv4l2_sizes(int device, uint32_t code, uint32_t index, struct cv4l2_sizes *sizes);

struct cv4l2_fraction {
    uint32_t numerator, denominator;
};

// Seconds from frame to frame. One value if both ends are equal.
struct cv4l2_intervals {
    struct cv4l2_fraction min, max, step;
};

// VIDIOC_ENUM_FRAMEINTERVALS. -EINVAL ends the list, -ENOTTY means that the driver lists none.
int cv4l2_intervals(
    int device, uint32_t code, uint32_t width, uint32_t height, uint32_t index, struct cv4l2_intervals *intervals);

#define CV4L2_MOST_PLANES 8

struct cv4l2_layout {
    uint32_t width, height, code, field;
    uint32_t plane_count;
    uint32_t strides[CV4L2_MOST_PLANES];
    uint32_t bytes[CV4L2_MOST_PLANES];
};

// VIDIOC_G_FMT, and VIDIOC_S_FMT, which changes the layout to the driver's choice.
int cv4l2_get_layout(int device, uint32_t type, struct cv4l2_layout *layout);
int cv4l2_set_layout(int device, uint32_t type, struct cv4l2_layout *layout);

// VIDIOC_G_PARM, and VIDIOC_S_PARM, which changes the interval to the driver's choice. -ENOTTY means that the device
// has no adjustable rate.
int cv4l2_get_interval(int device, uint32_t type, struct cv4l2_fraction *interval);
int cv4l2_set_interval(int device, uint32_t type, struct cv4l2_fraction *interval);

// VIDIOC_REQBUFS with mapped memory. Returns the number of buffers that the driver made.
int cv4l2_request_buffers(int device, uint32_t type, uint32_t count);

struct cv4l2_buffer {
    uint32_t index;
    uint32_t plane_count;
    uint32_t offsets[CV4L2_MOST_PLANES];
    uint32_t lengths[CV4L2_MOST_PLANES];
    // The first byte of data in each plane, and the end of the data.
    uint32_t starts[CV4L2_MOST_PLANES];
    uint32_t ends[CV4L2_MOST_PLANES];
    int64_t seconds, microseconds;
    uint32_t sequence;
    uint32_t field;
    uint32_t flags;
};

// VIDIOC_QUERYBUF: where the planes of buffer `index` are.
int cv4l2_query_buffer(int device, uint32_t type, uint32_t index, uint32_t planes, struct cv4l2_buffer *buffer);
// VIDIOC_QBUF
int cv4l2_queue_buffer(int device, uint32_t type, uint32_t index, uint32_t planes);
// VIDIOC_DQBUF. -EAGAIN means that no frame is ready.
int cv4l2_dequeue_buffer(int device, uint32_t type, uint32_t planes, struct cv4l2_buffer *buffer);

// VIDIOC_STREAMON and VIDIOC_STREAMOFF
int cv4l2_stream(int device, uint32_t type, int on);

// Maps a plane for reading (PROT_READ), or returns NULL and sets `error`.
const void *cv4l2_map(int device, uint32_t offset, uint32_t length, int *error);

struct cv4l2_control {
    uint32_t identifier, type, flags;
    char name[32];
    int64_t minimum, maximum, default_value;
    uint64_t step;
    int has_payload;
};

// The control after `identifier`: VIDIOC_QUERY_EXT_CTRL, or VIDIOC_QUERYCTRL of old drivers. -EINVAL ends the list.
int cv4l2_next_control(int device, uint32_t identifier, struct cv4l2_control *control);
// VIDIOC_QUERYMENU: the name of a menu's item, or the value of an integer menu's. -EINVAL for a gap.
int cv4l2_menu_item(int device, uint32_t identifier, uint32_t index, char name[33], int64_t *value);
// VIDIOC_G_EXT_CTRLS and VIDIOC_S_EXT_CTRLS with one control
int cv4l2_get_control(int device, uint32_t identifier, int is_wide, int64_t *value);
int cv4l2_set_control(int device, uint32_t identifier, int is_wide, int64_t value);

// VIDIOC_SUBSCRIBE_EVENT: changes of a control by others or by the driver, or of the source.
int cv4l2_subscribe_control(int device, uint32_t identifier);
int cv4l2_subscribe_source(int device);

// Takes over the timing or the standard that the source has now, of an input that detects it (VIDIOC_S_DV_TIMINGS,
// VIDIOC_S_STD). Does nothing otherwise, and if it has that already.
void cv4l2_follow_source(int device);

enum { CV4L2_EVENT_OTHER, CV4L2_EVENT_CONTROL, CV4L2_EVENT_SOURCE };

struct cv4l2_event {
    int kind;
    uint32_t identifier, changes, flags;
    int64_t value;
};

// VIDIOC_DQEVENT
int cv4l2_dequeue_event(int device, struct cv4l2_event *event);

enum { CV4L2_FRAME = 1, CV4L2_EVENT = 2, CV4L2_ERROR = 4, CV4L2_GONE = 8, CV4L2_BELL = 16 };

// Waits for a device and a bell (ppoll). Returns the flags of those that are ready, 0 after the timeout. Negative
// nanoseconds mean without end. A device of -1 is not watched.
int cv4l2_wait(int device, int bell, int64_t nanoseconds);

// A descriptor that other threads make readable by `cv4l2_ring`, until `cv4l2_silence`.
int cv4l2_bell(void);
void cv4l2_ring(int bell);
void cv4l2_silence(int bell);

#endif
