// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc::detail {

/// A module that computes as a whole, not by the operators of its layers, such as a model that was made in
/// Python. It can be replicated; what reaches into the computation of layers refuses it.
class WholeModule {
 public:
  WholeModule() = default;
  virtual ~WholeModule() = default;
  WholeModule(const WholeModule&) = delete;
  WholeModule& operator=(const WholeModule&) = delete;

  /// For messages, as in "a TorchScript model".
  virtual std::string_view kind() const = 0;
};

}  // namespace acc::detail
