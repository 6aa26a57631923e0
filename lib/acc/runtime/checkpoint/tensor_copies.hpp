// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"

namespace acc::detail {

/// Copies tensors to the CPU: in page-locked memory if they are on another device. The memory is kept, since
/// new memory costs more time than the copy, and used again for tensors of the same types and shapes in the
/// same order.
class TensorCopies {
 public:
  /// Begins again with the first copy; those of before must not be used any more.
  void begin() { next_ = 0; }

  /// Replaces all tensors in `content` by copies, which may be used after finish().
  void replace_in(Safetensors& content);
  void replace_in(PtValue& value);
  void replace_in(TensorRange& range) { replace(range.elements); }

  /// Returns when the copies are complete.
  void finish();

 private:
  void replace(at::Tensor& tensor);
  // The next memory for a copy of this tensor.
  const at::Tensor& memory_for(const at::Tensor& tensor);

  struct Copy {
    at::Tensor original = {};
    at::Tensor copy = {};
  };

  std::vector<at::Tensor> buffers_ = {};
  std::size_t next_ = 0;
  // What finish() copies, and the devices whose copies have begun.
  std::vector<Copy> on_cpu_ = {};
  std::set<std::pair<at::DeviceType, at::DeviceIndex>> devices_ = {};
};

}  // namespace acc::detail
