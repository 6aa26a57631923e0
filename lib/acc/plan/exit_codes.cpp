// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/exit_codes.hpp"

#include <array>

namespace acc::launcher {

std::span<const ExitCodeMeaning> exit_code_meanings() {
  static constexpr std::array kMeanings = {
      ExitCodeMeaning{"0", "every worker succeeded"},
      ExitCodeMeaning{"1", "the system refused: permissions, a full disk, a port in use"},
      ExitCodeMeaning{"2", "usage or configuration"},
      ExitCodeMeaning{"75", "the nodes of the job did not find each other in time"},
      ExitCodeMeaning{"124", "the job hung and was stopped for it (--hang-timeout, --on-hang)"},
      ExitCodeMeaning{"128 + n", "ended by signal n: acc itself, or the worker that failed first"},
      ExitCodeMeaning{"any other", "the code of the worker that failed first, unchanged"},
  };
  return kMeanings;
}

}  // namespace acc::launcher
