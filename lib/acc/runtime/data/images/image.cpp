// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/images/image.hpp"

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/data/images/codecs.hpp"

namespace acc {

at::Tensor decode_image(std::string_view bytes, const DecodeOptions& options) {
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, options.draft_size).permute({2, 0, 1});
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes).permute({2, 0, 1});
  throw Error(
      {.kind = ErrorKind::system, .what = bytes.empty() ? "is empty" : "is neither a JPEG nor a PNG image"});
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
