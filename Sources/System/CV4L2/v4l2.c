#define _GNU_SOURCE
#include "CV4L2.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int call(int device, unsigned long request, void *argument) {
    int result;
    do result = ioctl(device, request, argument);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static int is_planar(uint32_t type) { return type == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE; }

int cv4l2_open(const char *path) {
    int device = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return device < 0 ? -errno : device;
}

// MARK: Description

int cv4l2_information(int device, struct cv4l2_information *information) {
    struct v4l2_capability caps = {0};
    int error = call(device, VIDIOC_QUERYCAP, &caps);
    if (error < 0) return error;
    memcpy(information->driver, caps.driver, sizeof information->driver);
    memcpy(information->card, caps.card, sizeof information->card);
    memcpy(information->bus, caps.bus_info, sizeof information->bus);
    information->driver[15] = information->card[31] = information->bus[31] = 0;
    uint32_t here = caps.capabilities & V4L2_CAP_DEVICE_CAPS ? caps.device_caps : caps.capabilities;
    information->type = !(here & V4L2_CAP_STREAMING)               ? 0
                        : here & V4L2_CAP_VIDEO_CAPTURE          ? V4L2_BUF_TYPE_VIDEO_CAPTURE
                        : here & V4L2_CAP_VIDEO_CAPTURE_MPLANE ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE
                                                                 : 0;
    return 0;
}

int cv4l2_format(int device, uint32_t type, uint32_t index, struct cv4l2_format *format) {
    struct v4l2_fmtdesc found = {.index = index, .type = type};
    int error = call(device, VIDIOC_ENUM_FMT, &found);
    if (error < 0) return error;
    format->code = found.pixelformat;
    memcpy(format->name, found.description, sizeof format->name);
    format->name[31] = 0;
    format->is_compressed = (found.flags & V4L2_FMT_FLAG_COMPRESSED) != 0;
    format->is_emulated = (found.flags & V4L2_FMT_FLAG_EMULATED) != 0;
    return 0;
}

int cv4l2_sizes(int device, uint32_t code, uint32_t index, struct cv4l2_sizes *sizes) {
    struct v4l2_frmsizeenum found = {.index = index, .pixel_format = code};
    int error = call(device, VIDIOC_ENUM_FRAMESIZES, &found);
    if (error < 0) return error;
    if (found.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
        *sizes = (struct cv4l2_sizes){
            .min_width = found.discrete.width, .max_width = found.discrete.width, .step_width = 1,
            .min_height = found.discrete.height, .max_height = found.discrete.height, .step_height = 1};
        return 0;
    }
    // The driver's one range is its whole list.
    if (index > 0) return -EINVAL;
    int is_continuous = found.type == V4L2_FRMSIZE_TYPE_CONTINUOUS;
    *sizes = (struct cv4l2_sizes){
        .min_width = found.stepwise.min_width, .max_width = found.stepwise.max_width,
        .step_width = is_continuous || !found.stepwise.step_width ? 1 : found.stepwise.step_width,
        .min_height = found.stepwise.min_height, .max_height = found.stepwise.max_height,
        .step_height = is_continuous || !found.stepwise.step_height ? 1 : found.stepwise.step_height};
    return 0;
}

static struct cv4l2_fraction fraction(struct v4l2_fract value) {
    return (struct cv4l2_fraction){.numerator = value.numerator, .denominator = value.denominator};
}

int cv4l2_intervals(
    int device, uint32_t code, uint32_t width, uint32_t height, uint32_t index, struct cv4l2_intervals *intervals) {
    struct v4l2_frmivalenum found = {.index = index, .pixel_format = code, .width = width, .height = height};
    int error = call(device, VIDIOC_ENUM_FRAMEINTERVALS, &found);
    if (error < 0) return error;
    if (found.type == V4L2_FRMIVAL_TYPE_DISCRETE) {
        intervals->min = intervals->max = fraction(found.discrete);
        intervals->step = (struct cv4l2_fraction){0};
        return 0;
    }
    if (index > 0) return -EINVAL;
    intervals->min = fraction(found.stepwise.min);
    intervals->max = fraction(found.stepwise.max);
    intervals->step = found.type == V4L2_FRMIVAL_TYPE_CONTINUOUS ? (struct cv4l2_fraction){0}
                                                                  : fraction(found.stepwise.step);
    return 0;
}

// MARK: Format and rate

static void read_layout(const struct v4l2_format *format, struct cv4l2_layout *layout) {
    memset(layout, 0, sizeof *layout);
    if (is_planar(format->type)) {
        const struct v4l2_pix_format_mplane *found = &format->fmt.pix_mp;
        layout->width = found->width;
        layout->height = found->height;
        layout->code = found->pixelformat;
        layout->field = found->field;
        layout->plane_count = found->num_planes < CV4L2_MOST_PLANES ? found->num_planes : CV4L2_MOST_PLANES;
        for (uint32_t index = 0; index < layout->plane_count; index++) {
            layout->strides[index] = found->plane_fmt[index].bytesperline;
            layout->bytes[index] = found->plane_fmt[index].sizeimage;
        }
    } else {
        const struct v4l2_pix_format *found = &format->fmt.pix;
        layout->width = found->width;
        layout->height = found->height;
        layout->code = found->pixelformat;
        layout->field = found->field;
        layout->plane_count = 1;
        layout->strides[0] = found->bytesperline;
        layout->bytes[0] = found->sizeimage;
    }
}

int cv4l2_get_layout(int device, uint32_t type, struct cv4l2_layout *layout) {
    struct v4l2_format format = {.type = type};
    int error = call(device, VIDIOC_G_FMT, &format);
    if (error >= 0) read_layout(&format, layout);
    return error;
}

int cv4l2_set_layout(int device, uint32_t type, struct cv4l2_layout *layout) {
    struct v4l2_format format = {.type = type};
    if (is_planar(type)) {
        format.fmt.pix_mp.width = layout->width;
        format.fmt.pix_mp.height = layout->height;
        format.fmt.pix_mp.pixelformat = layout->code;
        format.fmt.pix_mp.field = V4L2_FIELD_ANY;
    } else {
        format.fmt.pix.width = layout->width;
        format.fmt.pix.height = layout->height;
        format.fmt.pix.pixelformat = layout->code;
        format.fmt.pix.field = V4L2_FIELD_ANY;
    }
    int error = call(device, VIDIOC_S_FMT, &format);
    if (error >= 0) read_layout(&format, layout);
    return error;
}

static int read_interval(const struct v4l2_streamparm *parameters, struct cv4l2_fraction *interval) {
    const struct v4l2_captureparm *capture = &parameters->parm.capture;
    if (!(capture->capability & V4L2_CAP_TIMEPERFRAME)) return -ENOTTY;
    *interval = fraction(capture->timeperframe);
    return 0;
}

int cv4l2_get_interval(int device, uint32_t type, struct cv4l2_fraction *interval) {
    struct v4l2_streamparm parameters = {.type = type};
    int error = call(device, VIDIOC_G_PARM, &parameters);
    return error < 0 ? error : read_interval(&parameters, interval);
}

int cv4l2_set_interval(int device, uint32_t type, struct cv4l2_fraction *interval) {
    struct v4l2_streamparm parameters = {.type = type};
    parameters.parm.capture.timeperframe.numerator = interval->numerator;
    parameters.parm.capture.timeperframe.denominator = interval->denominator;
    int error = call(device, VIDIOC_S_PARM, &parameters);
    return error < 0 ? error : read_interval(&parameters, interval);
}

// MARK: Buffers

int cv4l2_request_buffers(int device, uint32_t type, uint32_t count) {
    struct v4l2_requestbuffers request = {.count = count, .type = type, .memory = V4L2_MEMORY_MMAP};
    int error = call(device, VIDIOC_REQBUFS, &request);
    return error < 0 ? error : (int)request.count;
}

static int use_buffer(
    int device, unsigned long request, uint32_t type, uint32_t index, uint32_t planes, struct cv4l2_buffer *result) {
    struct v4l2_plane parts[VIDEO_MAX_PLANES] = {0};
    struct v4l2_buffer buffer = {.index = index, .type = type, .memory = V4L2_MEMORY_MMAP};
    if (is_planar(type)) {
        buffer.m.planes = parts;
        buffer.length = planes;
    }
    int error = call(device, request, &buffer);
    if (error < 0 || !result) return error;
    memset(result, 0, sizeof *result);
    result->index = buffer.index;
    result->seconds = buffer.timestamp.tv_sec;
    result->microseconds = buffer.timestamp.tv_usec;
    result->sequence = buffer.sequence;
    result->field = buffer.field;
    result->flags = buffer.flags;
    if (is_planar(type)) {
        result->plane_count = buffer.length < CV4L2_MOST_PLANES ? buffer.length : CV4L2_MOST_PLANES;
        for (uint32_t plane = 0; plane < result->plane_count; plane++) {
            result->offsets[plane] = parts[plane].m.mem_offset;
            result->lengths[plane] = parts[plane].length;
            result->starts[plane] = parts[plane].data_offset;
            result->ends[plane] = parts[plane].bytesused;
        }
    } else {
        result->plane_count = 1;
        result->offsets[0] = buffer.m.offset;
        result->lengths[0] = buffer.length;
        result->ends[0] = buffer.bytesused;
    }
    return 0;
}

int cv4l2_query_buffer(int device, uint32_t type, uint32_t index, uint32_t planes, struct cv4l2_buffer *buffer) {
    return use_buffer(device, VIDIOC_QUERYBUF, type, index, planes, buffer);
}

int cv4l2_queue_buffer(int device, uint32_t type, uint32_t index, uint32_t planes) {
    return use_buffer(device, VIDIOC_QBUF, type, index, planes, NULL);
}

int cv4l2_dequeue_buffer(int device, uint32_t type, uint32_t planes, struct cv4l2_buffer *buffer) {
    return use_buffer(device, VIDIOC_DQBUF, type, 0, planes, buffer);
}

int cv4l2_stream(int device, uint32_t type, int on) {
    int which = (int)type;
    return call(device, on ? VIDIOC_STREAMON : VIDIOC_STREAMOFF, &which);
}

const void *cv4l2_map(int device, uint32_t offset, uint32_t length, int *error) {
    void *start = mmap(NULL, length, PROT_READ, MAP_SHARED, device, offset);
    *error = start == MAP_FAILED ? errno : 0;
    return start == MAP_FAILED ? NULL : start;
}

// MARK: Controls

int cv4l2_next_control(int device, uint32_t identifier, struct cv4l2_control *control) {
    struct v4l2_query_ext_ctrl found = {.id = identifier | V4L2_CTRL_FLAG_NEXT_CTRL};
    int error = call(device, VIDIOC_QUERY_EXT_CTRL, &found);
    if (error == -ENOTTY) {
        struct v4l2_queryctrl old = {.id = identifier | V4L2_CTRL_FLAG_NEXT_CTRL};
        error = call(device, VIDIOC_QUERYCTRL, &old);
        found = (struct v4l2_query_ext_ctrl){
            .id = old.id, .type = old.type, .minimum = old.minimum, .maximum = old.maximum,
            .step = (uint64_t)(old.step < 0 ? 0 : old.step), .default_value = old.default_value, .flags = old.flags};
        memcpy(found.name, old.name, sizeof found.name);
    }
    if (error < 0) return error;
    *control = (struct cv4l2_control){
        .identifier = found.id, .type = found.type, .flags = found.flags, .minimum = found.minimum,
        .maximum = found.maximum, .step = found.step, .default_value = found.default_value,
        .has_payload = (found.flags & V4L2_CTRL_FLAG_HAS_PAYLOAD) != 0 || found.nr_of_dims > 0};
    memcpy(control->name, found.name, sizeof control->name);
    control->name[31] = 0;
    return 0;
}

int cv4l2_menu_item(int device, uint32_t identifier, uint32_t index, char name[33], int64_t *value) {
    struct v4l2_querymenu item = {.id = identifier, .index = index};
    int error = call(device, VIDIOC_QUERYMENU, &item);
    if (error < 0) return error;
    *value = item.value;
    memcpy(name, item.name, sizeof item.name);
    name[32] = 0;
    return 0;
}

static int one_control(int device, unsigned long request, uint32_t identifier, int is_wide, int64_t *value) {
    struct v4l2_ext_control control = {.id = identifier};
    if (is_wide) control.value64 = *value;
    else control.value = (int32_t)*value;
    struct v4l2_ext_controls controls = {.which = V4L2_CTRL_WHICH_CUR_VAL, .count = 1, .controls = &control};
    int error = call(device, request, &controls);
    if (error >= 0) *value = is_wide ? control.value64 : control.value;
    return error;
}

int cv4l2_get_control(int device, uint32_t identifier, int is_wide, int64_t *value) {
    *value = 0;
    return one_control(device, VIDIOC_G_EXT_CTRLS, identifier, is_wide, value);
}

int cv4l2_set_control(int device, uint32_t identifier, int is_wide, int64_t value) {
    return one_control(device, VIDIOC_S_EXT_CTRLS, identifier, is_wide, &value);
}

// MARK: Events

static int subscribe(int device, uint32_t type, uint32_t identifier) {
    struct v4l2_event_subscription wish = {.type = type, .id = identifier};
    return call(device, VIDIOC_SUBSCRIBE_EVENT, &wish);
}

int cv4l2_subscribe_control(int device, uint32_t identifier) {
    return subscribe(device, V4L2_EVENT_CTRL, identifier);
}

int cv4l2_subscribe_source(int device) { return subscribe(device, V4L2_EVENT_SOURCE_CHANGE, 0); }

void cv4l2_follow_source(int device) {
    struct v4l2_dv_timings found = {0}, present = {0};
    if (call(device, VIDIOC_QUERY_DV_TIMINGS, &found) >= 0) {
        int is_known = call(device, VIDIOC_G_DV_TIMINGS, &present) >= 0 && found.bt.width == present.bt.width
                       && found.bt.height == present.bt.height && found.bt.interlaced == present.bt.interlaced
                       && found.bt.pixelclock == present.bt.pixelclock;
        if (!is_known) call(device, VIDIOC_S_DV_TIMINGS, &found);
        return;
    }
    // The driver may detect several standards that it cannot tell apart.
    v4l2_std_id detected = 0, chosen = 0;
    if (call(device, VIDIOC_QUERYSTD, &detected) < 0 || detected == V4L2_STD_UNKNOWN) return;
    if (call(device, VIDIOC_G_STD, &chosen) < 0 || (detected & chosen) == 0) call(device, VIDIOC_S_STD, &detected);
}

int cv4l2_dequeue_event(int device, struct cv4l2_event *event) {
    struct v4l2_event found = {0};
    int error = call(device, VIDIOC_DQEVENT, &found);
    if (error < 0) return error;
    memset(event, 0, sizeof *event);
    event->identifier = found.id;
    if (found.type == V4L2_EVENT_CTRL) {
        event->kind = CV4L2_EVENT_CONTROL;
        event->changes = found.u.ctrl.changes;
        event->flags = found.u.ctrl.flags;
        event->value = found.u.ctrl.type == V4L2_CTRL_TYPE_INTEGER64 ? found.u.ctrl.value64 : found.u.ctrl.value;
    } else if (found.type == V4L2_EVENT_SOURCE_CHANGE) {
        event->kind = CV4L2_EVENT_SOURCE;
    }
    return 0;
}

int cv4l2_wait(int device, int bell, int64_t nanoseconds) {
    struct pollfd descriptors[2] = {{.fd = bell, .events = POLLIN}, {.fd = device, .events = POLLIN | POLLPRI}};
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    int ready = ppoll(descriptors, 2, nanoseconds < 0 ? NULL : &time, NULL);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    short found = descriptors[1].revents;
    return (descriptors[0].revents ? CV4L2_BELL : 0) | (found & POLLIN ? CV4L2_FRAME : 0)
        | (found & POLLPRI ? CV4L2_EVENT : 0) | (found & (POLLERR | POLLNVAL) ? CV4L2_ERROR : 0)
        | (found & POLLHUP ? CV4L2_GONE : 0);
}

int cv4l2_bell(void) {
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell < 0 ? -errno : bell;
}

void cv4l2_ring(int bell) { eventfd_write(bell, 1); }

void cv4l2_silence(int bell) {
    eventfd_t count;
    eventfd_read(bell, &count);
}
