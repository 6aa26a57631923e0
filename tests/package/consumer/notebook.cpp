// SPDX-License-Identifier: Apache-2.0
#include <acc/notebook.hpp>
#include <acc/process.hpp>
#include <cstdio>

int main() {
  const auto ranks = acc::debug_launcher([] {
    const acc::PartialState state;
    state.wait_for_everyone();
    return state.process_index();
  });
  std::printf("ranks %d and %d\n", ranks.at(0), ranks.at(1));
}
