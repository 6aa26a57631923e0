// SPDX-License-Identifier: Apache-2.0
#include <acc/accelerator.hpp>
#include <cstdio>

int main() {
  acc::Accelerator accelerator;
  std::printf("process %d of %d\n", accelerator.process_index(), accelerator.num_processes());
}
