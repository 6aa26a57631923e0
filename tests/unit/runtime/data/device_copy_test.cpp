// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/device_copy.hpp"

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace device_copy_test {

TEST_CASE("device_copy: on the CPU batches are not copied", "[runtime]") {
  acc::detail::DeviceCopy copy(at::Device(at::kCPU));
  CHECK_FALSE(copy.needed());
  const at::Tensor batch = acc::test::numbers({1, 2}, {2}, at::kFloat);
  const at::Tensor same = copy.start(batch);
  copy.finish(same);
  CHECK(same.is_same(batch));
}

}  // namespace device_copy_test
