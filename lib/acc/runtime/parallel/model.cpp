// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/model.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"

namespace acc {

void refuse_opaque(std::string_view type) {
  throw Error(
      {.what = fmt::format("{} cannot be looked into, so its tensors would stay in half precision", type),
       .where = "what forward gives back",
       .hint = "give back tensors, or tuples, vectors or maps of them, or declare `void "
               "for_each_tensor(YourType&, const acc::TensorAct&)` beside the type"});
}

}  // namespace acc
