// SPDX-License-Identifier: Apache-2.0
#include <acc/process.hpp>
#include <cstdio>

int main() {
  const acc::PartialState state;
  std::printf("process %d of %d\n", state.process_index(), state.num_processes());
}
