// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "acc/runtime/accelerator.hpp"

int main() {
  acc::Accelerator accelerator;
  std::printf("process %d of %d\n", accelerator.process_index(), accelerator.num_processes());
}
