// SPDX-License-Identifier: Apache-2.0
#include "acc/base/error.hpp"
#include "acc/runtime/data/images/codecs.hpp"

namespace acc {

bool has_png() {
  return false;
}

at::Tensor decode_png(std::string_view /*bytes*/) {
  throw Error({.kind = ErrorKind::system,
               .what = "is a PNG image, and acc was built without libpng",
               .hint = "install libpng-dev and build acc again"});
}

}  // namespace acc
