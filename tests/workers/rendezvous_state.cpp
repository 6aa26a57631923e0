// SPDX-License-Identifier: Apache-2.0
// Reads rendezvous states, one base64 line each, and prints each as acc writes it to a store.
#include "acc/rendezvous/rendezvous_state.hpp"

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "acc/rendezvous/base64.hpp"

int main() try {
  for (std::string line; std::getline(std::cin, line);) {
    const std::string pickle = acc::launcher::from_base64(line).value();
    std::cout << acc::launcher::to_base64(to_pickle(acc::launcher::read_rendezvous_state(pickle))) << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
