// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc {
namespace {

[[noreturn]] void refuse_image(std::string what, std::string hint = "") {
  throw Error({.kind = ErrorKind::system, .what = std::move(what), .hint = std::move(hint)});
}

}  // namespace

// The build sets each macro to 1 if it found the library; otherwise there is no decoder to link.

namespace detail {

bool has_jpeg() {
  return ACC_WITH_JPEG;
}

bool has_png() {
  return ACC_WITH_PNG;
}

void require_readable_size(std::int64_t width, std::int64_t height) {
  // Twice Image.MAX_IMAGE_PIXELS. Width and height have at most 31 bits.
  constexpr std::int64_t kMaxPixels = 178'956'970;
  if (width * height > kMaxPixels)
    refuse_image(
        fmt::format("has {} x {} pixels, more than the {} that are read", width, height, kMaxPixels));
}

}  // namespace detail

at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options) {
  if (bytes.starts_with("\xff\xd8\xff")) {
    if constexpr (ACC_WITH_JPEG) return detail::decode_jpeg(bytes, options.draft_size).permute({2, 0, 1});
    refuse_image("is a JPEG image, and acc was built without libjpeg-turbo",
                 "install libturbojpeg0-dev and build acc again");
  }
  if (bytes.starts_with("\x89PNG")) {
    if constexpr (ACC_WITH_PNG) return detail::decode_png(bytes).permute({2, 0, 1});
    refuse_image("is a PNG image, and acc was built without libpng",
                 "install libpng-dev and build acc again");
  }
  refuse_image(bytes.empty() ? "is empty" : "is neither a JPEG nor a PNG image");
}

at::Tensor read_image(const std::filesystem::path& file, const DecodeOptions& options) {
  const std::string bytes = read_file(file);
  try {
    return decode_image(bytes, options);
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    throw Error({.kind = error.kind(),
                 .what = std::move(problem.what),
                 .where = file.string(),
                 .hint = std::move(problem.hint)});
  }
}

}  // namespace acc
