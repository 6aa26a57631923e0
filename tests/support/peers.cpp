// SPDX-License-Identifier: Apache-2.0
#include "support/peers.hpp"

#include <cstdlib>

#include "support/run.hpp"
#include "support/skip.hpp"

namespace acc::test {

std::string peer_python() {
  const Environment ours = Environment::of_process();
  const std::string named = ours.get("ACC_PEER_PYTHON");
  const std::string python = named.empty() ? "python3" : named;
  const std::string question =
      "import importlib.util, sys; print(sys.executable); sys.exit(not importlib.util.find_spec('torch'))";
  const Run answer = run({"/usr/bin/env", python, "-c", question}, ours);
  if (answer.code != 0) {
    skip("ACC_PEER_PYTHON names no Python with the peers");
    std::exit(kSkipped);
  }
  return answer.out.substr(0, answer.out.find('\n'));
}

}  // namespace acc::test
