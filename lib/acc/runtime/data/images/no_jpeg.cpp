// SPDX-License-Identifier: Apache-2.0
#include "acc/base/error.hpp"
#include "acc/runtime/data/images/codecs.hpp"

namespace acc {

bool has_jpeg() {
  return false;
}

at::Tensor decode_jpeg(std::string_view /*bytes*/, std::int64_t /*draft_size*/) {
  throw Error({.kind = ErrorKind::system,
               .what = "is a JPEG image, and acc was built without libjpeg-turbo",
               .hint = "install libturbojpeg0-dev and build acc again"});
}

}  // namespace acc
