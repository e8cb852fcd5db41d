/* The package manager needs a source to make include/ a search path. There, gst links to GStreamer's headers: by
   pkg-config, the package manager would also find -pthread, refuse it, and warn in every build. */
